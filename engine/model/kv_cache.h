// Keys and values of every layer and KV head: a ring of `capacity` positions each (the seed's phase 7).
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "kernels/kernels.h"
#include "model/config.h"

namespace qsf {

class KvCache {
 public:
  /// Bytes that one more position takes over all layers.
  static std::uint64_t bytes_per_position(const Config& config, KvType type) {
    return 2ull * config.n_layers * config.n_kv_heads * kv_bytes(type, config.head_dim);
  }

  Status init(Arena& arena, const Config& config, KvType type, std::uint32_t capacity) {
    const auto memory = arena.take<std::byte>(bytes_per_position(config, type) * capacity, Region::lanes);
    if (!memory) return memory.error();
    memory_ = *memory;
    type_ = type;
    capacity_ = capacity;
    n_heads_ = config.n_kv_heads;
    position_bytes_ = kv_bytes(type, config.head_dim);
    return {};
  }

  /// [capacity, position_bytes()]
  std::byte* keys(std::uint32_t layer, std::uint32_t head) const { return at(2ull * layer * n_heads_ + head); }
  std::byte* values(std::uint32_t layer, std::uint32_t head) const { return at((2ull * layer + 1) * n_heads_ + head); }
  KvType type() const { return type_; }
  std::uint32_t capacity() const { return capacity_; }
  std::size_t position_bytes() const { return position_bytes_; }

 private:
  std::byte* at(std::uint64_t index) const { return memory_.data() + index * capacity_ * position_bytes_; }

  std::span<std::byte> memory_;  // [n_layers, 2, n_kv_heads, capacity, position_bytes]
  std::size_t position_bytes_ = 0;
  std::uint32_t capacity_ = 0, n_heads_ = 0;
  KvType type_ = KvType::f16;
};

}  // namespace qsf
