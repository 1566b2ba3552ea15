// An instruction set as dispatch sees it: its kernels, and what the processor must show before any of them may run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace qsf {

/// Where processors say what they have: x86's cpuid (leaf, sub-leaf 0 or another, register) and XCR0, which tells the
/// registers that the operating system saves; Linux' AT_HWCAP on ARM. tiles_allowed is 1 where the system lets this
/// process use matrix tiles, for which it is asked when this is read.
enum class CpuWord : std::uint8_t {
  leaf1_ecx,
  leaf7_ebx,
  leaf7_ecx,
  leaf7_edx,
  leaf7_1_eax,
  xcr0,
  tiles_allowed,
  hwcap
};

struct CpuBit {
  CpuWord word;
  std::uint8_t bit;
};

struct Isa {
  Kernels kernels;
  std::span<const CpuBit> needs;  // looked at in this order, until one is not there
};

/// How many bytes ahead a product's weights are asked for into the first and the second level of cache; 0 asks for what
/// is there.
struct ReadAhead {
  std::ptrdiff_t first;
  std::ptrdiff_t second;
};
constexpr ReadAhead kBothLevels{1024, 8192};
/// With few columns, as is best on this machine from available_kernels() on.
extern ReadAhead read_ahead;

inline constexpr std::size_t kMaxIsas = 16;  // in one build

/// Slowest first; the first is the scalar one.
std::span<const Isa* const> built_isas();

}  // namespace qsf
