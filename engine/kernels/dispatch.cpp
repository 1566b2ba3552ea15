// Selection of this build's instruction sets that this machine can run.
#include <algorithm>
#include <array>

#include "kernels/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace qsf {

namespace {

#if defined(__x86_64__)
/// Asks Linux for matrix tiles: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). Linux saves tiles only for
/// processes that have asked. Other systems are not supported.
bool allow_tiles() {
#ifdef __linux__
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}
#endif

std::uint64_t read([[maybe_unused]] CpuWord word) {
#if defined(__x86_64__)
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  switch (word) {
    case CpuWord::leaf1_ecx:
      return __get_cpuid(1, &a, &b, &c, &d) != 0 ? c : 0;
    case CpuWord::leaf7_ebx:
      return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 ? b : 0;
    case CpuWord::leaf7_ecx:
      return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 ? c : 0;
    case CpuWord::leaf7_edx:
      return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 ? d : 0;
    case CpuWord::leaf7_1_eax:
      return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 ? a : 0;
    case CpuWord::xcr0:
      if ((read(CpuWord::leaf1_ecx) & bit_OSXSAVE) == 0) return 0;
      __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
      return std::uint64_t{d} << 32 | a;
    case CpuWord::tiles_allowed:
      return allow_tiles() ? 1 : 0;
    default:
      return 0;
  }
#elif defined(__aarch64__) && defined(__linux__)
  return getauxval(AT_HWCAP);
#else
  return ~std::uint64_t{0};  // 64-bit Apple processors have everything that is required
#endif
}

bool runs_here(const Isa& isa) {
  return std::ranges::all_of(isa.needs, [](CpuBit need) { return (read(need.word) >> need.bit & 1) != 0; });
}

/// Whether weights are prefetched at one distance only. From family 26 on, AMD's processors fetch far ahead by
/// themselves, and a second prefetch of a line displaces others in progress: one distance is 1.1 to 1.25 times as fast
/// (docs/decisions/0007). Other processors use the distances that are best on an Intel Xeon.
bool asks_once() {
#if defined(__x86_64__)
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0 || b != signature_AMD_ebx) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  constexpr std::uint32_t kBase = 15;  // the extended family is added to it
  return (a >> 8 & 15) == kBase && kBase + (a >> 20 & 255) >= 26;
#else
  return false;
#endif
}

struct Available {
  std::array<const Kernels*, kMaxIsas> tables{};
  std::size_t count = 0;
};

Available detect() {
  if (asks_once()) read_ahead = {8192, 0};
  Available found;
  for (const Isa* const isa : built_isas()) {
    if (runs_here(*isa)) found.tables[found.count++] = &isa->kernels;
  }
  return found;
}

}  // namespace

constinit ReadAhead read_ahead = kBothLevels;

std::span<const Kernels* const> available_kernels() {
  static const Available available = detect();
  return {available.tables.data(), available.count};
}

const Kernels& best_kernels() { return *available_kernels().back(); }

const Kernels* find_kernels(std::string_view isa) {
  for (const Kernels* const kernels : available_kernels()) {
    if (kernels->isa == isa) return kernels;
  }
  return nullptr;
}

}  // namespace qsf
