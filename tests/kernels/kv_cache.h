// One head's keys or values in the cache, read by docs/internals/attention-and-kv.md.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One head's cache whose memory ends at an unreadable page.
struct Cache {
  Cache(KvForm form, std::uint32_t capacity, std::uint32_t head_dim)
      : form(form), head_dim(head_dim), memory(std::size_t{capacity} * kv_bytes(form, head_dim)) {}

  std::byte* position(std::uint32_t slot) const { return memory.data() + std::size_t{slot} * kv_bytes(form, head_dim); }
  void store(const Kernels& kernels, std::span<const float> x, std::uint32_t slot) const {
    kernels.kv_store[static_cast<std::size_t>(form)](x.data(), head_dim, position(slot));
  }

  /// By docs/internals/attention-and-kv.md.
  struct Group {
    float scale;
    float minimum;
    std::uint32_t code;
  };
  Group group(std::uint32_t slot, std::uint32_t d) const {
    const std::uint32_t bits = form == KvForm::q4 ? 4 : 2, code_bytes = 32 * bits / 8, v = d % 32;
    const std::byte* const at = position(slot) + d / 32 * (4 + code_bytes);
    const auto byte = std::to_integer<std::uint32_t>(at[4 + v % code_bytes]);
    return {bf16_to_f32(read<bf16>(at)), bf16_to_f32(read<bf16>(at + 2)),
            byte >> (bits * (v / code_bytes)) & ((1u << bits) - 1)};
  }
  /// The same of the rotated forms: a scale and a level.
  struct Level {
    float scale, level;
    float value() const { return scale * level; }
  };
  Level level(std::uint32_t slot, std::uint32_t d) const {
    const std::uint32_t bits = form == KvForm::r8 ? 8 : form == KvForm::r4 ? 4 : form == KvForm::r3 ? 3 : 2;
    const std::byte* const at = position(slot) + d / 32 * (2 + 4 * bits);
    const std::byte* const codes = at + 2;
    const std::uint32_t v = d % 32, low = bits == 3 ? 2 : bits, n = 4 * low;
    if (bits == 8) return {bf16_to_f32(read<bf16>(at)), static_cast<float>(read<std::int8_t>(codes + v))};
    auto code = std::to_integer<std::uint32_t>(codes[v % n]) >> (low * (v / n)) & ((1u << low) - 1);
    if (bits == 3) code += 4 * (std::to_integer<std::uint32_t>(codes[8 + v / 8]) >> (v % 8) & 1);
    return {bf16_to_f32(read<bf16>(at)), 2 * static_cast<float>(code) - static_cast<float>((1u << bits) - 1)};
  }
  float value(std::uint32_t slot, std::uint32_t d) const {
    const std::byte* const at = position(slot);
    if (form >= KvForm::r8) return level(slot, d).value();
    if (form == KvForm::f32) return read<float>(at + 4 * d);
    if (form == KvForm::f16) return f16_to_f32(read<f16>(at + 2 * d));
    if (form == KvForm::q8) return read<float>(at) * static_cast<float>(read<std::int8_t>(at + 4 + d));
    const Group g = group(slot, d);
    return g.minimum + g.scale * static_cast<float>(g.code);
  }

  KvForm form;
  std::uint32_t head_dim;
  Guarded memory;
};

/// Whether values have at most 11 significant bits.
inline bool is_short(KvForm form) { return form == KvForm::f16 || form >= KvForm::r8; }

}  // namespace qsf::test
