// exp in float from IEEE add and multiply alone: the same bits on every machine.

namespace qsf {
namespace {

/// e^x. Within 2 ulp where the result is normal (tested); 0 below about -104, infinity above about 88.72; a NaN stays.
/// x = k ln 2 + r, |r| <= ln 2 / 2; ln 2 in two pieces, the first with 9 bits so that k times it is exact; Taylor's
/// series for e^r to the seventh power, its coefficients rounded to float.
QSF_INLINE Floats exp(Floats x) {
  // larger(a, b) gives b where either is a NaN: x must come second, and -x for the lesser of the two.
  x = larger(all(-104.0f), x);
  x = all(0.0f) - larger(all(-89.0f), all(0.0f) - x);
  const Ints k = nearest(x * all(0x1.715476p0f));
  const Floats n = to_float(k);
  const Floats r = (x - n * all(0.693359375f)) - n * all(-2.12194440e-4f);
  Floats p = all(1.0f / 5040.0f);
  p = p * r + all(1.0f / 720.0f);
  p = p * r + all(1.0f / 120.0f);
  p = p * r + all(1.0f / 24.0f);
  p = p * r + all(1.0f / 6.0f);
  p = p * r + all(0.5f);
  p = (p * (r * r) + r) + all(1.0f);
  // 2^k in two factors: either is a normal float, and only the last product rounds.
  const Bits biased = as_bits(k) + all(512u);
  const Bits half = right<1>(biased);
  const Floats first = as_floats(left<23>(half - all(256u - 127u)));
  const Floats second = as_floats(left<23>((biased - half) - all(256u - 127u)));
  return (p * first) * second;
}

}  // namespace
}  // namespace qsf
