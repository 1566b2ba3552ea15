#include "run/mirostat.h"

#include <algorithm>
#include <cmath>

#include "qsf/base/exact.h"

namespace qsf {
namespace {

constexpr double kLn2 = exact::kLn2High + exact::kLn2Low;
constexpr std::size_t kEstimated = 100;  // likeliest tokens from which version 1 estimates Zipf's exponent

/// Returns the exponent of Zipf's law that fits the likeliest candidates best: minimal squares of the logarithms of
/// ratios of neighbouring probabilities.
double zipf_exponent(std::span<const Candidate> likeliest, const Odds& odds) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < likeliest.size(); ++i) {
    const double rank = static_cast<double>(i + 1);
    const double ratio = exact::log((rank + 1) / rank);
    products += ratio * (odds.exponent(likeliest[i].logit) - odds.exponent(likeliest[i + 1].logit));
    squares += ratio * ratio;
  }
  return products / squares;
}

/// Returns the number k of tokens whose expected surprise is `limit` by Zipf's law with exponent s over n tokens:
/// ((s - 1) 2^limit / (1 - n^(1 - s)))^(1 / s).
double zipf_count(double s, double limit, std::size_t n) {
  constexpr double kNearOne = 1e-6;
  const double excess = s - 1, log_n = exact::log(static_cast<double>(n));
  // The fraction tends to 1 / log n for s = 1.
  const double divisor = std::abs(excess) < kNearOne ? log_n : (1 - exact::exp(-excess * log_n)) / excess;
  const double log_count = limit * kLn2 - exact::log(divisor);  // times s
  if (s == 0) return log_count < 0 ? 0 : static_cast<double>(n);
  return exact::exp(log_count / s);
}

}  // namespace

void Mirostat::begin(const SamplerOptions& options) {
  version_ = options.mirostat;
  target_ = double{options.mirostat_tau};
  rate_ = double{options.mirostat_eta};
  limit_ = 2 * target_;
}

void Mirostat::truncate(Candidates& candidates, std::size_t vocab_size) const {
  const Odds odds = candidates.odds();
  if (version_ == 1) {
    const std::span<const Candidate> likeliest = candidates.likeliest(kEstimated);
    if (likeliest.size() < 2) return;
    const double count = zipf_count(zipf_exponent(likeliest, odds), limit_, vocab_size);
    const double kept = std::clamp(count, 1.0, static_cast<double>(candidates.size()));
    return candidates.keep(candidates.likeliest(static_cast<std::size_t>(kept)), true);
  }
  // A token's surprise is the logarithm of the sum of odds minus its exponent.
  const double least = exact::log(candidates.total()) - limit_ * kLn2;
  const std::uint32_t best = candidates.best().id;
  candidates.keep_if([&](const Candidate& c) { return odds.exponent(c.logit) >= least || c.id == best; });
}

void Mirostat::follow(Candidates& candidates, const Candidate& drawn) {
  const double surprise = exact::log(candidates.total()) - candidates.odds().exponent(drawn.logit);
  limit_ -= rate_ * (surprise / kLn2 - target_);
}

}  // namespace qsf
