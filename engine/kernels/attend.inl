// The KV cache of one head and attention over it, per type of cache: a policy says how elements are read and written.

namespace qsf {
namespace {

struct KvF16 {
  static constexpr std::size_t kBytes = 2;
  static constexpr bool kScaled = false;

  QSF_INLINE static Floats load_all(const std::byte* at) { return load_f16(at); }
};

struct KvQ8 {
  static constexpr std::size_t kBytes = 1;
  static constexpr bool kScaled = true;

  QSF_INLINE static Floats load_all(const std::byte* at) { return to_float(load_i8(at)); }
};

struct KvF32 {
  static constexpr std::size_t kBytes = 4;
  static constexpr bool kScaled = false;

  QSF_INLINE static Floats load_all(const std::byte* at) { return load(at); }
};

template <class Kv>
QSF_INLINE Floats load_kv(const std::byte* at, std::size_t n) {
  if (n >= kLanes) return Kv::load_all(at);
  std::byte padded[kLanes * Kv::kBytes] = {};
  __builtin_memcpy(padded, at, n * Kv::kBytes);
  return Kv::load_all(padded);
}

void kv_store_f16(const float* x, std::uint32_t head_dim, const KvHead& to, std::uint32_t slot) {
  std::byte* const at = to.codes + static_cast<std::size_t>(slot) * head_dim * KvF16::kBytes;
  for (std::size_t i = 0; i < head_dim; i += kLanes) {
    const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
    std::uint16_t half[kLanes];
    store_u16(half, narrow_f16(load_upto(x + i, n)));
    __builtin_memcpy(at + i * 2, half, n * 2);
  }
}

void kv_store_q8(const float* x, std::uint32_t head_dim, const KvHead& to, std::uint32_t slot) {
  Bits most = all(0u);
  for (std::size_t i = 0; i < head_dim; i += kLanes) {
    most = larger(magnitude_bits(load_upto(x + i, head_dim - i)), most);
  }
  const Int8Scale scale = int8_scale(largest_of(most));
  to.scales[slot] = scale.d;
  std::byte* const at = to.codes + static_cast<std::size_t>(slot) * head_dim;
  for (std::size_t i = 0; i < head_dim; i += kLanes) {
    const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
    std::int8_t codes[kLanes];
    store_i8(codes, int8_codes(load_upto(x + i, n), scale));
    __builtin_memcpy(at + i, codes, n);
  }
}

void kv_store_f32(const float* x, std::uint32_t head_dim, const KvHead& to, std::uint32_t slot) {
  __builtin_memcpy(to.codes + static_cast<std::size_t>(slot) * head_dim * KvF32::kBytes, x, head_dim * KvF32::kBytes);
}

/// out[d .. d + 16 kVectors) for positions in ascending order; a last vector may be short.
template <class Kv, int kVectors>
QSF_INLINE void weighted_sum(const AttendArgs& a, std::size_t d) {
  Floats acc[kVectors];
  unroll<kVectors>([&](auto i) __attribute__((always_inline)) { acc[decltype(i)::value] = all(0.0f); });
  std::uint32_t slot = a.first % a.capacity;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    const std::byte* const at = a.v.codes + (static_cast<std::size_t>(slot) * a.head_dim + d) * Kv::kBytes;
    float p = a.scores[i];
    if constexpr (Kv::kScaled) p = p * a.v.scales[slot];
    const Floats weight = all(p);
    unroll<kVectors>([&](auto index) __attribute__((always_inline)) {
      constexpr std::size_t kFrom = decltype(index)::value * kLanes;
      const Floats v = kVectors == 1 ? load_kv<Kv>(at, a.head_dim - d) : Kv::load_all(at + kFrom * Kv::kBytes);
      acc[decltype(index)::value] = acc[decltype(index)::value] + weight * v;
    });
    if (++slot == a.capacity) slot = 0;
  }
  unroll<kVectors>([&](auto index) __attribute__((always_inline)) {
    constexpr std::size_t kFrom = decltype(index)::value * kLanes;
    store_upto(a.out + d + kFrom, acc[decltype(index)::value], a.head_dim - d - kFrom);
  });
}

template <class Kv>
void attend(const AttendArgs& a) {
  std::uint32_t slot = a.first % a.capacity;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    const std::byte* const key = a.k.codes + static_cast<std::size_t>(slot) * a.head_dim * Kv::kBytes;
    Floats products = all(0.0f);
    for (std::size_t d = 0; d < a.head_dim; d += kLanes) {
      products = products + load_upto(a.q + d, a.head_dim - d) * load_kv<Kv>(key + d * Kv::kBytes, a.head_dim - d);
    }
    float score = sum_of(products);
    if constexpr (Kv::kScaled) score = score * a.k.scales[slot];
    a.scores[i] = score * a.scale;
    if (++slot == a.capacity) slot = 0;
  }
  softmax(a.scores, a.count);
  std::size_t d = 0;
  for (; d + 4 * kLanes <= a.head_dim; d += 4 * kLanes) weighted_sum<Kv, 4>(a, d);
  for (; d < a.head_dim; d += kLanes) weighted_sum<Kv, 1>(a, d);
}

}  // namespace
}  // namespace qsf
