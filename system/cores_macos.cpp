#include <pthread.h>
#include <sys/sysctl.h>

#include <algorithm>
#include <array>

#include "system/cores.h"

namespace qsf {

std::uint32_t usable_cores() {
  // Counts cores of the fastest kind if there are several kinds, because a thread on a slower core delays the others.
  for (const char* name : {"hw.perflevel0.physicalcpu", "hw.physicalcpu"}) {
    int n = 0;
    std::size_t size = sizeof n;
    if (::sysctlbyname(name, &n, &size, nullptr, 0) == 0 && n > 0) return static_cast<std::uint32_t>(n);
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

void pin_to_cores(std::span<const ThreadHandle>) {}

std::string processor_name() {
  std::array<char, 256> name{};
  std::size_t size = name.size() - 1;
  const bool told = ::sysctlbyname("machdep.cpu.brand_string", name.data(), &size, nullptr, 0) == 0;
  return told && name[0] != '\0' ? name.data() : "unknown";
}

void raise_reading_thread() { ::pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0); }

}  // namespace qsf
