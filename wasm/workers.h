// The threads that an instance lends to its session: several where the module's memory is shared, else the caller's
// alone.
#pragma once

#include <cstdint>
#include <memory>

#include "qsf/engine.h"

namespace qsf {

class LentThreads {
 public:
  /// `n` of them, the caller's among them; the module has workers for those beside the caller's.
  /// With `tuned`, tokens are made by as many of them as are fastest at the moment.
  LentThreads(std::uint32_t n, bool tuned);
  ~LentThreads();

  Workers workers();
  /// See ThreadTuner.
  void stepped(Step step, double seconds);
  /// Ends them. What is still computed, the caller's thread does.
  void end();

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace qsf
