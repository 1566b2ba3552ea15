// Typed values of a GGUF file's keys, with one error for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converter/readers/gguf/gguf.h"

namespace qsf::convert {

/// Reads values that must have their type if they are present. The first error is kept.
class Keys {
 public:
  Keys(const Gguf& gguf, std::string prefix) : gguf_(gguf), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return gguf_.values.contains(prefix_ + std::string(key)); }
  /// Without a fallback the key is required.
  std::uint32_t u32(std::string_view key, std::optional<std::uint32_t> fallback = {}) {
    return value(key, fallback, &Gguf::u32, "whole number below 2^32");
  }
  double number(std::string_view key, std::optional<double> fallback = {}) {
    return value(key, fallback, &Gguf::number, "number");
  }
  std::string_view text(std::string_view key, std::string_view fallback) {
    return value(key, std::optional(fallback), &Gguf::text, "text");
  }
  bool flag(std::string_view key, bool fallback) { return value(key, std::optional(fallback), &Gguf::flag, "truth"); }
  /// Returns a token's id; kNoToken for none, which is also written as -1.
  std::uint32_t token(std::string_view key) {
    const std::optional<double> number = gguf_.number(prefix_ + std::string(key));
    return number && *number < 0 ? kNoToken : u32(key, kNoToken);
  }
  const Status& status() const { return status_; }

 private:
  template <class T>
  T value(std::string_view key, std::optional<T> fallback, std::optional<T> (Gguf::*read)(std::string_view) const,
          const char* what) {
    if (fallback && !has(key)) return *fallback;
    const std::string whole = prefix_ + std::string(key);
    const std::optional<T> found = (gguf_.*read)(whole);
    if (!found && status_) {
      status_ = make_error(ErrorCode::bad_input, "GGUF: the key {:.80} is missing or no {}", whole, what);
    }
    return found.value_or(fallback.value_or(T{}));
  }

  const Gguf& gguf_;
  std::string prefix_;
  Status status_;
};

}  // namespace qsf::convert
