#include "native/cores.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace qsf {

#ifdef __linux__
namespace {

std::string first_line(const char* path) {
  char line[256] = {};
  if (std::FILE* file = std::fopen(path, "r")) {
    if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
    std::fclose(file);
  }
  return line;
}

/// One processor of each core that this process may run on.
std::vector<int> cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> found;
  std::set<std::string> seen;  // processors of one core name the same siblings
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list";
    const std::string siblings = first_line(path.c_str());
    if (seen.insert(siblings.empty() ? std::to_string(i) : siblings).second) found.push_back(i);
  }
  return found;
}

/// Processors' worth of time that cgroup v2 grants, rounded up; 0 for no limit.
std::uint32_t quota() {
  unsigned long long limit = 0, period = 0;
  if (std::sscanf(first_line("/sys/fs/cgroup/cpu.max").c_str(), "%llu %llu", &limit, &period) != 2) return 0;
  return period == 0 ? 0 : static_cast<std::uint32_t>(std::min((limit + period - 1) / period, 4096ull));
}

}  // namespace

std::uint32_t usable_cores() {
  auto n = static_cast<std::uint32_t>(cores().size());
  if (const std::uint32_t limit = quota(); limit != 0) n = std::min(n, limit);
  return std::max(n, 1u);
}

void pin_to_cores(std::span<std::thread> threads) {
  const std::vector<int> to = cores();
  if (to.empty()) return;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(to[(i + 1) % to.size()], &one);
    ::pthread_setaffinity_np(threads[i].native_handle(), sizeof one, &one);
  }
}
#else
std::uint32_t usable_cores() { return std::max(std::thread::hardware_concurrency(), 1u); }

void pin_to_cores(std::span<std::thread>) {}
#endif

}  // namespace qsf
