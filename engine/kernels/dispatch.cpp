// Which tables this build holds, and which of them this machine can run.
#include <array>

#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace qsf {

extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512VnniKernels;
extern const Kernels kNeonKernels;
extern const Kernels kNeonDotKernels;
extern const Kernels kSimdKernels;
extern const Kernels kRelaxedKernels;

namespace {

// A module that the host has instantiated can run everything in it; so can every 64-bit ARM processor run NEON.
[[maybe_unused]] bool always() { return true; }

#if defined(__x86_64__)
// The compiler's own checks cover the operating system's saving of the registers; F16C is not in every compiler's list.
[[maybe_unused]] bool has_avx2() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 && __builtin_cpu_supports("avx2");
}
[[maybe_unused]] bool has_avx512vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
[[maybe_unused]] bool has_neondot() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return true;  // every 64-bit Apple processor that runs a desktop has it
#endif
}
#endif

struct Candidate {
  const Kernels* kernels;
  bool (*runs_here)();
};

// Slowest first.
constexpr Candidate kCandidates[] = {
    {&kScalarKernels, always},
#ifdef QSF_HAVE_AVX2
    {&kAvx2Kernels, has_avx2},
#endif
#ifdef QSF_HAVE_AVX512VNNI
    {&kAvx512VnniKernels, has_avx512vnni},
#endif
#ifdef QSF_HAVE_NEON
    {&kNeonKernels, always},
#endif
#ifdef QSF_HAVE_NEONDOT
    {&kNeonDotKernels, has_neondot},
#endif
#ifdef QSF_HAVE_SIMD
    {&kSimdKernels, always},
#endif
#ifdef QSF_HAVE_RELAXED
    {&kRelaxedKernels, always},
#endif
};

struct Available {
  std::array<const Kernels*, std::size(kCandidates)> tables{};
  std::size_t count = 0;
};

Available detect() {
  Available found;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.runs_here()) found.tables[found.count++] = candidate.kernels;
  }
  return found;
}

}  // namespace

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
