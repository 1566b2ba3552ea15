#include "threads/thread_choice.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace qsf {
namespace {

// The most of the current number's time with which another number is chosen. More threads must be faster by more than
// noise; fewer may be slower by less than noise, because they leave processors to other programs.
constexpr double kBetter = 0.93, kAsFast = 1.03;
constexpr double kChange = 1.5;                  // of the time since the last trial: another program began or ended
constexpr double kHopeless = 3;                  // times as slow: the trial ends early
constexpr double kWorse = 1.1;                   // in the first two pairs: the trial ends early
constexpr double kClear = 0.8;                   // in the first two pairs: the trial ends early
constexpr std::uint32_t kSoon = 4, kLate = 128;  // figures between two trials; the first one follows the first token
constexpr std::uint32_t kAtEnd = 16;             // figures after a trial that left no further number in its direction
constexpr double kOvertaken = 1.15;              // of the time that the other number took: it is chosen at once

}  // namespace

ThreadChoice::ThreadChoice(std::uint32_t most) : between_(1) {
  most = std::max(most, 1u);
  rungs_[n_rungs_++] = most;
  if (most > 2) rungs_[n_rungs_++] = most - 1;
  for (std::uint32_t n = most / 2; n > 0; n /= 2) {
    if (n < rungs_[n_rungs_ - 1]) rungs_[n_rungs_++] = n;
  }
}

void ThreadChoice::took(double seconds) {
  if (n_rungs_ == 1) return;
  if (trying()) return in_trial(seconds);
  if (mean_ == 0) {
    mean_ = seconds;
    return begin_trial();
  }
  sum_ += seconds;
  fastest_ = count_ > 0 ? std::min(fastest_, seconds) : seconds;
  if (++count_ < kTokens) return;
  const double mean = sum_ / kTokens;
  sum_ = 0;
  count_ = 0;
  if (least_ > 0 && (mean > kChange * least_ || kChange * mean < before_)) between_ = std::min(between_, kSoon);
  mean_ = mean;
  least_ = least_ > 0 ? std::min(least_, mean) : mean;
  if (other_time_ > 0 && fastest_ > kOvertaken * other_time_) return change();
  if (++figures_ >= between_) begin_trial();
}

/// Compares each run with its neighbour. The median of the ratios decides.
void ThreadChoice::in_trial(double seconds) {
  const bool with_tried = tries_next();
  const bool counts = ++turn_ % kRun == 0;
  if (with_tried && seconds > kHopeless * mean_) return end_trial(false);
  if (!counts) return;
  if (with_tried) {
    with_tried_ = seconds;
    return;
  }
  tried_sum_ += with_tried_;
  chosen_sum_ += seconds;
  ratios_[n_ratios_++] = with_tried_ / seconds;
  const auto known = std::span(ratios_).first(n_ratios_);
  if (n_ratios_ == 2 && std::ranges::min(known) > kWorse) return end_trial(false);
  if (n_ratios_ == 2 && std::ranges::max(known) < kClear) return end_trial(true);
  if (n_ratios_ < kPairs) return;
  std::ranges::nth_element(ratios_, ratios_.begin() + kPairs / 2);
  end_trial(ratios_[kPairs / 2] < (tried_ > chosen_ ? kAsFast : kBetter));
}

/// Tries one rung down or up, then two, because all but one thread may be no better than all, even if half are.
void ThreadChoice::begin_trial() {
  while (!is_rung(next_rung())) ++step_;
  tried_ = static_cast<std::uint32_t>(next_rung());
}

int ThreadChoice::next_rung() const {
  constexpr std::array<int, 4> kSteps{1, -1, 2, -2};
  return static_cast<int>(chosen_) + kSteps[step_ % kSteps.size()];
}

/// Chooses the other number without a trial, which would choose wrongly again: the system gives a thread that has slept
/// the processor of a busy program and takes it back after some tokens, so that too many threads are fast in every
/// trial.
void ThreadChoice::change() {
  std::swap(chosen_, other_);
  tried_ = chosen_;
  std::swap(mean_, other_time_);
  between_ = kLate / 2;
  begin_figures();
}

void ThreadChoice::end_trial(bool better) {
  other_ = better ? chosen_ : tried_;
  other_time_ = n_ratios_ > 0 ? (better ? chosen_sum_ : tried_sum_) / n_ratios_ : 0;
  if (better) {
    chosen_ = tried_;
    between_ = is_rung(next_rung()) ? 1 : kAtEnd;  // tries further in the same direction
    mean_ = with_tried_;
  } else {
    tried_ = chosen_;
    ++step_;
    between_ = std::clamp(2 * between_, kSoon, kLate);
  }
  begin_figures();
}

void ThreadChoice::begin_figures() {
  before_ = mean_;
  least_ = 0;
  sum_ = tried_sum_ = chosen_sum_ = 0;
  count_ = figures_ = turn_ = n_ratios_ = 0;
}

}  // namespace qsf
