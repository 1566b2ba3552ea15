// An instruction set for dispatch: its kernels, and the processor features that they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace qsf {

/// The words that report processor features: x86's cpuid (leaf, sub-leaf if not 0, register), XCR0 with the registers
/// that the operating system saves, and Linux' AT_HWCAP on ARM. tiles_allowed is 1 if the system lets this process use
/// matrix tiles; reading it asks the system.
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
  std::span<const CpuBit> needs;  // read in this order until one is missing
};

/// The distances in bytes at which a product prefetches weights into the first and the second level of cache. 0
/// prefetches the current position.
struct ReadAhead {
  std::ptrdiff_t first;
  std::ptrdiff_t second;
};
constexpr ReadAhead kBothLevels{1024, 8192};
/// The distances for products with few columns. available_kernels() sets them for this machine.
extern ReadAhead read_ahead;

inline constexpr std::size_t kMaxIsas = 16;  // in one build

/// Returns the instruction sets of this build, slowest first. The first is the scalar one.
std::span<const Isa* const> built_isas();

}  // namespace qsf
