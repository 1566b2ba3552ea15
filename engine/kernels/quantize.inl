// Rounding of floats to int8 with one scale, for the activations of quantized products and for the 8-bit cache.

namespace qsf {
namespace {

struct Int8Scale {
  float d;        // value of one code step
  float inverse;  // 127 / the largest magnitude
};

/// Returns the scale of values whose largest magnitude has these bits. Below 2^-120, 127 / amax could overflow; there
/// all codes and d are 0. With an infinity or a NaN among the values the codes are 0 and d is NaN, so that results show
/// it.
QSF_INLINE Int8Scale int8_scale(std::uint32_t amax_bits) {
  if (amax_bits >= 0x7f800000u) return {bit_cast<float>(std::uint32_t{0x7fc00000}), 0.0f};
  const float amax = bit_cast<float>(amax_bits);
  if (amax < 0x1p-120f) return {0.0f, 0.0f};
  return {amax / 127.0f, 127.0f / amax};
}

QSF_INLINE Bits abs_bits(Floats v) { return bit_cast<Bits>(v) & broadcast(0x7fffffffu); }

/// Returns the largest of magnitudes, whose top bit is clear.
QSF_INLINE std::uint32_t reduce_max(Bits v) { return static_cast<std::uint32_t>(reduce<std::int32_t>(v, kMax)); }

QSF_INLINE Ints int8_codes(Floats v, const Int8Scale& scale) {
  if (scale.inverse == 0.0f) return broadcast(std::int32_t{0});
  return nearest_int(v * broadcast(scale.inverse));
}

/// Returns the bits of the largest magnitude of `n` floats.
QSF_INLINE std::uint32_t largest_magnitude(const float* x, std::size_t n) {
  Bits most = broadcast(0u);
  std::size_t k = 0;
  for (; n - k >= kLanes; k += kLanes) most = max(most, abs_bits(load(x + k)));
  if (k < n) most = max(most, abs_bits(load_n(x + k, n - k)));
  return reduce_max(most);
}

void quantize_columns(const float* x, std::uint32_t x_stride, std::uint32_t cols, std::uint32_t n, ScaleOf scale_of,
                      const QuantizedColumns& out) {
  const std::size_t groups = out.padded / kGroup;
  for (std::size_t c = 0; c < n; ++c) {
    const float* const from = x + c * x_stride;
    const bool whole = scale_of == ScaleOf::column;
    const Int8Scale of_column = whole ? int8_scale(largest_magnitude(from, cols)) : Int8Scale{};
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t k = group * kGroup;
      const std::size_t left_low = k < cols ? cols - k : 0;
      const std::size_t left_high = k + kLanes < cols ? cols - k - kLanes : 0;
      const Floats low = left_low != 0 ? load_n(from + k, left_low) : broadcast(0.0f);
      const Floats high = left_high != 0 ? load_n(from + k + kLanes, left_high) : broadcast(0.0f);
      const Int8Scale scale = whole ? of_column : int8_scale(reduce_max(max(abs_bits(low), abs_bits(high))));
      const Ints low_codes = int8_codes(low, scale);
      const Ints high_codes = int8_codes(high, scale);
      const std::size_t at = out.place(c, n, group);
      store_demote_i8(out.codes + at * kGroup, low_codes);
      store_demote_i8(out.codes + at * kGroup + kLanes, high_codes);
      const float halves[2] = {static_cast<float>(reduce_sum(low_codes)), static_cast<float>(reduce_sum(high_codes))};
      out.d[at] = scale.d;
      out.sums[at] = halves[0] + halves[1];
      __builtin_memcpy(out.half_sums + 2 * at, halves, sizeof halves);
    }
  }
}

}  // namespace
}  // namespace qsf
