// The choice of the next token from logits. Equal logits, options and seeds give equal tokens on every machine.
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
  /// The options must have passed check(). `scratch`, [vocab_size], must outlive this object.
  void begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch);
  /// Returns the next token from `logits`, [vocab_size], and writes the penalty into them. `context` is every token so
  /// far. The order is penalty, temperature, top_k, top_p; of equal logits, the lower id comes first. Logits must be
  /// finite or -infinity, which a penalty can cause. A token of -infinity is drawn only if there is no other.
  std::uint32_t sample(std::span<float> logits, std::span<const std::uint32_t> context);

 private:
  void penalize(std::span<float> logits, std::span<const std::uint32_t> context);

  SamplerOptions options_;
  const Kernels* kernels_ = nullptr;
  std::span<Candidate> scratch_;
  Random random_;
};

}  // namespace qsf
