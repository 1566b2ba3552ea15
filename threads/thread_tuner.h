// A pool whose threads serve a session. Tokens use the number of threads that is fastest at the moment; all other work
// uses all threads.
#pragma once

#include <cstdint>

#include "qsf/engine.h"
#include "threads/thread_choice.h"
#include "threads/thread_pool.h"

namespace qsf {

class ThreadTuner {
 public:
  explicit ThreadTuner(ThreadPool& pool) : pool_(pool), choice_(pool.count()) {}

  /// Prepares a step after another tuner has used the pool. Must be called between two jobs of the pool.
  void resume() { pool_.use(generating_ ? threads() : pool_.count()); }

  /// Reports that the session took a step, or several of which this is the last, from `begin` to `end` in seconds of
  /// one clock. The time of a token includes the time between its steps, because threads that compute can delay the
  /// bytes that the session waits for. Must be called between two jobs of the pool.
  void stepped(Step step, double begin, double end) {
    seconds_ += end - (within_ ? last_ : begin);
    last_ = end;
    within_ = step == Step::working || step == Step::need_bytes;
    if (within_) return;
    const bool token = step == Step::token;
    if (token && generating_) choice_.took(seconds_);
    pool_.use(token ? threads() : pool_.count());
    generating_ = token;
    seconds_ = 0;
  }

  /// Reports that a text begins. The token in whose steps it begins is not timed. Must be called between two jobs of
  /// the pool.
  void begun() {
    within_ = generating_ = false;
    seconds_ = 0;
    pool_.use(pool_.count());
  }

  /// Returns the number of threads for the next token.
  std::uint32_t threads() const { return choice_.threads(); }

 private:
  ThreadPool& pool_;
  ThreadChoice choice_;
  double seconds_ = 0;       // since the last finished step
  double last_ = 0;          // the end of the last step
  bool within_ = false;      // the last step finished nothing
  bool generating_ = false;  // the last finished step made a token
};

}  // namespace qsf
