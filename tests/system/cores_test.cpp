#include "system/cores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace qsf {
namespace {

TEST(Cores, AreCounted) {
  const std::uint32_t n = usable_cores();
  EXPECT_GE(n, 1u);
  EXPECT_LE(n, std::max(1u, std::thread::hardware_concurrency()));
}

// What pinning means to the system is its own; threads go on in any case, also with more of them than cores.
TEST(Cores, ThreadsGoOnThatArePinned) {
  std::atomic<bool> stop{false};
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      raise_reading_thread();
      while (!stop) std::this_thread::yield();
      ++ended;
    });
  }
  std::vector<ThreadHandle> handles;
  for (std::thread& thread : threads) handles.push_back(thread.native_handle());
  pin_to_cores(handles);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 5);
}

TEST(Cores, HaveAName) { EXPECT_FALSE(processor_name().empty()); }

}  // namespace
}  // namespace qsf
