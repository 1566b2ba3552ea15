// Log-probabilities of tokens.
#pragma once

#include <cstdint>

namespace qsf {

/// The most tokens that are reported next to the sampled one.
inline constexpr std::uint32_t kMostTopLogprobs = 20;

/// The natural logarithm of the probability that the model gives to a token.
struct TokenLogprob {
  std::uint32_t token;
  float logprob;  // at most 0; -infinity if the model excludes the token
};

}  // namespace qsf
