#include "threads/thread.h"

#include <gtest/gtest.h>
#ifdef __GLIBC__
#include <pthread.h>
#endif

#include <atomic>
#include <cstddef>

#include "threads/thread_pool.h"

namespace qsf {
namespace {

struct Counter {
  std::atomic<int> n{0};
  std::thread::id by;
  void add() {
    by = std::this_thread::get_id();
    ++n;
  }
};

TEST(Thread, RunsItsBodyOnceForEachStart) {
  Counter counter;
  Thread thread;
  thread.join();
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(thread.start<&Counter::add>(&counter));
    EXPECT_TRUE(thread.started());
    thread.join();
    EXPECT_FALSE(thread.started());
    EXPECT_EQ(counter.n, i);
    EXPECT_NE(counter.by, std::this_thread::get_id());
  }
  {
    Thread joined;
    ASSERT_TRUE(joined.start<&Counter::add>(&counter));
  }
  EXPECT_EQ(counter.n, 4) << "a thread that goes waits for its body";
}

#ifdef __GLIBC__
/// New threads get stacks that are larger than any address space, so the system refuses them at once. A stack that only
/// exceeds the memory is no substitute, because qemu keeps a record of each page that is reserved.
class HugeStacks {
 public:
  HugeStacks() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 62);
    set_ = ::pthread_setattr_default_np(&huge) == 0;
    ::pthread_attr_destroy(&huge);
  }
  ~HugeStacks() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  bool set() const { return set_; }

 private:
  pthread_attr_t before_;
  bool set_;
};

TEST(Thread, IsRefusedByTheSystem) {
  const std::uint32_t before = Thread::refused();
  Counter counter;
  Thread thread;
  {
    const HugeStacks huge;
    ASSERT_TRUE(huge.set());
    EXPECT_FALSE(thread.start<&Counter::add>(&counter));
    EXPECT_FALSE(thread.started());
    thread.join();
    EXPECT_EQ(Thread::refused(), before + 1);
  }
  ASSERT_TRUE(thread.start<&Counter::add>(&counter));
  thread.join();
  EXPECT_EQ(counter.n, 1);
  EXPECT_EQ(Thread::refused(), before + 1);
}

TEST(Thread, APoolWorksWithThoseThatThereAre) {
  const HugeStacks huge;
  ASSERT_TRUE(huge.set());
  ThreadPool pool(4);
  EXPECT_EQ(pool.count(), 1u);
  EXPECT_EQ(pool.workers().count, 1u);
  EXPECT_TRUE(pool.handles().empty());
  std::uint32_t sum = 0;
  parallel_for(pool.workers(), 10, [&](std::uint32_t i) { sum += i; });
  EXPECT_EQ(sum, 45u);
}
#endif

}  // namespace
}  // namespace qsf
