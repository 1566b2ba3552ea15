// What WebAssembly's two vocabularies share: four vectors of 4 lanes, binary16 widened by integer steps.
#pragma once

#include <wasm_simd128.h>

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vec/convert.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;  // a module that was instantiated can run everything in it
inline constexpr int kMaxPass = 4;

}  // namespace
}  // namespace qsf

#include "kernels/vec/half.h"
