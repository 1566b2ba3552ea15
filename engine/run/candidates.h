// The tokens that are left while samplers are applied: at first every token whose logit is not -infinity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "qsf/base/exact.h"
#include "run/likeliest.h"

namespace qsf {

struct Kernels;

/// Probabilities divided by the likeliest candidate's, from logits.
struct Odds {
  static constexpr double kLowestExponent = -700;  // below it, exp counts as 0
  double top;                                      // the highest logit
  double temperature;

  /// Returns the logarithm of the odds.
  double exponent(float logit) const { return (static_cast<double>(logit) - top) / temperature; }
  double operator()(float logit) const {
    const double e = exponent(logit);
    return e < kLowestExponent ? 0.0 : exact::exp(e);
  }
};

/// At least one candidate is left after every call, if there was one at first. Sums are over candidates in an order
/// that depends on the calls only, so that they have the same bits everywhere.
class Candidates {
 public:
  /// Both spans, [vocab_size], must outlive this object, which writes to them.
  Candidates(std::span<float> logits, std::span<Candidate> scratch, const Kernels& kernels)
      : logits_(logits), scratch_(scratch), kernels_(&kernels) {}

  bool empty() { return best().logit == kRemoved; }
  std::size_t size();
  /// Returns the likeliest candidate; of equals, the one with the lower id.
  Candidate best();

  /// The divisor of logits in odds(), 1 at first.
  void set_temperature(double temperature) { temperature_ = temperature; }
  Odds odds() { return {static_cast<double>(best().logit), temperature_}; }
  /// Returns the sum of all odds.
  double total();

  /// Calls f(candidate) for each candidate until it returns true. Returns whether it did.
  template <class F>
  bool any(F f) const {
    if (listed_) {
      for (const Candidate& c : list_) {
        if (f(c)) return true;
      }
      return false;
    }
    for (std::uint32_t id = 0; id < logits_.size(); ++id) {
      if (logits_[id] != kRemoved && f(Candidate{logits_[id], id})) return true;
    }
    return false;
  }
  template <class F>
  void each(F f) const {
    any([&](const Candidate& c) { return f(c), false; });
  }

  /// Returns the `m` likeliest candidates, likeliest first, or all if there are fewer. Valid until the next call of a
  /// function that is not const.
  std::span<Candidate> likeliest(std::size_t m);
  /// Returns all candidates, which the caller may reorder and must then pass to keep().
  std::span<Candidate> list();
  /// Keeps the candidates of a span that starts as the last result of likeliest() or list() does. `sorted`: they are
  /// still in the order of likeliest().
  void keep(std::span<Candidate> kept, bool sorted);
  /// Keeps the candidates for which f(candidate) is true, of which there must be one.
  template <class F>
  void keep_if(F f) {
    std::size_t n = 0;
    each([&](Candidate c) {
      if (f(c)) scratch_[n++] = c;
    });
    keep(scratch_.first(n), listed_ && sorted_);
  }
  void keep_best();

  /// Returns a candidate with the probability of its odds; `uniform` is in [0, 1).
  Candidate draw(double uniform);

  /// The logits of the whole vocabulary, in which -infinity marks the tokens that are not left, and memory that the
  /// caller may use until the next call. The caller may change logits that are not -infinity, to finite ones.
  struct Room {
    std::span<float> logits;
    std::span<Candidate> memory;
  };
  Room logits();

 private:
  static constexpr float kRemoved = -std::numeric_limits<float>::infinity();

  std::span<float> logits_;
  std::span<Candidate> scratch_;
  const Kernels* kernels_;
  double temperature_ = 1;
  // The candidates are those of list_ if listed_, else those of logits_.
  bool listed_ = false, sorted_ = false;
  std::span<Candidate> list_;  // the beginning of scratch_
  std::optional<Candidate> best_;
};

}  // namespace qsf
