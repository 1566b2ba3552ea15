// The likeliest of a vocabulary in order, without sorting the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/run/sampling.h"

namespace qsf {

/// The `m` largest logits, largest first, of equals the lower id first; those of -infinity are left out. Written to the
/// beginning of `scratch`, which has room for all logits. No logit may be a NaN.
std::span<Candidate> likeliest(std::span<const float> logits, std::size_t m, std::span<Candidate> scratch);

}  // namespace qsf
