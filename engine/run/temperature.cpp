// The temperature, constant or by the entropy.
#include <algorithm>

#include "qsf/base/exact.h"
#include "run/samplers.h"

namespace qsf {
namespace {

/// Returns the entropy of the candidates as a share of the highest possible one; 0 for one candidate.
double entropy_share(Candidates& candidates) {
  const Odds odds = candidates.odds();
  double sum = 0, mean = 0;  // of exponents
  std::size_t n = 0;
  candidates.each([&](const Candidate& c) {
    const double w = odds(c.logit);
    sum += w;
    mean += w * odds.exponent(c.logit);
    ++n;
  });
  if (n < 2) return 0;
  const double entropy = exact::log(sum) - mean / sum;
  return std::clamp(entropy / exact::log(static_cast<double>(n)), 0.0, 1.0);
}

/// Returns a number in [0, 1] to a power of 0 or more.
double power(double base, double exponent) {
  if (base > 0) return exact::pow(base, exponent);
  return exponent == 0 ? 1 : 0;
}

}  // namespace

void samplers::temperature(Candidates& candidates, const SamplerInput& in) {
  const SamplerOptions& o = in.options;
  double temperature = o.temperature;
  if (o.dynatemp_range > 0) {
    const double least = std::max(0.0, temperature - double{o.dynatemp_range});
    const double most = temperature + double{o.dynatemp_range};
    temperature = least + (most - least) * power(entropy_share(candidates), double{o.dynatemp_exponent});
  }
  if (temperature > 0) return candidates.set_temperature(temperature);
  candidates.keep_best();
}

}  // namespace qsf
