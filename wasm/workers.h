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
  explicit LentThreads(std::uint32_t n);
  ~LentThreads();

  Workers workers();
  /// Ends them. What is still computed, the caller's thread does.
  void end();

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace qsf
