#include "run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLowestExponent = -700;  // below it, exp counts as 0

constexpr std::size_t kFirstTry = 256;  // candidates for top_p; each next try has eight times as many

std::size_t count_masked(std::span<const float> logits) {
  return static_cast<std::size_t>(std::ranges::count(logits, -kInfinity));
}

template <class T>
Status check(std::string_view name, T value, double least, double most) {
  const double number = static_cast<double>(value);
  if (number >= least && number <= most) return {};
  if (least == static_cast<double>(boundary::kAboveZero)) {
    return make_error(ErrorCode::bad_argument, "{} is {}; it must be above 0 and at most {}", name, value, most);
  }
  return make_error(ErrorCode::bad_argument, "{} is {}; it must be {} to {}", name, value, least, most);
}

}  // namespace

Status check(const SamplerOptions& options) {
  using boundary::kAboveZero;
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) \
  QSF_TRY(check(#name, options.name, static_cast<double>(least), static_cast<double>(most)));
#include "qsf/base/boundary.def"
  return {};
}

void Sampler::begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch) {
  options_ = options;
  kernels_ = &kernels;
  scratch_ = scratch;
  random_ = Random(options.seed);
}

/// Divides positive logits by the penalty and multiplies others with it, for every distinct token of the context.
void Sampler::penalize(std::span<float> logits, std::span<const std::uint32_t> context) {
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.0f) return;
  for (const std::uint32_t id : context) {
    if (id < logits.size()) scratch_[id].id = 0;  // not seen yet
  }
  for (const std::uint32_t id : context) {
    if (id >= logits.size() || scratch_[id].id != 0) continue;
    scratch_[id].id = 1;
    const float penalized = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
    logits[id] = std::min(penalized, std::numeric_limits<float>::max());
  }
}

std::uint32_t Sampler::sample(std::span<float> logits, std::span<const std::uint32_t> context) {
  penalize(logits, context);
  const std::uint32_t best = kernels_->argmax(logits.data(), static_cast<std::uint32_t>(logits.size()));
  if (options_.temperature == 0) return best;
  const std::size_t n = logits.size() - count_masked(logits);  // tokens that can be drawn
  if (n == 0) return best;

  const double top = static_cast<double>(logits[best]), temperature = static_cast<double>(options_.temperature);
  const auto weight = [&](float logit) {
    const double exponent = (static_cast<double>(logit) - top) / temperature;
    return exponent < kLowestExponent ? 0.0 : exact::exp(exponent);
  };
  const bool top_k = options_.top_k != 0 && options_.top_k < n;
  std::span<Candidate> kept;
  double sum = 0;
  if (top_k) {
    kept = likeliest(logits, options_.top_k, scratch_);
    for (const Candidate& c : kept) sum += weight(c.logit);
  } else {
    kept = scratch_.first(logits.size());
    for (std::uint32_t id = 0; id < logits.size(); ++id) {
      kept[id] = {logits[id], id};
      sum += weight(logits[id]);
    }
  }

  if (options_.top_p < 1) {
    const double wanted = static_cast<double>(options_.top_p) * sum;
    std::size_t n_kept = 0;
    for (std::size_t m = kFirstTry; n_kept == 0 || (sum < wanted && n_kept < n && !top_k); m *= 8) {
      if (!top_k) kept = likeliest(logits, m, scratch_);
      sum = 0;
      for (n_kept = 0; n_kept < kept.size() && sum < wanted; ++n_kept) sum += weight(kept[n_kept].logit);
    }
    kept = kept.first(n_kept);
  }

  const double drawn = random_.uniform() * sum;
  double reached = 0;
  for (const Candidate& c : kept) {
    reached += weight(c.logit);
    if (drawn < reached) return c.id;
  }
  return best;  // reached only by rounding
}

Result<std::uint32_t> sample_token(const SamplerOptions& options, std::span<float> logits,
                                   std::span<Candidate> scratch) {
  const auto wrong = std::ranges::find_if(logits, [](float logit) { return std::isnan(logit) || logit == kInfinity; });
  if (wrong != logits.end()) {
    return make_error(ErrorCode::not_finite, "the logit of token {} is {}, no finite number", wrong - logits.begin(),
                      *wrong);
  }
  if (count_masked(logits) == logits.size()) {
    return make_error(ErrorCode::not_finite, "all of {} logits are -infinity: there is no token to choose",
                      logits.size());
  }
  Sampler sampler;
  sampler.begin(options, best_kernels(), scratch);
  return sampler.sample(logits, {});
}

}  // namespace qsf
