// The samplers: functions that change the logits of candidates or remove some. docs/reference/sampling.md describes
// them.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/run/sampling.h"
#include "qsf/text/tokenizer.h"
#include "run/candidates.h"
#include "run/random.h"

namespace qsf {

/// The input of a sampler in addition to the candidates.
struct SamplerInput {
  const SamplerOptions& options;
  std::span<const std::uint32_t> context;  // every token so far
  const Tokenizer* tokenizer;              // null: tokens have no text
  Random& random;
};

/// Each does nothing with the defaults of its options, except top_k, temperature and top_p.
namespace samplers {
#define QSF_SAMPLER(name, meaning) void name(Candidates& candidates, const SamplerInput& in);
#include "qsf/base/enumerations.def"
}  // namespace samplers

/// Applies the samplers of the options in their order. With Mirostat, leaves out those that only remove candidates.
void apply_samplers(Candidates& candidates, const SamplerInput& in);

/// Adds biases to logits. Ids that are not in the vocabulary are ignored.
void add_bias(std::span<float> logits, std::span<const TokenBias> biases);

/// Returns the last `n` tokens, or all if there are fewer or `n` is negative.
std::span<const std::uint32_t> last_tokens(std::span<const std::uint32_t> tokens, std::int32_t n);

/// Returns the nearest finite number to logit - amount; -infinity if the logit is -infinity.
float lowered(float logit, double amount);

}  // namespace qsf
