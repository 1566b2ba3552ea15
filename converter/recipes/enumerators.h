// Names of an enumeration's values, taken from the enumeration itself.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace qsf::convert {
namespace detail {

/// Returns the compiler's spelling of a value: "qsf::Ffn::gated", or "(qsf::Ffn)7" if no enumerator has it.
template <auto V>
constexpr std::string_view spelling() {
  constexpr std::string_view kFunction = __PRETTY_FUNCTION__;
  constexpr std::string_view kMark = "V = ";
  const std::string_view value = kFunction.substr(kFunction.find(kMark) + kMark.size());
  return value.substr(0, value.find_first_of(";]"));
}

template <auto V>
constexpr std::string_view enumerator() {
  constexpr std::string_view kSpelling = spelling<V>();
  return kSpelling.starts_with('(') ? std::string_view() : kSpelling.substr(kSpelling.rfind(':') + 1);
}

inline constexpr std::size_t kMostEnumerators = 48;

template <class E>
inline constexpr auto kEnumerators = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{enumerator<static_cast<E>(I)>()...};
}(std::make_index_sequence<kMostEnumerators>());

}  // namespace detail

/// Returns the value of that name among those below 48.
template <class E>
std::optional<E> enumerator_named(std::string_view name) {
  for (std::size_t i = 0; i < detail::kMostEnumerators; ++i) {
    if (!name.empty() && detail::kEnumerators<E>[i] == name) return static_cast<E>(i);
  }
  return {};
}

/// Returns a list such as "before, after, both".
template <class E>
std::string enumerator_list() {
  std::string text;
  for (const std::string_view name : detail::kEnumerators<E>) {
    if (!text.empty() && !name.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace qsf::convert
