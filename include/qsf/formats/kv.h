// The storage of a key or value of one attention head in the cache: docs/internals/attention-and-kv.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qsf/base/kv_type.h"

namespace qsf {

inline constexpr std::uint32_t kMaxHeadDim = 1024;
inline constexpr std::uint32_t kKvGroup = 32;  // values of at most 4 bits, and of r8, that share a scale

/// The stored form of a key or of a value. r8 to r2 round numbers that are rotated.
enum class KvForm : std::uint8_t { f32, f16, q8, q4, q2, r8, r4, r3, r2 };
inline constexpr std::size_t kKvForms = static_cast<std::size_t>(KvForm::r2) + 1;

struct KvForms {
  KvForm key, value;

  /// Whether keys, queries and values are rotated, and positions are also kept in f16.
  constexpr bool rotates() const { return key >= KvForm::r8; }
};

constexpr KvForms forms_of(KvType type) {
  switch (type) {
    case KvType::f32:
      return {KvForm::f32, KvForm::f32};
    case KvType::f16:
      return {KvForm::f16, KvForm::f16};
    case KvType::q8:
      return {KvForm::q8, KvForm::q8};
    case KvType::q4:
      return {KvForm::q4, KvForm::q4};
    case KvType::q2:
      return {KvForm::q2, KvForm::q2};
    case KvType::k8v4:
      return {KvForm::r8, KvForm::r4};
    case KvType::k4v4:
      return {KvForm::r4, KvForm::r4};
    case KvType::k4v3:
      return {KvForm::r4, KvForm::r3};
    case KvType::k4v2:
      return {KvForm::r4, KvForm::r2};
    case KvType::k3v3:
      return {KvForm::r3, KvForm::r3};
    case KvType::k2v2:
      return {KvForm::r2, KvForm::r2};
  }
  return {};
}

/// Returns the bytes of one position of one head.
constexpr std::uint32_t kv_bytes(KvForm form, std::uint32_t head_dim) {
  const std::uint32_t groups = (head_dim + kKvGroup - 1) / kKvGroup;
  switch (form) {
    case KvForm::f32:
      return head_dim * 4;
    case KvForm::f16:
      return head_dim * 2;
    case KvForm::q8:
      return 4 + head_dim;
    case KvForm::q4:
      return groups * (4 + kKvGroup * 4 / 8);
    case KvForm::q2:
      return groups * (4 + kKvGroup * 2 / 8);
    case KvForm::r8:
      return groups * (2 + kKvGroup);
    case KvForm::r4:
      return groups * (2 + kKvGroup * 4 / 8);
    case KvForm::r3:
      return groups * (2 + kKvGroup * 3 / 8);
    case KvForm::r2:
      return groups * (2 + kKvGroup * 2 / 8);
  }
  return 0;
}

}  // namespace qsf
