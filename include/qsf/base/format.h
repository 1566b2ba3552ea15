// Sentences that contain values, checked at compile time. Formatting allocates nothing and needs no locale.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace qsf {

enum class FormatKind : std::uint8_t { none, natural, integer, real, text };

template <class T>
constexpr FormatKind format_kind() {
  if constexpr (std::is_enum_v<T>) {
    return format_kind<std::underlying_type_t<T>>();
  } else if constexpr (std::floating_point<T>) {
    return FormatKind::real;
  } else if constexpr (std::same_as<T, char>) {
    return FormatKind::text;
  } else if constexpr (std::signed_integral<T>) {
    return FormatKind::integer;
  } else if constexpr (std::unsigned_integral<T>) {
    return FormatKind::natural;
  } else {
    static_assert(std::convertible_to<const T&, std::string_view>, "a number, an enumeration or a text");
    return FormatKind::text;
  }
}

/// One value of a sentence. A text is not copied; an enumeration is stored as its number.
union FormatValue {
  template <class T>
  explicit constexpr FormatValue(const T& value) : natural(0) {
    constexpr FormatKind kKind = format_kind<T>();
    if constexpr (kKind == FormatKind::real) {
      real = static_cast<double>(value);
    } else if constexpr (std::same_as<T, char>) {
      text = std::string_view(&value, 1);
    } else if constexpr (kKind == FormatKind::text) {
      text = std::string_view(value);
    } else if constexpr (kKind == FormatKind::integer) {
      integer = static_cast<std::int64_t>(value);
    } else {
      natural = static_cast<std::uint64_t>(value);
    }
  }

  std::uint64_t natural;
  std::int64_t integer;
  double real;
  std::string_view text;
};

/// The kinds of a sentence's values, the first in the lowest four bits. One constant replaces a store for each value.
using FormatKinds = std::uint64_t;
template <class... Args>
constexpr FormatKinds format_kinds() {
  static_assert(sizeof...(Args) <= 16);
  FormatKinds kinds = 0;
  int at = 0;
  ((kinds |= static_cast<FormatKinds>(format_kind<Args>()) << at, at += 4), ...);
  return kinds;
}
constexpr FormatKind kind_at(FormatKinds kinds, std::size_t i) {
  return i < 16 ? static_cast<FormatKind>(kinds >> (4 * i) & 15) : FormatKind::none;
}

/// The form of one value: `{}` is general, a real number as printf's %g; `{:x}` is hexadecimal, `{:08x}` with at least
/// eight digits; `{:.2f}` has two digits after the point; `{:.40}` is at most 40 bytes of a text. `{{` and `}}` are
/// braces.
struct FormatSpec {
  std::uint16_t width = 0;  // of zeros in front
  std::uint16_t precision = 0;
  bool hexadecimal = false, fixed = false, has_precision = false;
};

/// Reads the specification that follows a `{`, and advances past its `}`. Returns false if it is not valid.
constexpr bool read_spec(std::string_view format, std::size_t& at, FormatSpec& spec) {
  const auto digits = [&](auto& to) {
    const std::size_t begin = at;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9' && at - begin < 3; ++at) {
      to = static_cast<std::remove_reference_t<decltype(to)>>(to * 10 + (format[at] - '0'));
    }
    return at > begin;
  };
  const auto next = [&](char c) { return at < format.size() && format[at] == c && (++at, true); };
  if (next(':')) {
    if (next('0') && !digits(spec.width)) return false;
    if (next('.')) {
      spec.has_precision = true;
      if (!digits(spec.precision)) return false;
    }
    if (next('x')) {
      spec.hexadecimal = true;
    } else if (next('f')) {
      spec.fixed = true;
    }
  }
  return next('}');
}

constexpr bool fits(const FormatSpec& spec, FormatKind kind) {
  switch (kind) {
    case FormatKind::none:  // there is no such value
      return false;
    case FormatKind::natural:
      return !spec.has_precision && !spec.fixed && (spec.width == 0 || spec.hexadecimal);
    case FormatKind::integer:
      return !spec.has_precision && !spec.fixed && !spec.hexadecimal && spec.width == 0;
    case FormatKind::real:
      return spec.fixed == spec.has_precision && !spec.hexadecimal && spec.width == 0;
    case FormatKind::text:
      return !spec.fixed && !spec.hexadecimal && spec.width == 0;
  }
  return false;
}

/// A literal whose placeholders fit the types of Args. Any other literal does not compile.
template <class... Args>
class FormatString {
 public:
  template <std::size_t N>
  consteval FormatString(const char (&text)[N]) : text_(text, N - 1) {
    constexpr FormatKinds kKinds = format_kinds<std::remove_cvref_t<Args>...>();
    std::size_t n = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const char c = text_[at++];
      if (c != '{' && c != '}') continue;
      if (at < text_.size() && text_[at] == c) {
        ++at;
        continue;
      }
      FormatSpec spec;
      if (c == '}' || !read_spec(text_, at, spec)) the_places_of_a_sentence_must_be_well_formed();
      if (!fits(spec, kind_at(kKinds, n++))) the_places_of_a_sentence_must_fit_its_arguments();
    }
    if (n != sizeof...(Args)) the_places_of_a_sentence_must_fit_its_arguments();
  }

  std::string_view text() const { return text_; }  // zero-terminated

 private:
  static void the_places_of_a_sentence_must_be_well_formed() {}
  static void the_places_of_a_sentence_must_fit_its_arguments() {}

  std::string_view text_;
};

/// Writes the sentence and a zero byte. A sentence that is too long is cut between two characters of UTF-8. Control
/// characters of texts, and bytes that are not UTF-8, become '?', so that a file cannot control a terminal. Returns the
/// number of bytes before the zero.
std::size_t format_into(std::span<char> out, std::string_view format, const FormatValue* values, FormatKinds kinds);

template <class... Args>
std::size_t format_into(std::span<char> out, FormatString<std::type_identity_t<Args>...> format, const Args&... args) {
  const std::array<FormatValue, sizeof...(Args)> values{FormatValue(args)...};
  return format_into(out, format.text(), values.data(), format_kinds<Args...>());
}

}  // namespace qsf
