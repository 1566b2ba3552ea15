// The number of threads that is fastest at the moment, or the least of several that are about as fast. Another program
// on one of the cores delays every product that has a part there, so that fewer threads can be faster than all. The
// results are the same for any number.
#pragma once

#include <array>
#include <cstdint>

namespace qsf {

class ThreadChoice {
 public:
  /// Chooses among 1 to `most` threads, starting with `most`.
  explicit ThreadChoice(std::uint32_t most);

  /// Returns the number of threads for the next token.
  std::uint32_t threads() const { return rungs_[trying() && tries_next() ? tried_ : chosen_]; }
  /// Reports the time of a token with threads() threads. At times, another number is tried: tokens with it and tokens
  /// with the current one take turns, because what else runs on the machine changes within a few tokens.
  void took(double seconds);

 private:
  static constexpr std::uint32_t kTokens = 4;  // whose mean is a figure
  static constexpr std::uint32_t kRun = 2;  // tokens in a row of a trial; only the last counts, the first wakes threads
  static constexpr std::uint32_t kPairs = 5;  // of runs in a trial, at most

  bool trying() const { return tried_ != chosen_; }
  bool tries_next() const { return turn_ / kRun % 2 == 0; }
  bool is_rung(int at) const { return at >= 0 && at < static_cast<int>(n_rungs_); }
  int next_rung() const;
  void begin_trial();
  void in_trial(double seconds);
  void end_trial(bool better);
  void change();
  void begin_figures();

  std::array<std::uint32_t, 34> rungs_{};  // numbers of threads, most first
  std::uint32_t n_rungs_ = 0;
  std::uint32_t chosen_ = 0, tried_ = 0;  // of rungs_
  std::uint32_t step_ = 0;                // direction of the next trial
  std::uint32_t count_ = 0;               // tokens in the current figure
  double sum_ = 0;                        // their time
  double fastest_ = 0;                    // the least of their times
  double mean_ = 0;                       // of the last figure with chosen_
  double least_ = 0, before_ = 0;  // the least figure since the last trial, and the last one before that; 0: none yet
  std::uint32_t figures_ = 0;      // since the last trial
  std::uint32_t between_ = 0;      // figures between two trials
  std::uint32_t turn_ = 0;         // tokens of the trial
  double with_tried_ = 0;          // the time of the current pair's first run
  double tried_sum_ = 0, chosen_sum_ = 0;  // of the times in all pairs
  std::array<double, kPairs> ratios_{};    // of the two runs' times, in each pair
  std::uint32_t n_ratios_ = 0;
  std::uint32_t other_ = 0;  // of rungs_, the one that the last trial did not choose
  double other_time_ = 0;    // of a token with it; 0: unknown
};

}  // namespace qsf
