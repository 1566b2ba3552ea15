// From logits to the next token. Same logits, same options, same seed: same token on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/base/result.h"
#include "qsf/run/sampling.h"
#include "run/likeliest.h"
#include "run/random.h"

namespace qsf {

struct Kernels;

class Sampler {
 public:
  /// The options have passed check(); scratch: [vocab_size], owned by the caller's arena.
  void begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch);
  /// `context`: every token fed so far. The order is penalty, temperature, top_k, top_p; of equal logits the lower id
  /// comes first. Writes into `logits`: the penalty, and -infinity for what is not a number. Where all
  /// are -infinity: 0.
  std::uint32_t sample(std::span<float> logits, std::span<const std::uint32_t> context);

 private:
  void penalize(std::span<float> logits, std::span<const std::uint32_t> context);

  SamplerOptions options_;
  const Kernels* kernels_ = nullptr;
  std::span<Candidate> scratch_;
  Random random_;
};

}  // namespace qsf
