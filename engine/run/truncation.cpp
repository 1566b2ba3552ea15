// The samplers that only remove candidates.
#include <algorithm>
#include <cmath>

#include "qsf/base/exact.h"
#include "run/samplers.h"

namespace qsf {
namespace {

/// Returns the first candidates, in an order, whose odds sum to `wanted`, or all. `first(m)` returns the first m, or
/// all if there are fewer.
template <class First>
std::span<Candidate> first_of_sum(const Odds& odds, double wanted, First first) {
  for (std::size_t m = 256;; m *= 8) {
    const std::span<Candidate> list = first(m);
    double sum = 0;
    std::size_t n = 0;
    for (; n < list.size() && sum < wanted; ++n) sum += odds(list[n].logit);
    if (sum >= wanted || list.size() < m) return list.first(n);
  }
}

}  // namespace

namespace samplers {

void top_k(Candidates& candidates, const SamplerInput& in) {
  const std::size_t k = in.options.top_k;
  if (k == 0 || k >= candidates.size()) return;
  candidates.keep(candidates.likeliest(k), true);
}

/// Nucleus sampling (Holtzman et al. 2019, arXiv:1904.09751).
void top_p(Candidates& candidates, const SamplerInput& in) {
  if (in.options.top_p >= 1) return;
  const Odds odds = candidates.odds();
  const double wanted = static_cast<double>(in.options.top_p) * candidates.total();
  const auto first = [&](std::size_t m) { return candidates.likeliest(m); };
  candidates.keep(first_of_sum(odds, wanted, first), true);
}

/// Min-p (Nguyen et al. 2024, arXiv:2407.01082).
void min_p(Candidates& candidates, const SamplerInput& in) {
  if (in.options.min_p == 0) return;
  const Odds odds = candidates.odds();
  const double least = exact::log(double{in.options.min_p});
  candidates.keep_if([&](const Candidate& c) { return odds.exponent(c.logit) >= least; });
}

/// Locally typical sampling (Meister et al. 2022, arXiv:2202.00666). The information of a token minus its expected
/// value, the entropy, is the expected exponent minus the token's exponent.
void typical_p(Candidates& candidates, const SamplerInput& in) {
  if (in.options.typical_p >= 1) return;
  const Odds odds = candidates.odds();
  double sum = 0, expected = 0;
  candidates.each([&](const Candidate& c) {
    const double w = odds(c.logit);
    sum += w;
    expected += w * odds.exponent(c.logit);
  });
  expected /= sum;
  const auto nearer = [&](const Candidate& a, const Candidate& b) {
    const double of_a = std::abs(expected - odds.exponent(a.logit));
    const double of_b = std::abs(expected - odds.exponent(b.logit));
    return of_a < of_b || (of_a == of_b && likelier(a, b));
  };
  const std::span<Candidate> list = candidates.list();
  const auto first = [&](std::size_t m) {
    const std::span<Candidate> nearest = list.first(std::min(m, list.size()));
    std::nth_element(list.begin(), nearest.end(), list.end(), nearer);
    std::ranges::sort(nearest, nearer);
    return nearest;
  };
  const std::span<Candidate> kept = first_of_sum(odds, double{in.options.typical_p} * sum, first);
  sort_by_likelihood(kept);
  candidates.keep(kept, true);
}

/// Top-n-sigma (Tang et al. 2024, arXiv:2411.07641). The temperature divides distances and deviation alike.
void top_n_sigma(Candidates& candidates, const SamplerInput& in) {
  if (in.options.top_n_sigma <= 0) return;
  double n = 0, mean = 0, variance = 0;
  candidates.each([&](const Candidate& c) {
    mean += double{c.logit};
    ++n;
  });
  mean /= n;
  candidates.each([&](const Candidate& c) { variance += (double{c.logit} - mean) * (double{c.logit} - mean); });
  const double deviation = std::sqrt(variance / n);
  const double least = double{candidates.best().logit} - double{in.options.top_n_sigma} * deviation;
  candidates.keep_if([&](const Candidate& c) { return double{c.logit} >= least; });
}

/// Exclude top choices (Weidmann 2024, text-generation-webui #6335).
void xtc(Candidates& candidates, const SamplerInput& in) {
  if (in.options.xtc_probability == 0 || in.random.uniform() >= double{in.options.xtc_probability}) return;
  const Odds odds = candidates.odds();
  const double least = double{in.options.xtc_threshold} * candidates.total();
  const auto is_top = [&](const Candidate& c) { return odds(c.logit) >= least; };
  std::size_t n = 0;
  Candidate last{};
  candidates.each([&](const Candidate& c) {
    if (!is_top(c)) return;
    if (n++ == 0 || likelier(last, c)) last = c;
  });
  if (n < 2) return;
  candidates.keep_if([&](const Candidate& c) { return c.id == last.id || !is_top(c); });
}

}  // namespace samplers
}  // namespace qsf
