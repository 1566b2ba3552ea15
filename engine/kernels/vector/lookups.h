// Lookups of words by vectors of numbers, one load for each word, for processors with AVX2 whose gather instructions
// are slow or may be slowed down against Gather Data Sampling.
#pragma once

#include <immintrin.h>

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

/// The numbers in memory: extracting them from a vector takes longer than loads.
struct Numbers {
  // Stored half by half: a load waits longer for a part of a store of 64 bytes.
  QSF_INLINE explicit Numbers(Bits v) {
    const __m256i low = half_of<0>(v), high = half_of<1>(v);
    __builtin_memcpy(at, &low, sizeof low);
    __builtin_memcpy(at + kLanes / 2, &high, sizeof high);
    asm("" : "+m"(at));
  }
  alignas(64) std::uint32_t at[kLanes];
};

// Words are joined by broadcasts of loads and blends, because inserting into a vector takes the only unit that
// shuffles.

QSF_INLINE __m256i four_words(const std::uint64_t* table, const std::uint32_t* numbers) {
  const auto word = [&](int row) __attribute__((always_inline)) {
    return _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(table + numbers[row])));
  };
  // Rows 0, 1, 4 and 5, of which a shuffle within 16 bytes makes rows in order.
  const __m256i low = _mm256_blend_epi32(word(0), word(1), 0x0c);
  return _mm256_blend_epi32(_mm256_blend_epi32(low, word(4), 0x30), word(5), 0xc0);
}
/// Returns the low halves of words in `low`, the high halves in `high`.
QSF_INLINE void lookup(const std::uint64_t* table, Bits numbers, Bits& low, Bits& high) {
  const Numbers of(numbers);
  __m256i lows[2], highs[2];
  unroll<2>([&](auto half) __attribute__((always_inline)) {
    const std::uint32_t* const first = of.at + half * kLanes / 2;
    const auto a = (__m256)four_words(table, first), b = (__m256)four_words(table, first + 2);
    lows[half] = (__m256i)_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    highs[half] = (__m256i)_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
  });
  low = of_halves(lows[0], lows[1]);
  high = of_halves(highs[0], highs[1]);
}

QSF_INLINE __m256i eight_words(const std::uint32_t* table, const std::uint32_t* numbers) {
  const auto pair = [&](int row) __attribute__((always_inline)) {
    const auto word = [&](int of) __attribute__((always_inline)) {
      return _mm256_broadcastd_epi32(_mm_loadu_si32(table + numbers[of]));
    };
    return _mm256_blend_epi32(word(row), word(row + 1), 0xaa);
  };
  return _mm256_blend_epi32(_mm256_blend_epi32(pair(0), pair(2), 0xcc), _mm256_blend_epi32(pair(4), pair(6), 0xcc),
                            0xf0);
}
QSF_INLINE Bits lookup(const std::uint32_t* table, Bits numbers) {
  const Numbers of(numbers);
  return of_halves(eight_words(table, of.at), eight_words(table, of.at + kLanes / 2));
}

}  // namespace
}  // namespace qsf
