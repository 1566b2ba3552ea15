// Sentences with values in them, checked when they are compiled. Allocates nothing and needs no locale.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace qsf {

/// One value of a sentence. Enumerations are told as their numbers.
class FormatArg {
 public:
  enum class Kind : std::uint8_t { natural, integer, real, text };

  template <class T>
  static constexpr Kind kind_of() {
    if constexpr (std::is_enum_v<T>) {
      return kind_of<std::underlying_type_t<T>>();
    } else if constexpr (std::floating_point<T>) {
      return Kind::real;
    } else if constexpr (std::signed_integral<T>) {
      return Kind::integer;
    } else if constexpr (std::unsigned_integral<T>) {
      return Kind::natural;
    } else {
      static_assert(std::convertible_to<const T&, std::string_view>, "a number, an enumeration or a text");
      return Kind::text;
    }
  }

  template <class T>
  explicit constexpr FormatArg(const T& value) : kind_(kind_of<T>()) {
    if constexpr (kind_of<T>() == Kind::real) {
      real_ = static_cast<double>(value);
    } else if constexpr (kind_of<T>() == Kind::text) {
      text_ = value;
    } else if constexpr (kind_of<T>() == Kind::integer) {
      integer_ = static_cast<std::int64_t>(value);
    } else {
      natural_ = static_cast<std::uint64_t>(value);
    }
  }

  Kind kind() const { return kind_; }
  std::uint64_t natural() const { return natural_; }
  std::int64_t integer() const { return integer_; }
  double real() const { return real_; }
  std::string_view text() const { return text_; }

 private:
  Kind kind_;
  std::uint64_t natural_ = 0;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::string_view text_;
};

/// How one value is written: `{}` in general; `{:x}` hexadecimal, `{:08x}` to eight digits; `{:.2f}` with two digits
/// behind the point; `{:.40}` at most 40 bytes of a text. `{{` and `}}` are braces. What std::format understands by
/// them.
struct FormatSpec {
  std::uint8_t width = 0;  // of zeros in front
  std::uint16_t precision = 0;
  bool hexadecimal = false, fixed = false, has_precision = false;
};

/// Reads the specification behind a `{` and steps behind its `}`. False when it is none.
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

constexpr bool fits(const FormatSpec& spec, FormatArg::Kind kind) {
  switch (kind) {
    case FormatArg::Kind::natural:
      return !spec.has_precision && !spec.fixed && (spec.width == 0 || spec.hexadecimal);
    case FormatArg::Kind::integer:
      return !spec.has_precision && !spec.fixed && !spec.hexadecimal && spec.width == 0;
    case FormatArg::Kind::real:
      return spec.fixed == spec.has_precision && !spec.hexadecimal && spec.width == 0;
    case FormatArg::Kind::text:
      return !spec.fixed && !spec.hexadecimal && spec.width == 0;
  }
  return false;
}

/// A literal whose places fit the types of Args; anything else does not compile.
template <class... Args>
class FormatString {
 public:
  template <std::size_t N>
  consteval FormatString(const char (&text)[N]) : text_(text, N - 1) {
    constexpr std::array<FormatArg::Kind, sizeof...(Args) + 1> kinds{
        FormatArg::kind_of<std::remove_cvref_t<Args>>()...};
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
      if (n == sizeof...(Args) || !fits(spec, kinds[n++])) the_places_of_a_sentence_must_fit_its_arguments();
    }
    if (n != sizeof...(Args)) the_places_of_a_sentence_must_fit_its_arguments();
  }

  std::string_view text() const { return text_; }

 private:
  static void the_places_of_a_sentence_must_be_well_formed() {}
  static void the_places_of_a_sentence_must_fit_its_arguments() {}

  std::string_view text_;
};

/// Writes the sentence and a zero byte behind it, cut to fit between two characters of UTF-8. Control characters of
/// texts become '?', so that what a file holds cannot steer a terminal. Gives the number of bytes before the zero.
std::size_t format_into(std::span<char> out, std::string_view format, std::span<const FormatArg> args);

template <class... Args>
std::size_t format_into(std::span<char> out, FormatString<std::type_identity_t<Args>...> format, const Args&... args) {
  const std::array<FormatArg, sizeof...(Args) + 1> values{FormatArg(args)..., FormatArg(0)};
  return format_into(out, format.text(), std::span(values).first(sizeof...(Args)));
}

}  // namespace qsf
