// Conditions on a number that is read digit by digit: comparisons with a bound, "is an integer" and multiples.
#pragma once

#include <cstdint>
#include <optional>

#include "qsf/base/json.h"

namespace qsf::grammar {

enum class NumberOp : std::uint8_t { syntax, less, at_most, more, at_least, integer, multiple };

/// The verdict on a condition.
struct Verdict {
  bool yes = false;  // it holds however the text goes on
  bool no = false;   // it fails however the text goes on
  bool now = false;  // it holds if the text ends here
};

/// A condition on the text of a JSON number. All texts that it sees are numbers or their beginnings, because `syntax`
/// sees the same bytes. A condition that depends on a power of ten fails at an exponent.
struct NumberCheck {
  NumberOp op = NumberOp::syntax;
  json::Number bound = {};     // of comparisons
  std::uint64_t multiple = 0;  // of multiple: the number times 10^scale is a multiple of this
  std::uint32_t scale = 0;
  bool whole = false;  // of integer: without a point

  /// Returns the condition "is a multiple of `number`", if it can be decided digit by digit.
  static std::optional<NumberCheck> multiple_of(const json::Number& number);

  std::uint64_t begin() const { return 0; }
  /// Returns what remains after a byte.
  std::uint64_t step(std::uint64_t state, std::uint8_t byte) const;
  Verdict verdict(std::uint64_t state) const;

  bool operator==(const NumberCheck&) const = default;
};

}  // namespace qsf::grammar
