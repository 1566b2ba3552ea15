#include "run/logprobs.h"

#include "qsf/base/exact.h"
#include "run/candidates.h"

namespace qsf {

void Logprobs::find(std::uint32_t token, std::uint32_t top, std::span<Candidate> scratch, const Kernels& kernels) {
  Candidates candidates(row_, scratch, kernels);
  const Odds odds = candidates.odds();
  const double total = exact::log(candidates.total());
  n_ = 0;
  const auto add = [&](std::uint32_t id) { found_[n_++] = {id, static_cast<float>(odds.exponent(row_[id]) - total)}; };
  add(token);
  for (const Candidate& likely : candidates.likeliest(std::min(top, kMostTopLogprobs))) add(likely.id);
}

}  // namespace qsf
