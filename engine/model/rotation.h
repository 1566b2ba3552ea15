// The rotation of keys, queries and values before they are rounded to few bits: a Walsh-Hadamard transform spreads
// large values over a block. It consists of sums, differences and a power of two, in one order, so it has the same bits
// everywhere.
#pragma once

#include <bit>
#include <cstdint>

namespace qsf {

/// Returns the length of a block: the largest power of two that divides the lengths, of which the second may be 0.
constexpr std::uint32_t rotation_block(std::uint32_t head_dim, std::uint32_t latent_dim = 0) {
  return 1u << std::countr_zero(head_dim | latent_dim);
}

/// Transforms each block of `x`, n values. To transform twice, once with and once without `back`, is the identity but
/// for the rounding of sums. The dot product of two vectors is that of their transforms, one with `back` and one
/// without.
void rotate(float* x, std::uint32_t n, std::uint32_t block, bool back);

}  // namespace qsf
