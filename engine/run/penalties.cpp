// Numbers that are added to the logits of single tokens: biases, and penalties on tokens of the context.
#include <algorithm>
#include <limits>

#include "run/samplers.h"

namespace qsf {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest(), kHighest = std::numeric_limits<float>::max();
constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Divides a positive logit by the penalty and multiplies another with it (Keskar et al. 2019, arXiv:1909.05858).
float penalized(float logit, float penalty) {
  return std::clamp(logit > 0 ? logit / penalty : logit * penalty, kLowest, kHighest);
}

}  // namespace

float lowered(float logit, double amount) {
  if (logit == kMasked) return logit;
  return static_cast<float>(std::clamp(static_cast<double>(logit) - amount, double{kLowest}, double{kHighest}));
}

std::span<const std::uint32_t> last_tokens(std::span<const std::uint32_t> tokens, std::int32_t n) {
  return n < 0 ? tokens : tokens.last(std::min(tokens.size(), static_cast<std::size_t>(n)));
}

void add_bias(std::span<float> logits, std::span<const TokenBias> biases) {
  for (const TokenBias& bias : biases) {
    if (bias.token >= logits.size()) continue;
    float& logit = logits[bias.token];
    logit = bias.bias == kMasked ? kMasked : lowered(logit, -static_cast<double>(bias.bias));
  }
}

void samplers::penalties(Candidates& candidates, const SamplerInput& in) {
  const SamplerOptions& o = in.options;
  const bool adds = o.presence_penalty != 0 || o.frequency_penalty != 0;
  if (o.repetition_penalty == 1 && !adds) return;
  const std::span<const std::uint32_t> window = last_tokens(in.context, o.repeat_last_n);
  const auto [logits, counts] = candidates.logits();
  const auto in_vocabulary = [n = logits.size()](std::uint32_t id) { return id < n; };
  for (const std::uint32_t id : window) {
    if (in_vocabulary(id)) counts[id].id = 0;
  }
  for (const std::uint32_t id : window) {
    if (in_vocabulary(id)) ++counts[id].id;
  }
  for (const std::uint32_t id : window) {
    if (!in_vocabulary(id) || counts[id].id == 0) continue;
    const double count = counts[id].id;
    counts[id].id = 0;
    if (logits[id] == kMasked) continue;
    logits[id] = penalized(logits[id], o.repetition_penalty);
    if (adds) logits[id] = lowered(logits[id], double{o.presence_penalty} + count * double{o.frequency_penalty});
  }
}

}  // namespace qsf
