// The KV cache of one head and attention over it, per type of cache: a policy says how positions are written and read.

namespace qsf {
namespace {

/// 32 neighbouring values of a position; beyond its end zeros, or in groups anything finite.
struct KvValues {
  Floats low;
  Floats high;
};

/// The elements from `at` on of which `n` are left, 0 or less too; zeros behind them.
template <std::size_t kBytes, class Load>
QSF_INLINE Floats load_left(const std::byte* at, std::ptrdiff_t n, Load load_all) {
  if (n >= kLanes) return load_all(at);
  std::byte padded[kLanes * kBytes] = {};
  if (n > 0) __builtin_memcpy(padded, at, static_cast<std::size_t>(n) * kBytes);
  return load_all(padded);
}
template <std::size_t kBytes, class Load>
QSF_INLINE KvValues load_values(const std::byte* elements, std::size_t d, std::size_t head_dim, Load load_all) {
  const std::byte* const at = elements + d * kBytes;
  const auto n = static_cast<std::ptrdiff_t>(head_dim - d);
  return {load_left<kBytes>(at, n, load_all), load_left<kBytes>(at + kLanes * kBytes, n - kLanes, load_all)};
}
QSF_INLINE Floats load_left(const float* at, std::ptrdiff_t n) {
  return load_left<sizeof(float)>(reinterpret_cast<const std::byte*>(at), n,
                                  [](const std::byte* from) __attribute__((always_inline)) { return load(from); });
}

struct KvF32 {
  static constexpr KvType kType = KvType::f32;
  QSF_INLINE static KvValues read(const std::byte* position, std::size_t d, std::size_t head_dim) {
    return load_values<4>(position, d, head_dim,
                          [](const std::byte* at) __attribute__((always_inline)) { return load(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    __builtin_memcpy(to, x, head_dim * sizeof(float));
  }
};

struct KvF16 {
  static constexpr KvType kType = KvType::f16;
  QSF_INLINE static KvValues read(const std::byte* position, std::size_t d, std::size_t head_dim) {
    return load_values<2>(position, d, head_dim,
                          [](const std::byte* at) __attribute__((always_inline)) { return load_f16(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::uint16_t half[kLanes];
      store_u16(half, narrow_f16(load_upto(x + i, n)));
      __builtin_memcpy(to + i * 2, half, n * 2);
    }
  }
};

/// A float scale, then int8 codes: value = scale * code.
struct KvQ8 {
  static constexpr KvType kType = KvType::q8;
  QSF_INLINE static KvValues read(const std::byte* position, std::size_t d, std::size_t head_dim) {
    float one;
    __builtin_memcpy(&one, position, sizeof one);
    const Floats scale = all(one);
    return load_values<1>(position + sizeof one, d, head_dim, [&](const std::byte* at) __attribute__((always_inline)) {
      return scale * to_float(load_i8(at));
    });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    Bits most = all(0u);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      most = larger(magnitude_bits(load_upto(x + i, head_dim - i)), most);
    }
    const Int8Scale scale = int8_scale(largest_of(most));
    __builtin_memcpy(to, &scale.d, sizeof scale.d);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::int8_t codes[kLanes];
      store_i8(codes, int8_codes(load_upto(x + i, n), scale));
      __builtin_memcpy(to + sizeof scale.d + i, codes, n);
    }
  }
};

/// Groups of 32 values: a bf16 scale, a bf16 minimum, then codes, value v in byte v % kCodeBytes from bit
/// kBits * (v / kCodeBytes) on; value = minimum + scale * code. Both are rounded outwards, so that every value of the
/// group is within half a scale of its code's. A last group of fewer values repeats the last of them.
template <int kBits>
struct KvGroups {
  static constexpr KvType kType = kBits == 4 ? KvType::q4 : KvType::q2;
  static constexpr std::size_t kCodeBytes = kKvGroup * kBits / 8;
  static constexpr std::size_t kHeadBytes = 4;  // the scale in the lower half of a word, the minimum in the upper
  static constexpr std::uint32_t kUpper[kLanes] = {0, 0, 0, 0, 0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  static constexpr std::uint32_t kTop = (1u << kBits) - 1;

  QSF_INLINE static KvValues read(const std::byte* position, std::size_t d, std::size_t /*head_dim*/) {
    const std::byte* const group = position + d / kKvGroup * (kHeadBytes + kCodeBytes);
    std::uint32_t head;
    __builtin_memcpy(&head, group, sizeof head);
    const Floats scale = all(bits_as<float>(head << 16));
    const Floats minimum = all(bits_as<float>(head & 0xffff0000u));
    Bits low;
    if constexpr (kBits == 4) {
      low = load_u8(group + kHeadBytes);
    } else {  // the upper half of the lanes takes each byte's next code
      std::byte twice[2 * kCodeBytes];
      __builtin_memcpy(twice, group + kHeadBytes, kCodeBytes);
      __builtin_memcpy(twice + kCodeBytes, group + kHeadBytes, kCodeBytes);
      const Bits bytes = load_u8(twice);
      low = select(load<Bits>(kUpper), right<kBits>(bytes), bytes);
    }
    const auto value = [&](Bits code) __attribute__((always_inline)) {
      return minimum + scale * to_float(as_ints(code & all(kTop)));
    };
    return {value(low), value(right<4>(low))};
  }

  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, to += kHeadBytes + kCodeBytes) {
      float values[kKvGroup];
      for (std::size_t i = 0; i < kKvGroup; ++i) values[i] = x[d + i < head_dim ? d + i : head_dim - 1];
      write_group(load(values), load(values + kLanes), to);
    }
  }

 private:
  /// Where a value or the range is not finite, the scale is a NaN, so that results show it. Below 2^-120 it is 0.
  QSF_INLINE static void write_group(Floats low, Floats high, std::byte* to) {
    const float most = largest_lane(larger(low, high));
    const float least = -largest_lane(larger(all(0.0f) - low, all(0.0f) - high));
    auto minimum_bits = bits_as<std::uint32_t>(least);
    if ((minimum_bits >> 31) != 0) minimum_bits += 0xffffu;
    minimum_bits &= 0xffff0000u;
    const float minimum = bits_as<float>(minimum_bits);
    std::uint32_t scale_bits = bits_as<std::uint32_t>((most - minimum) / static_cast<float>(kTop)) + 0xffffu;
    scale_bits &= 0xffff0000u;
    const bool finite = largest_of(larger(magnitude_bits(low), magnitude_bits(high))) < 0x7f800000u;
    if (!finite || scale_bits >= 0x7f800000u) {
      scale_bits = 0x7fc00000u;
      minimum_bits = 0;
    } else if (scale_bits < 0x03800000u) {
      scale_bits = 0;
    }
    const std::uint32_t head = scale_bits >> 16 | minimum_bits;
    __builtin_memcpy(to, &head, sizeof head);

    std::uint32_t codes[kKvGroup] = {};
    if (scale_bits != 0 && scale_bits < 0x7f800000u) {
      const Floats scale = all(bits_as<float>(scale_bits));
      store(codes, nearest((low - all(minimum)) / scale));
      store(codes + kLanes, nearest((high - all(minimum)) / scale));
    }
    for (std::size_t j = 0; j < kCodeBytes; ++j) {
      std::uint32_t byte = 0;
      for (std::size_t i = 0; i < 8 / kBits; ++i) byte |= codes[i * kCodeBytes + j] << (kBits * i);
      to[kHeadBytes + j] = static_cast<std::byte>(byte);
    }
  }
};

template <class Kv>
void kv_store(const float* x, std::uint32_t head_dim, std::byte* to) {
  Kv::write(x, head_dim, to);
}

/// The scores of kQueries heads from `query` on: each cached key is read once for all of them.
template <class Kv, int kQueries>
QSF_INLINE void score(const AttendArgs& a, std::size_t query) {
  const std::size_t bytes = kv_bytes(Kv::kType, a.head_dim);
  std::uint32_t slot = a.first % a.capacity;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    const std::byte* const key = a.k + slot * bytes;
    Floats products[kQueries];
    unroll<kQueries>([&](auto j) __attribute__((always_inline)) { products[decltype(j)::value] = all(0.0f); });
    for (std::size_t d = 0; d < a.head_dim; d += 2 * kLanes) {
      const KvValues k = Kv::read(key, d, a.head_dim);
      unroll<kQueries>([&](auto index) __attribute__((always_inline)) {
        constexpr std::size_t j = decltype(index)::value;
        const float* const q = a.q + (query + j) * a.head_dim + d;
        const auto n = static_cast<std::ptrdiff_t>(a.head_dim - d);
        products[j] = products[j] + load_left(q, n) * k.low;
        products[j] = products[j] + load_left(q + kLanes, n - kLanes) * k.high;
      });
    }
    unroll<kQueries>([&](auto index) __attribute__((always_inline)) {
      constexpr std::size_t j = decltype(index)::value;
      a.scores[(query + j) * a.capacity + i] = sum_of(products[j]) * a.scale;
    });
    if (++slot == a.capacity) slot = 0;
  }
}

/// out[d .. d + 32 kPairs) of kQueries heads from `query` on, for positions in ascending order.
template <class Kv, int kQueries, int kPairs>
QSF_INLINE void weighted_sum(const AttendArgs& a, std::size_t query, std::size_t d) {
  const std::size_t bytes = kv_bytes(Kv::kType, a.head_dim);
  // Indexed by constants alone, so that they stay in registers.
  Floats low[kQueries][kPairs], high[kQueries][kPairs];
  const auto for_each = [](auto f) __attribute__((always_inline)) {  // query and pair
    unroll<kQueries>([&](auto j) __attribute__((always_inline)) {
      unroll<kPairs>([&](auto pair) __attribute__((always_inline)) { f(j, pair); });
    });
  };
  for_each([&](auto j, auto pair) __attribute__((always_inline)) { low[j][pair] = high[j][pair] = all(0.0f); });
  std::uint32_t slot = a.first % a.capacity;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    unroll<kPairs>([&](auto pair) __attribute__((always_inline)) {
      const KvValues v = Kv::read(a.v + slot * bytes, d + pair * 2 * kLanes, a.head_dim);
      unroll<kQueries>([&](auto j) __attribute__((always_inline)) {
        const Floats p = all(a.scores[(query + j) * a.capacity + i]);
        low[j][pair] = low[j][pair] + p * v.low;
        high[j][pair] = high[j][pair] + p * v.high;
      });
    });
    if (++slot == a.capacity) slot = 0;
  }
  for_each([&](auto j, auto pair) __attribute__((always_inline)) {
    const std::size_t at = d + pair * 2 * kLanes;
    float* const out = a.out + (query + j) * a.head_dim + at;
    store_upto(out, low[j][pair], a.head_dim - at);
    if (a.head_dim - at > kLanes) store_upto(out + kLanes, high[j][pair], a.head_dim - at - kLanes);
  });
}

template <class Kv, int kQueries>
void attend_heads(const AttendArgs& a, std::size_t query) {
  score<Kv, kQueries>(a, query);
  for (std::size_t j = query; j < query + kQueries; ++j) softmax(a.scores + j * a.capacity, a.count, 1.0f);
  constexpr int kPairs = kQueries == 1 ? 2 : 1;
  std::size_t d = 0;
  for (; d + kPairs * 2 * kLanes <= a.head_dim; d += kPairs * 2 * kLanes)
    weighted_sum<Kv, kQueries, kPairs>(a, query, d);
  for (; d < a.head_dim; d += 2 * kLanes) weighted_sum<Kv, kQueries, 1>(a, query, d);
}

template <class Kv>
void attend(const AttendArgs& a) {
  for_columns<4>(a.n, [&](auto queries, std::uint32_t query) { attend_heads<Kv, queries>(a, query); });
}

}  // namespace
}  // namespace qsf
