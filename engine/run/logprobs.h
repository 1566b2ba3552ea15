// Log-probabilities of a sampled token and of the likeliest ones, by the logits as the model gives them: before masks,
// biases and samplers, which write to the logits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "qsf/run/logprobs.h"
#include "qsf/run/sampling.h"

namespace qsf {

struct Kernels;

class Logprobs {
 public:
  /// `row`, [vocab_size], must outlive this object. Empty: no token has log-probabilities.
  void init(std::span<float> row) { row_ = row; }
  bool is_open() const { return !row_.empty(); }
  void clear() { n_ = 0; }
  /// Keeps a row of logits, [vocab_size].
  void keep(std::span<const float> logits) { std::ranges::copy(logits, row_.begin()); }
  /// Computes the log-probabilities of `token` and of the `top` likeliest tokens in the row. Overwrites `scratch`,
  /// [vocab_size]. The sum over the vocabulary has one order, so that every machine gives the same bits.
  void find(std::uint32_t token, std::uint32_t top, std::span<Candidate> scratch, const Kernels& kernels);
  /// Returns that token, and then the likeliest ones in their order. Empty after clear().
  std::span<const TokenLogprob> found() const { return std::span(found_).first(n_); }

 private:
  std::span<float> row_;
  std::array<TokenLogprob, 1 + kMostTopLogprobs> found_{};
  std::size_t n_ = 0;
};

}  // namespace qsf
