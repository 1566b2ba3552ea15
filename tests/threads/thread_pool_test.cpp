#include "threads/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <set>

namespace qsf {
namespace {

template <class Body>
void run(ThreadPool& pool, std::uint32_t n, Body&& body) {
  pool.run([](void* context, std::uint32_t i) { (*static_cast<Body*>(context))(i); }, &body, n);
}

TEST(ThreadPool, EveryTaskOnce) {
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.count(), threads);
    for (const std::uint32_t n : {0u, 1u, 2u, 3u, 7u, 64u, 1000u}) {
      std::vector<std::atomic<int>> done(n);
      run(pool, n, [&](std::uint32_t i) { ++done[i]; });
      for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(done[i], 1) << threads << " threads, task " << i << " of " << n;
    }
  }
}

// Many short jobs after each other: a late thread must never run a task of an old job, nor miss one of a new.
TEST(ThreadPool, JobsDoNotMix) {
  ThreadPool pool(4);
  std::vector<std::uint32_t> sums(64);
  for (std::uint32_t job = 0; job < 20000; ++job) {
    const std::uint32_t n = 1 + job % 64;
    run(pool, n, [&](std::uint32_t i) { sums[i] += job; });
  }
  std::vector<std::uint32_t> expected(64);
  for (std::uint32_t job = 0; job < 20000; ++job) {
    for (std::uint32_t i = 0; i < 1 + job % 64; ++i) expected[i] += job;
  }
  EXPECT_EQ(sums, expected);
}

// One task is slow: the others must be done by whoever is free, so the slow one is all that is waited for.
TEST(ThreadPool, ASlowTaskDelaysNoOther) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  int done_when_slow_ended = 0;
  run(pool, 8, [&](std::uint32_t i) {
    if (i == 0) {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (done < 7 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      done_when_slow_ended = done;
    } else {
      ++done;
    }
  });
  EXPECT_EQ(done_when_slow_ended, 7);
}

TEST(ThreadPool, UsesAsManyAsItIsTold) {
  ThreadPool pool(4);
  const auto used = [&] {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    for (int i = 0; i < 200; ++i) {
      run(pool, 16, [&](std::uint32_t) {
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
    }
    return ids;
  };
  for (const std::uint32_t n : {1u, 3u, 2u, 4u, 1u}) {
    pool.use(n);
    EXPECT_LE(used().size(), n);
  }
  EXPECT_EQ(used(), std::set{std::this_thread::get_id()});
  pool.use(4);
  std::atomic<int> arrived{0};
  run(pool, 4, [&](std::uint32_t) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();  // each task holds its thread until all four have begun
  });
}

TEST(ThreadPool, UsesItsThreads) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  run(pool, 3, [&](std::uint32_t) {
    {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < 3) std::this_thread::yield();  // each task holds its thread until all three have begun
  });
  EXPECT_EQ(ids.size(), 3u);
}

TEST(ThreadPool, WakesFromParking) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough to have parked
    std::atomic<int> arrived{0};
    run(pool, 2, [&](std::uint32_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPool, LendsWorkers) {
  ThreadPool pool(2);
  const Workers workers = pool.workers();
  EXPECT_EQ(workers.count, 2u);
  std::atomic<std::uint32_t> sum{0};
  workers.run(
      workers.host, [](void* context, std::uint32_t i) { *static_cast<std::atomic<std::uint32_t>*>(context) += i; },
      &sum, 100);
  EXPECT_EQ(sum, 4950u);
}

// Other work is done by the threads beside the caller's, also by those that sleep, and holds up no job.
TEST(ThreadPool, DoesOtherWorkBetweenJobs) {
  struct Work {
    std::atomic<int> left{0}, done{0};
    std::atomic<bool> by_caller{false};
    std::thread::id caller = std::this_thread::get_id();
    static bool some(void* context) {
      auto& work = *static_cast<Work*>(context);
      int left = work.left;
      while (left > 0 && !work.left.compare_exchange_weak(left, left - 1)) {
      }
      if (left <= 0) return false;
      if (std::this_thread::get_id() == work.caller) work.by_caller = true;
      ++work.done;
      return true;
    }
  };
  for (const std::uint32_t threads : {2u, 4u}) {
    Work work;
    ThreadPool pool(threads);
    pool.lend(&Work::some, &work);
    int asked = 0;
    for (int round = 0; round < 200; ++round) {
      if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough to have parked
      work.left += 3;
      asked += 3;
      pool.call();
      std::atomic<std::uint32_t> sum{0};
      run(pool, 20, [&](std::uint32_t i) { sum += i; });
      EXPECT_EQ(sum, 190u);
    }
    while (work.done < asked) std::this_thread::yield();
    EXPECT_FALSE(work.by_caller);
    EXPECT_EQ(work.left, 0);
  }
}

TEST(ThreadPool, WorksOnAloneOnceEnded) {
  ThreadPool pool(3);
  const Workers workers = pool.workers();
  pool.end();
  pool.end();
  EXPECT_EQ(pool.count(), 1u);
  std::set<std::thread::id> ids;
  std::uint32_t sum = 0;
  parallel_for(workers, 10, [&](std::uint32_t i) {
    ids.insert(std::this_thread::get_id());
    sum += i;
  });
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
  EXPECT_EQ(sum, 45u);
}

}  // namespace
}  // namespace qsf
