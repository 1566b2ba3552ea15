// The choice of the next token from logits. Equal logits, options and seeds give equal tokens on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "qsf/base/result.h"
#include "qsf/run/sampling.h"
#include "run/mirostat.h"
#include "run/random.h"

namespace qsf {

struct Kernels;
class Tokenizer;

class Sampler {
 public:
  /// The options must have passed check(). `scratch`, [vocab_size], and the tokenizer must outlive this object. Without
  /// a tokenizer (null), no text ends a repetition.
  void begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch,
             const Tokenizer* tokenizer);
  /// Returns the next token from `logits`, [vocab_size], which it overwrites, or nothing if all of them are -infinity.
  /// `context` is every token so far. Of equal logits, the lower id comes first. Logits must be finite or -infinity. A
  /// token of -infinity is never returned.
  std::optional<std::uint32_t> sample(std::span<float> logits, std::span<const std::uint32_t> context);

 private:
  SamplerOptions options_;
  const Kernels* kernels_ = nullptr;
  const Tokenizer* tokenizer_ = nullptr;
  std::span<Candidate> scratch_;
  Random random_;
  Mirostat mirostat_;
};

}  // namespace qsf
