// A pool whose threads serve a session: for its tokens as many as are fastest at the moment, for all else all of them.
#pragma once

#include "qsf/engine.h"
#include "threads/thread_choice.h"
#include "threads/thread_pool.h"

namespace qsf {

class ThreadTuner {
 public:
  explicit ThreadTuner(ThreadPool& pool) : pool_(pool), choice_(pool.count()) {}

  /// The session took a step, or several of which this is the last, in so many seconds. Between two jobs of the pool.
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
  double seconds_ = 0;       // since there was something to tell
  bool generating_ = false;  // the last of what was told is a token
};

}  // namespace qsf
