// A pool whose threads serve a session. Tokens use the number of threads that is fastest at the moment; all other work
// uses all threads.
#pragma once

#include "qsf/engine.h"
#include "threads/thread_choice.h"
#include "threads/thread_pool.h"

namespace qsf {

class ThreadTuner {
 public:
  explicit ThreadTuner(ThreadPool& pool) : pool_(pool), choice_(pool.count()) {}

  /// Reports that the session took a step, or several of which this is the last, in `seconds`. Must be called between
  /// two jobs of the pool.
  void stepped(Step step, double seconds) {
    seconds_ += seconds;
    if (step == Step::working || step == Step::need_bytes) return;
    const bool token = step == Step::token;
    if (token && generating_) choice_.took(seconds_);
    pool_.use(token ? choice_.threads() : pool_.count());
    generating_ = token;
    seconds_ = 0;
  }

 private:
  ThreadPool& pool_;
  ThreadChoice choice_;
  double seconds_ = 0;       // since the last finished step
  bool generating_ = false;  // the last finished step made a token
};

}  // namespace qsf
