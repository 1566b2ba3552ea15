// Conversions between C++ and JavaScript types. Most types cross as embind passes them.
#pragma once

#include <emscripten/bind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "qsf/base/boundary.h"
#include "qsf/base/result.h"

namespace qsf::wasm {

/// The type that embind passes for a T, and the conversions to() and from().
template <class T>
struct Js {
  using type = T;
  static const T& to(const T& value) { return value; }
  static const T& from(const T& value) { return value; }
};

template <>
struct Js<void> {
  using type = void;
};

/// Integers of 64 bits are exact up to 2^53. A number from JavaScript is rounded down and limited to their range.
template <>
struct Js<std::uint64_t> {
  using type = double;
  static double to(std::uint64_t value) { return static_cast<double>(value); }
  static std::uint64_t from(double number) {
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    if (!(number > 0)) return 0;
    return number < static_cast<double>(kMost) ? static_cast<std::uint64_t>(number) : kMost;
  }
};

template <>
struct Js<ErrorCode> {
  using type = std::uint32_t;
  static type to(ErrorCode code) { return static_cast<type>(code); }
};

/// An address is a number.
template <class T>
struct Js<T*> {
  using type = std::uint32_t;
  static type to(const T* place) { return static_cast<type>(reinterpret_cast<std::uintptr_t>(place)); }
};

template <>
struct Js<std::string_view> {
  using type = std::string;
  static type to(std::string_view text) { return type(text); }
};

template <std::size_t n>
struct Js<char[n]> {
  using type = std::string;
  static type to(const char (&text)[n]) { return text; }
};

/// The names of an enumeration in JavaScript, by number. Each is a literal, so it has a zero at its end.
template <class E>
struct Names {};
template <>
struct Names<Step> {
  static constexpr auto& kAll = kStepNames;
};
template <>
struct Names<End> {
  static constexpr auto& kAll = kEndNames;
};
template <>
struct Names<Pooling> {
  static constexpr auto& kAll = kPoolingNames;
};
template <>
struct Names<GrammarKind> {
  static constexpr auto& kAll = kGrammarNames;
};
template <>
struct Names<AnswerPart> {
  static constexpr auto& kAll = kPartNames;
};
template <>
struct Names<KvType> {
  static constexpr auto& kAll = kKvNames;
};
template <>
struct Names<Region> {
  static constexpr std::array kAll{
#define QSF_REGION(name, shown, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
  };
};

/// An enumeration is its name.
template <class E>
  requires requires { Names<E>::kAll; }
struct Js<E> {
  using type = emscripten::val;
  static type to(E value) { return type(Names<E>::kAll[static_cast<std::size_t>(value)].data()); }
};

/// A value, or undefined.
template <class T>
struct Js<std::optional<T>> {
  using type = emscripten::val;
  static type to(const std::optional<T>& value) { return value ? type(Js<T>::to(*value)) : type::undefined(); }
  static std::optional<T> from(const type& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.isUndefined()) return value.isTrue();
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!value.isUndefined()) return value.as<T>();
    } else {
      for (std::size_t i = 0; i < Names<T>::kAll.size(); ++i) {
        if (value.strictlyEquals(Js<T>::to(static_cast<T>(i)))) return static_cast<T>(i);
      }
    }
    return {};
  }
};

/// Undefined, or the Error.
template <>
struct Js<Status> {
  using type = emscripten::val;
  static type to(const Status& status) { return status ? type::undefined() : type(status.error()); }
};

/// A value, or the Error.
template <class T>
struct Js<Result<T>> {
  using type = emscripten::val;
  static type to(const Result<T>& result) { return result ? type(Js<T>::to(*result)) : type(result.error()); }
};

/// Numbers are a view of memory, without a copy.
template <class T>
  requires(std::is_arithmetic_v<T>)
struct Js<std::span<T>> {
  using type = emscripten::val;
  static type to(std::span<T> values) { return type(emscripten::typed_memory_view(values.size(), values.data())); }
};

/// Bytes that are stored as a text.
struct Bytes {
  std::string_view held;
};
template <>
struct Js<Bytes> {
  using type = emscripten::val;
  static type to(Bytes bytes) {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(bytes.held.data());
    return type(emscripten::typed_memory_view(bytes.held.size(), at));
  }
};

/// A list of structures becomes an array.
template <class List>
  requires requires(const List& list) {
    list[list.size()];
    requires std::is_class_v<std::remove_reference_t<decltype(list[0])>>;
  }
struct Js<List> {
  using type = emscripten::val;
  static type to(const List& list) {
    type array = type::array();
    for (std::size_t i = 0; i < list.size(); ++i) array.set(i, list[i]);
    return array;
  }
};

// Fields of structures that cross by value.
template <auto member, class T>
auto get(const T& from) -> Js<std::remove_cvref_t<decltype(from.*member)>>::type {
  return Js<std::remove_cvref_t<decltype(from.*member)>>::to(from.*member);
}

/// Does nothing for a type that only crosses to JavaScript.
template <auto member, class T>
void set(T& into, typename Js<std::remove_cvref_t<decltype(into.*member)>>::type value) {
  using Field = Js<std::remove_cvref_t<decltype(into.*member)>>;
  if constexpr (requires { Field::from(value); }) into.*member = Field::from(value);
}

template <auto member, class T>
void field(emscripten::value_object<T>& object, const char* name) {
  using Field = std::remove_cvref_t<decltype(std::declval<T>().*member)>;
  if constexpr (std::is_same_v<typename Js<Field>::type, Field>) {
    object.field(name, member);
  } else {
    object.field(name, &get<member, T>, &set<member, T>);
  }
}

}  // namespace qsf::wasm
