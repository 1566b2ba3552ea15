// How the next token is chosen from logits. Same logits, same options, same seed: same token on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/boundary.h"
#include "qsf/base/result.h"

namespace qsf {

struct SamplerOptions {
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
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
