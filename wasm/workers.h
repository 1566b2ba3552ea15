// The threads that an instance lends to its session: several if the module's memory is shared, else only the caller's.
#pragma once

#include <cstdint>
#include <memory>

#include "qsf/engine.h"

namespace qsf {

class LentThreads {
 public:
  /// Starts n - 1 threads, for which the module has workers; the caller's thread is the last. With `tuned`, decode uses
  /// the number of threads that is fastest at the moment.
  LentThreads(std::uint32_t n, bool tuned);
  ~LentThreads();
  /// Lends the threads of `owner`, which must outlive the object, instead of own ones. Only one of both may compute at
  /// a time, and each has its own number of threads for decode.
  void share(LentThreads& owner);

  Workers workers();
  /// Must be called before a step, because another session may have used the threads.
  void stepping();
  /// See ThreadTuner.
  void stepped(Step step, double begin, double end);
  /// See ThreadTuner.
  void begun();
  /// Ends the threads. Later work runs on the caller's thread.
  void end();

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace qsf
