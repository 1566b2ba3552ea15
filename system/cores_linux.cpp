#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "system/cores.h"

namespace qsf {
namespace {

std::string first_line(const char* path) {
  char line[256] = {};
  if (std::FILE* file = std::fopen(path, "r")) {
    if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
    std::fclose(file);
  }
  return line;
}

/// Returns one processor of each core that this process may run on.
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

/// Returns the processor time that cgroup v2 grants, in processors, rounded up; 0 for no limit.
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

void pin_to_cores(std::span<const ThreadHandle> threads) {
  const std::vector<int> to = cores();
  if (to.empty()) return;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(to[(i + 1) % to.size()], &one);
    ::pthread_setaffinity_np(threads[i], sizeof one, &one);
  }
}

std::string processor_name() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> info(std::fopen("/proc/cpuinfo", "re"), std::fclose);
  std::array<char, 512> line{};
  while (info && std::fgets(line.data(), line.size(), info.get()) != nullptr) {
    const std::string_view text = line.data();
    if (!text.starts_with("model name") && !text.starts_with("CPU part")) continue;
    const std::size_t begin = text.find_first_not_of(" \t", text.find(':') + 1), end = text.find('\n');
    if (begin < end) return std::string(text.substr(begin, end - begin));
  }
  return "unknown";
}

void raise_reading_thread() {
  // The first of the eight best-effort levels; the default is the fourth. Raising the thread itself needs rights, and
  // its unpacking would then displace the computing threads.
  constexpr int kThread = 1, kBestEffort = 2 << 13;
  ::syscall(SYS_ioprio_set, kThread, 0, kBestEffort);
}

}  // namespace qsf
