// Errors as values: a code from errors.def and one sentence that names the field and the value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "qsf/base/format.h"

namespace qsf {

enum class ErrorCode : std::uint16_t {
  none = 0,
#define QSF_ERROR(name, number, meaning) name = number,
#include "qsf/base/errors.def"
#undef QSF_ERROR
};

/// Returns the code's identifier in errors.def, "none" for none, or "unknown" for a number that is not in the list.
std::string_view error_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::none;
  char sentence[640];  // zero-terminated UTF-8; a success writes its first byte only

  Error() { sentence[0] = 0; }
  /// Takes a format that make_error() has checked. The parameter is not a view, because WebAssembly passes views
  /// through memory.
  [[gnu::cold]] Error(ErrorCode error, const char* format, const FormatValue* values, FormatKinds kinds);
};

/// Returns an error whose sentence is `format` with its arguments, as format_into() writes it. Allocates nothing.
template <class... Args>
Error make_error(ErrorCode code, FormatString<std::type_identity_t<Args>...> format, const Args&... args) {
  const std::array<FormatValue, sizeof...(Args)> values{FormatValue(args)...};
  return Error(code, format.text().data(), values.data(), format_kinds<Args...>());
}

/// A value or an Error. Check with `if (!r)`, then read `*r` or `r.error()`.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(const Error& error) : held_(std::in_place_index<1>, error) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&held_); }
  const T& operator*() const { return *std::get_if<0>(&held_); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  const Error& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<T, Error> held_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() {}  // not defaulted, because `{}` would clear the sentence
  Result(const Error& error) : error_(error) {}

  explicit operator bool() const { return error_.code == ErrorCode::none; }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

using Status = Result<void>;

}  // namespace qsf
