#include "native/thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace qsf {
namespace {

constexpr int kSpins = 2000;  // some tens of microseconds, the usual gap between two products

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::string first_line(const char* path) {
  char line[256] = {};
  if (std::FILE* file = std::fopen(path, "r")) {
    if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
    std::fclose(file);
  }
  return line;
}

#ifdef __linux__
std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) allowed.push_back(i);
    }
  }
  return allowed;
}

/// Processors' worth of time that cgroup v2 grants, rounded up; 0 for no limit.
std::uint32_t quota() {
  unsigned long long limit = 0, period = 0;
  if (std::sscanf(first_line("/sys/fs/cgroup/cpu.max").c_str(), "%llu %llu", &limit, &period) != 2) return 0;
  return period == 0 ? 0 : static_cast<std::uint32_t>(std::min((limit + period - 1) / period, 4096ull));
}
#endif

}  // namespace

std::uint32_t usable_cores() {
#ifdef __linux__
  std::set<std::string> cores;  // processors that share a core name the same siblings
  for (const int i : allowed_processors()) {
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list";
    const std::string siblings = first_line(path.c_str());
    cores.insert(siblings.empty() ? std::to_string(i) : siblings);
  }
  auto n = static_cast<std::uint32_t>(cores.size());
  if (const std::uint32_t limit = quota(); limit != 0) n = std::min(n, limit);
#else
  const std::uint32_t n = std::thread::hardware_concurrency();
#endif
  return std::max(n, 1u);
}

ThreadPool::ThreadPool(std::uint32_t n_threads, bool pin) {
  if (n_threads == 0) n_threads = usable_cores();
  threads_.reserve(n_threads - 1);
  for (std::uint32_t i = 1; i < n_threads; ++i) threads_.emplace_back([this] { serve(); });
#ifdef __linux__
  if (const std::vector<int> allowed = allowed_processors(); pin && !allowed.empty()) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(allowed[(i + 1) % allowed.size()], &set);
      ::pthread_setaffinity_np(threads_[i].native_handle(), sizeof set, &set);
    }
  }
#else
  (void)pin;
#endif
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Workers ThreadPool::workers() {
  Workers workers;
  workers.host = this;
  workers.count = count();
  workers.run = [](void* host, Task task, void* context, std::uint32_t n) {
    static_cast<ThreadPool*>(host)->run(task, context, n);
  };
  return workers;
}

void ThreadPool::run(Task task, void* context, std::uint32_t n) {
  if (threads_.empty() || n <= 1) {
    for (std::uint32_t i = 0; i < n; ++i) task(context, i);
    return;
  }
  // Two numbers per job: under the first, nothing can be claimed, and what the job is can be written.
  const std::uint32_t closed = job_.load(std::memory_order_relaxed) + 1;
  const std::uint32_t open = closed + 1;
  ticket_.store(std::uint64_t{closed} << 32 | 0xffffffffu);
  n_.store(n);
  task_.store(task);
  context_.store(context);
  done_.store(0);
  ticket_.store(std::uint64_t{open} << 32);
  job_.store(open);
  job_.notify_all();
  while (work(ticket_.load())) {
  }
  for (int spin = 0; spin < kSpins && done_.load(std::memory_order_acquire) != n; ++spin) relax();
  for (std::uint32_t done = done_.load(); done != n; done = done_.load()) done_.wait(done);
}

/// Claims and does some of the job under `ticket`; false when nothing of it is left to claim.
bool ThreadPool::work(std::uint64_t ticket) {
  const Task task = task_.load();
  void* context = context_.load();
  const std::uint32_t n = n_.load();
  const auto begin = static_cast<std::uint32_t>(ticket);
  if (begin >= n) return false;
  const std::uint32_t share = std::max((n - begin) / (4 * count()), 1u);
  // Whatever was read above belongs to this ticket's job if the ticket still stands now.
  if (!ticket_.compare_exchange_strong(ticket, ticket + share)) return true;
  for (std::uint32_t i = begin; i < begin + share; ++i) task(context, i);
  if (done_.fetch_add(share) + share == n) done_.notify_one();
  return true;
}

void ThreadPool::serve() {
  std::uint32_t seen = 0;
  while (true) {
    while (work(ticket_.load())) {
    }
    for (int spin = 0; spin < kSpins && job_.load(std::memory_order_acquire) == seen; ++spin) relax();
    if (const std::uint32_t now = job_.load(); now != seen) {
      seen = now;
    } else {
      job_.wait(seen);
    }
    if (stop_) return;
  }
}

}  // namespace qsf
