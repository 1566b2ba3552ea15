// Products of Q4_K weights (row-major: 256 weights in 144 bytes) the other way: weights become floats first, then they
// are multiplied. AVX2, written with the care of the engine's own kernels, to be compared with those for AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsf::bench {

inline constexpr std::uint32_t kSeparateBlock = 256;
inline constexpr std::size_t kSeparateBlockBytes = 144;

/// The name of the instruction set in Kernels::isa.
inline constexpr const char* kSeparateIsa = "avx2";

/// y = weights * x, each block by way of a buffer that stays in the first level of cache.
void separate_product(const std::byte* weights, std::uint32_t rows, std::uint32_t cols, const float* x, float* y);

/// All of a matrix to floats.
void widen_matrix(const std::byte* weights, std::size_t n_blocks, float* out);

}  // namespace qsf::bench
