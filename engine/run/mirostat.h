// Mirostat 1 and 2 (Basu et al. 2021, arXiv:2007.14966): candidates are removed so that the surprise of the drawn
// tokens stays near a target.
#pragma once

#include "qsf/run/sampling.h"
#include "run/candidates.h"

namespace qsf {

class Mirostat {
 public:
  void begin(const SamplerOptions& options);
  bool is_on() const { return version_ != 0; }
  /// Removes candidates. `vocab_size` is the number of all tokens.
  void truncate(Candidates& candidates, std::size_t vocab_size) const;
  /// Takes note of the candidate that was drawn.
  void follow(Candidates& candidates, const Candidate& drawn);

 private:
  std::uint32_t version_ = 0;
  double target_ = 0, rate_ = 0;
  double limit_ = 0;  // of the surprise, in bits; the papers' mu
};

}  // namespace qsf
