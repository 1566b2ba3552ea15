#include "threads/thread_tuner.h"

#include <gtest/gtest.h>

namespace qsf {
namespace {

/// A session's steps on a clock of the test. Each token computes for a time by the number of threads, and then waits
/// for bytes, longer if all threads compute.
class Clocked {
 public:
  Clocked() : pool_(2), tuner_(pool_) {}

  ThreadTuner& tuner() { return tuner_; }
  void step(Step step, double seconds) {
    tuner_.stepped(step, now_, now_ + seconds);
    now_ += seconds;
  }
  void pass(double seconds) { now_ += seconds; }
  void token(double computing, double waiting) {
    step(Step::need_bytes, computing / 2);
    pass(waiting);
    step(Step::token, computing / 2);
  }

 private:
  ThreadPool pool_;
  ThreadTuner tuner_;
  double now_ = 100;
};

TEST(ThreadTuner, CountsTheTimeForWhichATokenWaits) {
  Clocked clocked;
  for (int i = 0; i < 100; ++i) {
    const bool one = clocked.tuner().threads() == 1;
    clocked.token(one ? 1.0 : 0.7, one ? 0.1 : 1.0);
  }
  EXPECT_EQ(clocked.tuner().threads(), 1u);
}

TEST(ThreadTuner, CountsNoTimeBetweenTokens) {
  Clocked clocked;
  for (int i = 0; i < 100; ++i) {
    const bool one = clocked.tuner().threads() == 1;
    clocked.token(one ? 1.0 : 0.6, 0.1);
    clocked.pass(one ? 0 : 10);  // the page is slow
  }
  EXPECT_EQ(clocked.tuner().threads(), 2u);
}

// Were they counted, every run with one thread would be a hundred times as long as its neighbour.
TEST(ThreadTuner, CountsNoTokenInWhoseStepsATextBegins) {
  Clocked clocked;
  bool one = false;
  for (int i = 0; i < 100; ++i) {
    one = clocked.tuner().threads() == 1;
    clocked.token(one ? 0.5 : 1.0, 0);
    if (!one) continue;
    clocked.step(Step::working, 0.1);
    clocked.pass(100);  // stopped, and begun later
    clocked.tuner().begun();
    clocked.step(Step::token, 1);
  }
  EXPECT_TRUE(one);
}

}  // namespace
}  // namespace qsf
