// The largest logits in order, without sorting the whole vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/run/sampling.h"

namespace qsf {

/// Compares by a total order, so that no result depends on the standard library's algorithms: the larger logit is
/// first, and of equal ones the lower id.
constexpr bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Sorts by likelier().
void sort_by_likelihood(std::span<Candidate> candidates);

/// Returns the `m` largest logits, largest first; of equal ones, the lower id first. Omits logits of -infinity. The
/// result is the beginning of `scratch`, which must have room for all logits. No logit may be a NaN.
std::span<Candidate> likeliest(std::span<const float> logits, std::size_t m, std::span<Candidate> scratch);

}  // namespace qsf
