// The storage of a key or value of one attention head in the cache: docs/internals/attention-and-kv.md.
#pragma once

#include <cstdint>

#include "qsf/base/kv_type.h"

namespace qsf {

inline constexpr std::uint32_t kMaxHeadDim = 1024;
inline constexpr std::uint32_t kKvGroup = 32;  // values of 4 and 2 bits that share a scale and a minimum

/// Returns the bytes of one position of one head: docs/internals/attention-and-kv.md.
constexpr std::uint32_t kv_bytes(KvType type, std::uint32_t head_dim) {
  const std::uint32_t groups = (head_dim + kKvGroup - 1) / kKvGroup;
  switch (type) {
    case KvType::f32:
      return head_dim * 4;
    case KvType::f16:
      return head_dim * 2;
    case KvType::q8:
      return 4 + head_dim;
    case KvType::q4:
      return groups * (4 + kKvGroup * 4 / 8);
    case KvType::q2:
      return groups * (4 + kKvGroup * 2 / 8);
  }
  return 0;
}

}  // namespace qsf
