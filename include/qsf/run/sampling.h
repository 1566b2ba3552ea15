// Sampling of the next token from logits. The same logits, options and seed give the same token on every machine.
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
/// Fails with bad_argument if the temperature, a penalty or top_p is not a number or out of range.
Status check(const SamplerOptions& options);

struct Candidate {
  float logit;
  std::uint32_t id;
};

/// Samples one token without a sequence. The options must have passed check(). `logits` may be overwritten; `scratch`
/// must be as long as `logits`. A token of -infinity is never sampled. Returns not_finite for a NaN or an infinity, or
/// if no token is left.
Result<std::uint32_t> sample_token(const SamplerOptions& options, std::span<float> logits,
                                   std::span<Candidate> scratch);

}  // namespace qsf
