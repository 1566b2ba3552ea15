// The largest logits in order, without sorting the whole vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/run/sampling.h"

namespace qsf {

/// Returns the `m` largest logits, largest first; of equal ones, the lower id first. Omits logits of -infinity. The
/// result is the beginning of `scratch`, which must have room for all logits. No logit may be a NaN.
std::span<Candidate> likeliest(std::span<const float> logits, std::size_t m, std::span<Candidate> scratch);

}  // namespace qsf
