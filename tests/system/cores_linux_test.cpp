#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

#include "system/cores.h"

namespace qsf {
namespace {

TEST(Cores, HoldTheThreadsThatArePinned) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { stop.wait(false); });
  std::vector<ThreadHandle> handles;
  for (std::thread& thread : threads) handles.push_back(thread.native_handle());
  pin_to_cores(handles);
  for (std::thread& thread : threads) {
    cpu_set_t set;
    ASSERT_EQ(::pthread_getaffinity_np(thread.native_handle(), sizeof set, &set), 0);
    EXPECT_EQ(CPU_COUNT(&set), 1);
  }
  stop = true;
  stop.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace qsf
