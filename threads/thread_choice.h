// How many threads serve best at the moment. Another program's turn on one of the cores holds up every product that has
// a part there, so that fewer threads can be faster than all; what they compute is the same.
#pragma once

#include <array>
#include <cstdint>

namespace qsf {

class ThreadChoice {
 public:
  /// Among 1 to `most`, from `most` on.
  explicit ThreadChoice(std::uint32_t most);

  /// For the next token.
  std::uint32_t threads() const { return rungs_[trying() ? tried_ : chosen_]; }
  /// What a token took with as many as threads() said. Now and then some fewer or more are tried for a few tokens.
  void took(double seconds);

 private:
  static constexpr std::uint32_t kTokens = 4;  // that a figure is the mean of

  bool trying() const { return tried_ != chosen_; }
  void begin_trial();
  void end_trial(bool better);

  std::array<std::uint32_t, 34> rungs_{};  // numbers of threads, most first
  std::uint32_t n_rungs_ = 0;
  std::uint32_t chosen_ = 0, tried_ = 0;  // of rungs_
  std::uint32_t step_ = 0;                // which way the next trial goes
  std::uint32_t count_ = 0;               // tokens of the present figure
  double sum_ = 0;                        // what they took
  double mean_ = 0, least_ = 0;           // of the last figure with what is chosen, and of all since then; 0: none yet
  std::uint32_t figures_ = 0;             // since the last trial
  std::uint32_t between_ = 0;             // figures between two trials
};

}  // namespace qsf
