// exp, tanh, sin and cos with IEEE addition, multiplication and division only, so that every machine computes the same
// bits. Tests compare the stated bounds with long double (tests/kernels/exact_test.cpp).

namespace qsf {
namespace {

/// x = k ln 2 + r, |r| <= ln 2 / 2.
struct Power {
  Ints k;
  Floats p;  // e^r - 1
};

/// Splits x for |x| <= 2^20. ln 2 has two pieces; the first has 9 bits, so that its product with k is exact. The
/// polynomial is Taylor's series to the seventh power with coefficients rounded to float.
QSF_INLINE Power power_of_e(Floats x) {
  const Ints k = nearest_int(x * broadcast<0x1.715476p0f>());
  const Floats n = convert_to<Floats>(k);
  const Floats r = (x - n * broadcast<0.693359375f>()) - n * broadcast<-2.12194440e-4f>();
  Floats p = broadcast<1.0f / 5040.0f>();
  p = p * r + broadcast<1.0f / 720.0f>();
  p = p * r + broadcast<1.0f / 120.0f>();
  p = p * r + broadcast<1.0f / 24.0f>();
  p = p * r + broadcast<1.0f / 6.0f>();
  p = p * r + broadcast<0.5f>();
  return {k, p * (r * r) + r};
}

/// Returns e^x within 2 ulp; below 2^-126, within 2 of the smallest steps. The result is 0 below about -104, infinity
/// above about 88.72, and a NaN for a NaN.
QSF_INLINE Floats exp(Floats x) {
  const auto [k, p] = power_of_e(min(broadcast<89.0f>(), max(broadcast<-104.0f>(), x)));
  // 2^k is a product of two normal floats, so that only the last multiplication rounds.
  const Bits biased = bit_cast<Bits>(k) + broadcast<512u>();
  const Bits half = shift_right<1>(biased);
  const Floats first = bit_cast<Floats>(shift_left<23>(half - broadcast<256u - 127u>()));
  const Floats second = bit_cast<Floats>(shift_left<23>((biased - half) - broadcast<256u - 127u>()));
  return ((p + broadcast<1.0f>()) * first) * second;
}

/// Returns the bits of exp(x) for x in [-64, 0], where a single factor 2^k is enough. A NaN stays a NaN.
QSF_INLINE Floats exp_of_negative(Floats x) {
  const auto [k, p] = power_of_e(x);
  return (p + broadcast<1.0f>()) * bit_cast<Floats>(shift_left<23>(bit_cast<Bits>(k) + broadcast<127u>()));
}

/// Returns e^x within a relative 2^-16 for x in [-64, 0]; a NaN stays a NaN. The result is 2^k 2^f with |f| <= 1/2; the
/// polynomial for 2^f has the least relative error, 2^-18.4.
QSF_INLINE Floats rough_exp(Floats x) {
  constexpr float kRounder = 0x1.8p23f + 127;  // adding it leaves k plus a float's exponent bias in the low bits
  const Floats t = x * broadcast<0x1.715476p0f>();
  const Floats rounded = t + broadcast<kRounder>();
  const Floats f = t - (rounded - broadcast<kRounder>());
  Floats p = broadcast<0x1.3a02ccp-7f>();
  p = p * f + broadcast<0x1.c9fc46p-5f>();
  p = p * f + broadcast<0x1.ec0378p-3f>();
  p = p * f + broadcast<0x1.62e12cp-1f>();
  p = p * f + broadcast<1.0f>();
  return p * bit_cast<Floats>(shift_left<23>(bit_cast<Bits>(rounded)));
}

/// Rounds x to 13 significant bits, half to even (Veltkamp). Magnitudes above 2^116 become NaN; a NaN stays a NaN.
QSF_INLINE Floats round_to_13_bits(Floats x) {
  const Floats apart = x * broadcast<2049.0f>();
  return apart - (apart - x);
}

/// tanh x = (e^2|x| - 1) / (e^2|x| + 1) with x's sign. Within 3 ulp, denormals included; 1 from 10 on; a NaN stays a
/// NaN.
QSF_INLINE Floats tanh(Floats x) {
  const Bits sign = bit_cast<Bits>(x) & broadcast<0x80000000u>();
  const Floats magnitude = min(broadcast<10.0f>(), bit_cast<Floats>(bit_cast<Bits>(x) & broadcast<0x7fffffffu>()));
  const auto [k, p] = power_of_e(magnitude + magnitude);
  const Floats scale = bit_cast<Floats>(shift_left<23>(bit_cast<Bits>(k) + broadcast<127u>()));
  // e^2|x| - 1 without cancellation; it is p itself if k is 0
  const Floats less_one = scale * p + (scale - broadcast<1.0f>());
  return bit_cast<Floats>(bit_cast<Bits>(less_one / (less_one + broadcast<2.0f>())) | sign);
}

// sin and cos compute in double, with half the lanes of a vector.
inline constexpr int kHalfLanes = kParts == kLanes ? 1 : kLanes / kParts / 2;
using FloatHalf = PartOf<float, kHalfLanes>::type;
using Doubles = PartOf<double, kHalfLanes>::type;
using Longs = PartOf<std::uint64_t, kHalfLanes>::type;

/// Returns 1 / first! - x^2 / (first + 2)! + x^4 / (first + 4)! ..., which is cos x for first = 0 and sin x / x for
/// first = 1.
template <int kTerms>
struct Series {
  double c[kTerms];
};
template <int kTerms>
constexpr Series<kTerms> alternating_series(int first) {
  Series<kTerms> series{};
  double factorial = 1;  // exact up to 18!
  for (int i = 0; i < kTerms; ++i) {
    series.c[i] = (i % 2 == 0 ? 1.0 : -1.0) / factorial;
    factorial *= (first + 2 * i + 1) * (first + 2 * i + 2);
  }
  return series;
}

template <int kTerms>
QSF_INLINE Doubles evaluate(const Series<kTerms>& series, const Doubles& square) {
  Doubles p = Doubles{} + series.c[kTerms - 1];
  unroll<kTerms - 1>(
      [&](auto i) __attribute__((always_inline)) { p = p * square + series.c[kTerms - 2 - decltype(i)::value]; });
  return p;
}

/// Returns sin(x + turn quarters of a turn). The error is at most half an ulp plus 2^-40 for |x| <= 2^24 and at most
/// 2^-21 up to 2^30; the result is a NaN beyond. Quarter turns are subtracted from x with pi / 2 in three doubles. The
/// first two have 29 bits, so that their products with 24 bits are exact.
QSF_INLINE FloatHalf wave(const FloatHalf& at, std::uint64_t turn) {
  constexpr auto kSin = alternating_series<9>(1);
  constexpr auto kCos = alternating_series<10>(0);
  constexpr double kRounder = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  constexpr std::uint64_t kOne = 1, kTwo = 2;
  constexpr std::uint64_t kMagnitude = ~std::uint64_t{0} >> 1, kFarthest = 0x41d0000000000000;
  const Doubles x = convert_to<Doubles>(at);
  const Doubles rounded = x * 0x1.45f306dc9c883p-1 + kRounder;
  const Doubles k = rounded - kRounder;
  const Doubles r = ((x - k * 0x1.921fb54p0) - k * 0x1.10b4611p-30) - k * 0x1.4c4c6628b80dcp-59;
  const Doubles square = r * r;
  const Longs quarter = bit_cast<Longs>(rounded) + turn;
  const Longs odd = Longs{} - (quarter & kOne);
  const Longs sine = bit_cast<Longs>(r * evaluate(kSin, square)), cosine = bit_cast<Longs>(evaluate(kCos, square));
  const Longs value = ((cosine & odd) | (sine & ~odd)) ^ ((quarter & kTwo) << 62);
  // All bits set, a NaN, if the magnitude is greater, because the difference wraps.
  const Longs beyond = Longs{} - ((kFarthest - (bit_cast<Longs>(x) & kMagnitude)) >> 63);
  return convert_to<FloatHalf>(bit_cast<Doubles>(value | beyond));
}

}  // namespace
}  // namespace qsf
