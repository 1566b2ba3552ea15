// The alternative to fused products of Q4_K weights (row-major: 256 weights in 144 bytes): weights become floats first
// and are then multiplied. The code is for AVX2, written with the care of the engine's own kernels, and is compared
// with those for AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsf::bench {

inline constexpr std::uint32_t kSeparateBlock = 256;
inline constexpr std::size_t kSeparateBlockBytes = 144;

/// The name of the instruction set in Kernels::isa.
inline constexpr const char* kSeparateIsa = "avx2";

/// Computes y = weights * x. Each block goes through a buffer that stays in the first level of cache.
void separate_product(const std::byte* weights, std::uint32_t rows, std::uint32_t cols, const float* x, float* y);

/// Converts all of a matrix to floats.
void widen_matrix(const std::byte* weights, std::size_t n_blocks, float* out);

}  // namespace qsf::bench
