// A vocabulary for a test: four vectors of 4 lanes, and matrix tiles, in plain C++.
#pragma once

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vector/convert.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;
inline constexpr int kMaxPass = 1;

QSF_INLINE Floats load_promote_f16(const void* at) { return promote_f16(load_promote_u16(at)); }

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  std::uint8_t entries[kLanes * 4];
  std::uint8_t bytes[kLanes * 4];
  store(entries, table);
  store(bytes, codes);
  for (std::uint8_t& byte : bytes) byte = entries[byte];
  return load<Bits>(bytes);
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  for (int byte = 0; byte < 32; byte += 8) {
    sum = sum + (IntPart)(codes >> byte & 0xff) * ((IntPart)(x << (24 - byte)) >> 24);
  }
  return sum;
}

/// As a processor's: signed columns by signed codes.
template <>
class MatrixTiles<Ints> {
 public:
  static constexpr int kColumns = 16;

  explicit MatrixTiles(int dots) : dots_(dots) {}

  void load_columns(const std::int8_t* x) { x_ = x; }

  template <int kIndex>
  void multiply(const void* codes, void* to) const {
    std::int32_t sums[kColumns][kLanes] = {};
    const auto* const by = static_cast<const std::int8_t*>(codes);
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (int i = 0; i < 4 * dots_; ++i) {
        for (int lane = 0; lane < kLanes; ++lane) {
          sums[column][lane] +=
              x_[column * kGroup + static_cast<std::size_t>(i)] * by[i / 4 * 4 * kLanes + 4 * lane + i % 4];
        }
      }
    }
    __builtin_memcpy(to, sums, sizeof sums);
  }

 private:
  int dots_;
  const std::int8_t* x_ = nullptr;
};

}  // namespace
}  // namespace qsf

#include "kernels/dots/unsigned_by_signed.h"
