// How the next token is chosen from logits. Same logits, same options, same seed: same token on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/result.h"

namespace qsf {

struct SamplerOptions {
  float temperature = 0.7f;         // 0: the most likely token, always
  std::uint32_t top_k = 40;         // 0: all
  float top_p = 0.9f;               // 1: all
  float repetition_penalty = 1.0f;  // 1: none; on every token of the context so far, as CTRL (Keskar et al. 2019) does
  std::uint64_t seed = 0;
};
/// bad_argument for a temperature, penalty or top_p that is not a number or out of range.
Status check(const SamplerOptions& options);

struct Candidate {
  float logit;
  std::uint32_t id;
};

/// One token, apart from any sequence. The options have passed check(); `logits` may be written to; `scratch` is as
/// long as `logits`.
std::uint32_t sample_token(const SamplerOptions& options, std::span<float> logits, std::span<Candidate> scratch);

}  // namespace qsf
