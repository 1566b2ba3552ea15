// AVX-512 with VNNI.
#pragma once

#include "kernels/vector/zmm.h"
// after the vectors that it uses
#include "kernels/vector/lookups.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds = kAvx512Vnni;

}  // namespace
}  // namespace qsf
