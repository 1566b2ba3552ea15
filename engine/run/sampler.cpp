#include "run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/exact.h"
#include "kernels/kernels.h"

namespace qsf {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLowestExponent = -700;  // below it exp is as good as 0

/// A total order, so that selections do not depend on the standard library's algorithms.
bool likelier(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

}  // namespace

Status check(const SamplerOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return make_error(ErrorCode::bad_argument, "temperature is %g; it must be 0 or more",
                      static_cast<double>(options.temperature));
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return make_error(ErrorCode::bad_argument, "top_p is %g; it must be above 0 and at most 1",
                      static_cast<double>(options.top_p));
  }
  if (!std::isfinite(options.repetition_penalty) || options.repetition_penalty <= 0) {
    return make_error(ErrorCode::bad_argument, "repetition_penalty is %g; it must be above 0",
                      static_cast<double>(options.repetition_penalty));
  }
  return {};
}

void Sampler::begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch) {
  options_ = options;
  kernels_ = &kernels;
  scratch_ = scratch;
  random_ = Random(options.seed);
}

/// Divides the positive and multiplies the other logits of every distinct token of the context.
void Sampler::penalize(std::span<float> logits, std::span<const std::uint32_t> context) {
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.0f) return;
  for (const std::uint32_t id : context) {
    if (id < logits.size()) scratch_[id].id = 0;  // not seen yet
  }
  for (const std::uint32_t id : context) {
    if (id >= logits.size() || scratch_[id].id != 0) continue;
    scratch_[id].id = 1;
    logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
  }
}

std::uint32_t Sampler::sample(std::span<float> logits, std::span<const std::uint32_t> context) {
  penalize(logits, context);
  for (float& logit : logits) {
    if (std::isnan(logit)) logit = -kInfinity;
    if (logit == kInfinity) logit = std::numeric_limits<float>::max();
  }
  const auto n_logits = static_cast<std::uint32_t>(logits.size());
  const std::uint32_t best = kernels_->argmax(logits.data(), n_logits);
  if (options_.temperature == 0) return best;

  std::size_t n = 0;
  for (std::uint32_t id = 0; id < n_logits; ++id) {
    if (logits[id] != -kInfinity) scratch_[n++] = {logits[id], id};
  }
  if (n == 0) return best;
  std::span<Candidate> kept = scratch_.first(n);
  const bool select = options_.top_k != 0 && options_.top_k < n;
  if (select) {
    std::nth_element(kept.begin(), kept.begin() + options_.top_k - 1, kept.end(), likelier);
    kept = kept.first(options_.top_k);
    std::sort(kept.begin(), kept.end(), likelier);
  }

  const double top = static_cast<double>(logits[best]), temperature = static_cast<double>(options_.temperature);
  const auto weight = [&](const Candidate& c) {
    const double exponent = (static_cast<double>(c.logit) - top) / temperature;
    return exponent < kLowestExponent ? 0.0 : exact::exp(exponent);
  };
  double sum = 0;
  for (const Candidate& c : kept) sum += weight(c);

  if (options_.top_p < 1) {
    // The likeliest few of all: taken off a heap, which puts them behind what is left of it.
    const double wanted = static_cast<double>(options_.top_p) * sum;
    const auto less = [](const Candidate& a, const Candidate& b) { return likelier(b, a); };
    if (!select) std::make_heap(kept.begin(), kept.end(), less);
    sum = 0;
    std::size_t n_kept = 0;
    while (n_kept < kept.size() && sum < wanted) {
      if (!select) std::pop_heap(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(n_kept), less);
      sum += weight(select ? kept[n_kept] : kept[kept.size() - 1 - n_kept]);
      ++n_kept;
    }
    if (select) {
      kept = kept.first(n_kept);
    } else {
      kept = kept.last(n_kept);
      std::reverse(kept.begin(), kept.end());
    }
  }

  const double drawn = random_.uniform() * sum;
  double reached = 0;
  for (const Candidate& c : kept) {
    reached += weight(c);
    if (drawn < reached) return c.id;
  }
  return best;  // only rounding leads here
}

}  // namespace qsf
