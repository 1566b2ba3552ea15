// Random weights in GGML's types: whatever the codes, a weight has mean 0 and about the deviation that was asked for.
#pragma once

#include <cstdint>
#include <span>

#include "support/gguf.h"
#include "support/seeded.h"

namespace qsf::test {

struct BlockType {
  GgmlType type;
  std::uint32_t weights, bytes;
  void (*fill)(Random& random, float deviation, std::byte* block);
};
/// f16, q2_0, q4_0, q5_0, q8_0, q4_k or q6_k.
const BlockType& block_type(GgmlType type);

/// Whole blocks.
void fill_random(const BlockType& type, Random& random, float deviation, std::span<std::byte> out);

}  // namespace qsf::test
