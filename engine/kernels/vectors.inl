// Operations on one vector: norms, sums, activations, softmax, rotation and the largest element.

namespace qsf {
namespace {

/// Sets x = f(x), 16 lanes at a time.
template <class F>
QSF_INLINE void map(float* x, std::uint32_t n, F f) {
  for (std::size_t i = 0; i < n; i += kLanes) store_n(x + i, f(load_n(x + i, n - i)), n - i);
}
/// Sets x = f(x, y).
template <class F>
QSF_INLINE void map(float* x, const float* y, std::uint32_t n, F f) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    store_n(x + i, f(load_n(x + i, n - i), load_n(y + i, n - i)), n - i);
  }
}

void add(float* x, const float* y, std::uint32_t n) {
  map(x, y, n, [](Floats a, Floats b) __attribute__((always_inline)) { return a + b; });
}
void mul(float* x, const float* y, std::uint32_t n) {
  map(x, y, n, [](Floats a, Floats b) __attribute__((always_inline)) { return a * b; });
}
void scale(float* x, float by, std::uint32_t n) {
  map(x, n, [&](Floats a) __attribute__((always_inline)) { return a * broadcast(by); });
}
void exp(float* x, std::uint32_t n) {
  map(x, n, [](Floats a) __attribute__((always_inline)) { return exp(a); });
}
void tanh(float* x, std::uint32_t n) {
  map(x, n, [](Floats a) __attribute__((always_inline)) { return tanh(a); });
}

void sin_cos(const float* x, float* sin, float* cos, std::uint32_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    float at[kLanes], sines[kLanes], cosines[kLanes];
    store(at, load_n(x + i, n - i));
    for (std::size_t j = 0; j < kLanes; j += kHalfLanes) {
      const auto half = load_part<FloatHalf>(reinterpret_cast<const std::byte*>(at + j));
      const FloatHalf sine = wave(half, 0), cosine = wave(half, 1);
      __builtin_memcpy(sines + j, &sine, sizeof sine);
      __builtin_memcpy(cosines + j, &cosine, sizeof cosine);
    }
    store_n(sin + i, load(sines), n - i);
    store_n(cos + i, load(cosines), n - i);
  }
}

/// Returns the sum of f(v) over a vector. f(+0) must be 0, because +0 pads a short tail.
template <class F>
QSF_INLINE float sum_over(const float* x, std::uint32_t n, F f) {
  Floats sum = broadcast(0.0f);
  for (std::size_t i = 0; i < n; i += kLanes) sum = sum + f(load_n(x + i, n - i));
  return reduce_sum(sum);
}

/// y = weight * (x * (1 / sqrt(mean(x^2) + epsilon))).
void rms_norm(const float* x, const float* weight, float* y, std::uint32_t n, float epsilon) {
  const auto square = [](Floats v) __attribute__((always_inline)) { return v * v; };
  const float mean = sum_over(x, n, square) / static_cast<float>(n);
  const float inverse = 1.0f / __builtin_sqrtf(mean + epsilon);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Floats v = load_n(x + i, n - i) * broadcast(inverse);
    store_n(y + i, weight != nullptr ? load_n(weight + i, n - i) * v : v, n - i);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float* y, std::uint32_t n, float epsilon) {
  const float mean = sum_over(x, n, [](Floats v) __attribute__((always_inline)) { return v; }) / static_cast<float>(n);
  for (std::size_t i = 0; i < n; i += kLanes) store_n(y + i, load_n(x + i, n - i) - broadcast(mean), n - i);
  rms_norm(y, weight, y, n, epsilon);
  if (bias != nullptr) add(y, bias, n);
}

/// x / (1 + e^-u).
QSF_INLINE Floats times_sigmoid(Floats x, Floats u) { return x / (broadcast(1.0f) + exp(broadcast(0.0f) - u)); }

QSF_INLINE Floats silu(Floats x) { return times_sigmoid(x, x); }

/// x / 2 (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3). The form x / (1 + e^-2u) avoids cancellation.
QSF_INLINE Floats gelu(Floats x) {
  return times_sigmoid(x, x * (broadcast(1.5957691216f) + broadcast(0.07135481627f) * (x * x)));
}

/// gelu - relu is an even function, at most 2^-33 beyond the table. Its second derivative is at most 0.8, so linear
/// interpolation has an error of at most 0.8 / 8 divided by the square of the entries per unit.
QSF_INLINE Floats gelu_fast(Floats x) {
  const Floats magnitude = bit_cast<Floats>(bit_cast<Bits>(x) & broadcast(0x7fffffffu));
  // The last entry also serves a NaN.
  const Floats at = min(magnitude * broadcast(float{kGeluSteps}), broadcast(float{kGeluSteps * kGeluEnd}));
  const Ints index = nearest_int(at - broadcast(0.5f));
  std::int32_t indices[kLanes];
  store(indices, index);
  float from[kLanes], to[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    from[lane] = kGeluTable[static_cast<std::size_t>(indices[lane])];
    to[lane] = kGeluTable[static_cast<std::size_t>(indices[lane]) + 1];
  }
  const Floats line = load(from) + (load(to) - load(from)) * (at - convert_to<Floats>(index));
  return max(broadcast(0.0f), x) + line;
}

