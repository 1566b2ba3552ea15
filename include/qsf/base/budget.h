// The budget of a session: the bytes that the caller allows for everything, and the part of them outside the arena.
#pragma once

#include <cstdint>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

class Budget {
 public:
  constexpr Budget() = default;
  /// The bytes of an arena, and those that its host takes outside it.
  constexpr explicit Budget(std::uint64_t arena, std::uint64_t outside = 0)
      : bytes_(arena + outside), outside_(outside) {}
  /// Returns the division of `bytes`, of which the host takes `outside`, or all if there are fewer.
  static constexpr Budget within(std::uint64_t bytes, std::uint64_t outside) {
    const std::uint64_t taken = bytes < outside ? bytes : outside;
    return Budget(bytes - taken, taken);
  }

  constexpr std::uint64_t bytes() const { return bytes_; }
  constexpr std::uint64_t outside() const { return outside_; }
  constexpr std::uint64_t arena() const { return bytes_ - outside_; }

  /// Returns budget_too_small: the model needs at least `needed` bytes. `why` continues that clause.
  Error refusal(std::string_view model, std::uint64_t needed, std::string_view why) const {
    return make_error(ErrorCode::budget_too_small, "{} needs at least {:.2f} MiB{}, and the budget is {:.2f} MiB",
                      model, enough_mib(needed), why, mib(bytes_));
  }

  static constexpr double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
  /// Returns a number of MiB that is enough if two of its decimals are written.
  static constexpr double enough_mib(std::uint64_t bytes) { return mib(bytes) + 0.005; }

 private:
  std::uint64_t bytes_ = 0, outside_ = 0;
};

}  // namespace qsf
