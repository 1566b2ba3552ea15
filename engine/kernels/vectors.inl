// Work on one vector: norms, sums, activations, softmax, rotation, the largest element.

namespace qsf {
namespace {

/// y = weight * (x * (1 / sqrt(mean(x^2) + epsilon))).
void rms_norm(const float* x, const float* weight, float* y, std::uint32_t n, float epsilon) {
  Floats squares = all(0.0f);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Floats v = load_upto(x + i, n - i);
    squares = squares + v * v;
  }
  const float mean = sum_of(squares) / static_cast<float>(n);
  const float inverse = 1.0f / __builtin_sqrtf(mean + epsilon);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Floats v = load_upto(x + i, n - i) * all(inverse);
    store_upto(y + i, load_upto(weight + i, n - i) * v, n - i);
  }
}

void add(float* x, const float* y, std::uint32_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    store_upto(x + i, load_upto(x + i, n - i) + load_upto(y + i, n - i), n - i);
  }
}

/// silu(x) = x / (1 + e^-x).
void silu_mul(float* gate, const float* up, std::uint32_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Floats g = load_upto(gate + i, n - i);
    const Floats silu = g / (all(1.0f) + exp(all(0.0f) - g));
    store_upto(gate + i, silu * load_upto(up + i, n - i), n - i);
  }
}

/// The largest of x, numbers only; -infinity when there is none.
float largest(const float* x, std::size_t n) {
  constexpr float kNone = -__builtin_inff();
  Floats most = all(kNone);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = larger(load(x + i), most);
  float lanes[kLanes];
  store(lanes, most);
  float result = kNone;
  for (const float lane : lanes) result = lane > result ? lane : result;
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// e^(x - max) * (1 / sum).
void softmax(float* x, std::uint32_t n) {
  const float most = largest(x, n);
  Floats sum = all(0.0f);
  for (std::size_t i = 0; i < n; i += kLanes) {
    store_upto(x + i, exp(load_upto(x + i, n - i) - all(most)), n - i);
    sum = sum + load_upto(x + i, n - i);
  }
  const Floats inverse = all(1.0f / sum_of(sum));
  for (std::size_t i = 0; i < n; i += kLanes) store_upto(x + i, load_upto(x + i, n - i) * inverse, n - i);
}

void rope(float* v, const float* cos, const float* sin, std::uint32_t head_dim) {
  const std::size_t half = head_dim / 2;
  for (std::size_t i = 0; i < half; i += kLanes) {
    const std::size_t n = half - i;
    const Floats a = load_upto(v + i, n);
    const Floats b = load_upto(v + half + i, n);
    const Floats c = load_upto(cos + i, n);
    const Floats s = load_upto(sin + i, n);
    store_upto(v + i, a * c - b * s, n);
    store_upto(v + half + i, b * c + a * s, n);
  }
}

std::uint32_t argmax(const float* x, std::uint32_t n) {
  const float most = largest(x, n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (x[i] == most) return i;
  }
  return 0;
}

}  // namespace
}  // namespace qsf
