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
    const std::uint64_t scale = type == KvType::q8 ? sizeof(float) : 0;
    return 2ull * config.n_layers * config.n_kv_heads * (config.head_dim * kv_code_bytes(type) + scale);
  }

  Status init(Arena& arena, const Config& config, KvType type, std::uint32_t capacity) {
    type_ = type;
    capacity_ = capacity;
    n_heads_ = config.n_kv_heads;
    head_bytes_ = std::uint64_t{capacity} * config.head_dim * kv_code_bytes(type);
    const std::uint64_t heads = 2ull * config.n_layers * n_heads_;
    const auto codes = arena.take<std::byte>(heads * head_bytes_, "kv cache");
    if (!codes) return codes.error();
    const auto scales = arena.take<float>(type == KvType::q8 ? heads * capacity : 0, "kv cache");
    if (!scales) return scales.error();
    codes_ = *codes;
    scales_ = *scales;
    return {};
  }

  KvHead keys(std::uint32_t layer, std::uint32_t head) const { return at(2ull * layer * n_heads_ + head); }
  KvHead values(std::uint32_t layer, std::uint32_t head) const { return at((2ull * layer + 1) * n_heads_ + head); }
  KvType type() const { return type_; }
  std::uint32_t capacity() const { return capacity_; }

 private:
  KvHead at(std::uint64_t index) const {
    return {codes_.data() + index * head_bytes_, scales_.empty() ? nullptr : scales_.data() + index * capacity_};
  }

  std::span<std::byte> codes_;  // [n_layers, 2, n_kv_heads, capacity, head_dim]
  std::span<float> scales_;     // [n_layers, 2, n_kv_heads, capacity]
  std::uint64_t head_bytes_ = 0;
  std::uint32_t capacity_ = 0, n_heads_ = 0;
  KvType type_ = KvType::f16;
};

}  // namespace qsf