/// x times the normal distribution function. For z = |x| / sqrt 2, its upper tail is e^(-x^2 / 2) p(t) / 2 with t = 1 /
/// (1 + 0.3275911 z), with an error of at most 1.5e-7 (Abramowitz and Stegun, 7.1.26).
QSF_INLINE Floats gelu_erf(Floats x) {
  const Floats magnitude = bit_cast<Floats>(bit_cast<Bits>(x) & broadcast(0x7fffffffu));
  const Floats z = magnitude * broadcast(0.70710678f);
  const Floats t = broadcast(1.0f) / (broadcast(1.0f) + broadcast(0.3275911f) * z);
  Floats p = broadcast(1.061405429f);
  p = p * t - broadcast(1.453152027f);
  p = p * t + broadcast(1.421413741f);
  p = p * t - broadcast(0.284496736f);
  p = p * t + broadcast(0.254829592f);
  const Floats tail = broadcast(0.5f) * (p * t) * exp(broadcast(0.0f) - z * z);
  return max(broadcast(0.0f), x) - min(magnitude, broadcast(1e6f)) * tail;  // the minimum avoids infinity times 0
}

QSF_INLINE Floats relu(Floats x) { return max(broadcast(0.0f), x); }
QSF_INLINE Floats relu2(Floats x) { return relu(x) * relu(x); }

template <Floats (*f)(Floats)>
void activate(float* x, const float* up, std::uint32_t n) {
  if (up == nullptr) {
    map(x, n, [](Floats a) __attribute__((always_inline)) { return f(a); });
  } else {
    map(x, up, n, [](Floats a, Floats b) __attribute__((always_inline)) { return f(a) * b; });
  }
}

/// Returns the largest lane that is a number, or -infinity if there is none.
QSF_INLINE float reduce_max(Floats v) { return reduce<float>(max(v, broadcast(-__builtin_inff())), kMax); }

/// Returns the largest number of x, or -infinity if there is none.
float max_over(const float* x, std::size_t n) {
  Floats most = broadcast(-__builtin_inff());
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = max(load(x + i), most);
  float result = reduce_max(most);
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// Sets x = share(exp((x - max) / temperature), 1 / their sum). Weights below e^-64 of the largest are 0: they do not
/// change any sum, and products with denormal numbers take some processors a hundred times as long. The maximum and the
/// sum include one more term, which is not in x, unless its pointer is null.
template <class Exp, class Share>
QSF_INLINE void softmax_beside(float* x, std::uint32_t n, float temperature, const float* beside, Exp exp,
                               Share share) {
  const std::size_t left = n % kLanes, whole = n - left;
  float padded[kLanes];
  store(padded, broadcast(-__builtin_inff()));
  __builtin_memcpy(padded, x + whole, left * sizeof(float));
  Floats tail = load(padded), greatest = tail;
  for (std::size_t i = 0; i < whole; i += kLanes) greatest = max(load(x + i), greatest);
  float most = reduce_max(greatest);
  if (beside != nullptr && *beside > most) most = *beside;

  const auto power = [&](Floats v) __attribute__((always_inline)) {
    v = v - broadcast(most);
    if (temperature != 1.0f) v = v / broadcast(temperature);
    const Bits negligible = gt(broadcast<-64.0f>(), v);
    return bit_cast<Floats>(bit_cast<Bits>(exp(v)) & ~negligible);
  };
  Floats sum = broadcast(0.0f);
  for (std::size_t i = 0; i < whole; i += kLanes) {
    const Floats p = power(load(x + i));
    store(x + i, p);
    sum = sum + p;
  }
  tail = power(tail);
  if (left != 0) sum = sum + tail;
  float total = reduce_sum(sum);
  if (beside != nullptr) {
    float lanes[kLanes];
    store(lanes, power(broadcast(*beside)));
    total += lanes[0];
  }
  const Floats by = broadcast(1.0f / total);
  for (std::size_t i = 0; i < whole; i += kLanes) store(x + i, share(load(x + i), by));
  store(padded, share(tail, by));
  __builtin_memcpy(x + whole, padded, left * sizeof(float));
}

void softmax_beside(float* x, std::uint32_t n, float temperature, const float* beside) {
  softmax_beside(
      x, n, temperature, beside, [](Floats v) __attribute__((always_inline)) { return exp_of_negative(v); },
      [](Floats p, Floats by) __attribute__((always_inline)) { return p * by; });
}

void softmax(float* x, std::uint32_t n, float temperature) { softmax_beside(x, n, temperature, nullptr); }

/// x = cap * tanh(x / cap)
void soft_cap(float* x, std::uint32_t n, float cap) {
  map(x, n, [&](Floats a) __attribute__((always_inline)) { return tanh(a / broadcast(cap)) * broadcast(cap); });
}

void rope(const RopeArgs& a) {
  const std::size_t half = a.dims / 2;
  for (std::size_t column = 0; column < a.n; ++column) {
    for (std::size_t i = 0; i < half; i += kLanes) {
      const std::size_t n = half - i;
      const Floats c = load_n(a.cos + column * half + i, n);
      const Floats s = load_n(a.sin + column * half + i, n);
      for (std::size_t head = 0; head < a.n_heads; ++head) {
        float* const low = a.v + column * a.stride + head * a.head_dim + i;
        const Floats x = load_n(low, n);
        const Floats y = load_n(low + half, n);
        store_n(low, x * c - y * s, n);
        store_n(low + half, y * c + x * s, n);
      }
    }
  }
}

void widen_f16(const std::byte* from, float* to, std::uint32_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    std::byte half[2 * kLanes] = {};
    __builtin_memcpy(half, from + 2 * i, 2 * (n - i < kLanes ? n - i : kLanes));
    store_n(to + i, load_promote_f16(half), n - i);
  }
}

std::uint32_t argmax(const float* x, std::uint32_t n) {
  const float most = max_over(x, n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (x[i] == most) return i;
  }
  return 0;
}

}  // namespace
}  // namespace qsf
