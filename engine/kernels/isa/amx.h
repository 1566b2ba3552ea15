// AVX-512 with VNNI and AMX: tiles of up to 16 rows of 64 bytes, and products of int8 tiles.
#pragma once

#include <array>

#include "kernels/vector/zmm.h"

namespace qsf {
namespace {

/// The required features. The system is asked for tiles only if all other features are there.
inline constexpr auto kNeeds = [] {
  constexpr CpuBit kTiles[] = {{CpuWord::xcr0, 17},       // the system saves tiles' shapes
                               {CpuWord::xcr0, 18},       // and tiles
                               {CpuWord::leaf7_edx, 24},  // AMX-TILE
                               {CpuWord::leaf7_edx, 25},  // AMX-INT8
                               {CpuWord::tiles_allowed, 0}};
  std::array<CpuBit, std::size(kAvx512Vnni) + std::size(kTiles)> needs{};
  std::size_t n = 0;
  for (const CpuBit need : kAvx512Vnni) needs[n++] = need;
  for (const CpuBit need : kTiles) needs[n++] = need;
  return needs;
}();

// Processors with AMX have fast gather instructions, which nothing slows down.

/// Returns the low halves of words in `low`, the high halves in `high`.
QSF_INLINE void lookup(const std::uint64_t* table, Bits numbers, Bits& low, Bits& high) {
  const auto words = [&](__m256i half) __attribute__((always_inline)) {
    return (BitsPart)_mm512_mask_i32gather_epi64(_mm512_setzero_si512(), 0xff, half, table, sizeof *table);
  };
  const BitsPart a = words(half_of<0>(numbers)), b = words(half_of<1>(numbers));
  low = {{__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)}};
  high = {{__builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)}};
}
QSF_INLINE Bits lookup(const std::uint32_t* table, Bits numbers) {
  const auto at = (__m512i)numbers.part[0];
  return {{(BitsPart)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), kAll, at, table, sizeof *table)}};
}

/// Tiles 0 and 1 hold the sums of a strip each, tile 2 the columns, tiles 3 and 4 the codes. A row of tile 2 is a
/// column, a row of codes is 16 rows of weights by 4 columns, and a row of sums is 16 rows. The instructions are
/// written as assembly, because GCC's intrinsics do not declare that they read memory (GCC 12).
template <>
class MatrixTiles<Ints> {
 public:
  static constexpr int kColumns = 16;

  explicit MatrixTiles(int dots) {
    Shapes shapes;
    for (int tile = 0; tile < 5; ++tile) {
      shapes.rows[tile] = tile < kX + 1 ? kColumns : static_cast<std::uint8_t>(dots);
      shapes.row_bytes[tile] = tile == kX ? static_cast<std::uint16_t>(4 * dots) : kRow;
    }
    asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
  }
  ~MatrixTiles() { asm volatile("tilerelease" : : : "memory"); }
  MatrixTiles(const MatrixTiles&) = delete;
  MatrixTiles& operator=(const MatrixTiles&) = delete;

  QSF_INLINE void load_columns(const std::int8_t* x) {
    asm volatile("tileloadd (%0,%1), %%tmm%c2" : : "r"(x), "r"(std::size_t{kGroup}), "i"(kX) : "memory");
  }

  template <int kIndex>
  QSF_INLINE void multiply(const void* codes, void* to) {
    asm volatile(
        "tileloadd (%3,%5), %%tmm%c1\n\t"
        "tilezero %%tmm%c0\n\t"
        "tdpbssd %%tmm%c1, %%tmm%c2, %%tmm%c0\n\t"
        "tilestored %%tmm%c0, (%4,%5)"
        :
        : "i"(kIndex), "i"(kX + 1 + kIndex), "i"(kX), "r"(codes), "r"(to), "r"(std::size_t{kRow})
        : "memory");
  }

 private:
  static constexpr std::uint16_t kRow = 64;
  static constexpr int kX = 2;

  struct Shapes {  // in the layout that the processor reads
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  };
  static_assert(sizeof(Shapes) == 64);
};

}  // namespace
}  // namespace qsf
