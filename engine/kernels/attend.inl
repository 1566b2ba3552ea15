// The KV cache of one head and attention over it, per type of cache: a policy says how positions are written and read.

namespace qsf {
namespace {

/// `n` elements of kBytes each as floats, in whole vectors: zeros behind the last.
template <std::size_t kBytes, class Load>
QSF_INLINE void widen_elements(const std::byte* from, std::size_t n, float* to, Load load_all) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load_all(from + i * kBytes));
  if (i < n) {
    std::byte padded[kLanes * kBytes] = {};
    __builtin_memcpy(padded, from + i * kBytes, (n - i) * kBytes);
    store(to + i, load_all(padded));
  }
}

struct KvF32 {
  static constexpr KvType kType = KvType::f32;
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    widen_elements<4>(position, head_dim, to,
                      [](const std::byte* at) __attribute__((always_inline)) { return load(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    __builtin_memcpy(to, x, head_dim * sizeof(float));
  }
};

struct KvF16 {
  static constexpr KvType kType = KvType::f16;
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    widen_elements<2>(position, head_dim, to,
                      [](const std::byte* at) __attribute__((always_inline)) { return load_promote_f16(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::uint16_t half[kLanes];
      store_demote_u16(half, demote_f16(load_n(x + i, n)));
      __builtin_memcpy(to + i * 2, half, n * 2);
    }
  }
};

/// A float scale, then int8 codes: value = scale * code.
struct KvQ8 {
  static constexpr KvType kType = KvType::q8;
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    float one;
    __builtin_memcpy(&one, position, sizeof one);
    const Floats scale = broadcast(one);
    widen_elements<1>(position + sizeof one, head_dim, to, [&](const std::byte* at) __attribute__((always_inline)) {
      return scale * convert_to<Floats>(load_promote_i8(at));
    });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    Bits most = broadcast(0u);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      most = max(abs_bits(load_n(x + i, head_dim - i)), most);
    }
    const Int8Scale scale = int8_scale(reduce_max(most));
    __builtin_memcpy(to, &scale.d, sizeof scale.d);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::int8_t codes[kLanes];
      store_demote_i8(codes, int8_codes(load_n(x + i, n), scale));
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

  /// To whole groups.
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, position += kHeadBytes + kCodeBytes) {
      std::uint32_t head;
      __builtin_memcpy(&head, position, sizeof head);
      const Floats scale = broadcast(bit_cast<float>(head << 16));
      const Floats minimum = broadcast(bit_cast<float>(head & 0xffff0000u));
      Bits low;
      if constexpr (kBits == 4) {
        low = load_promote_u8(position + kHeadBytes);
      } else {  // the upper half of the lanes takes each byte's next code
        std::byte twice[2 * kCodeBytes];
        __builtin_memcpy(twice, position + kHeadBytes, kCodeBytes);
        __builtin_memcpy(twice + kCodeBytes, position + kHeadBytes, kCodeBytes);
        const Bits bytes = load_promote_u8(twice);
        low = select(load<Bits>(kUpper), shift_right<kBits>(bytes), bytes);
      }
      const auto value = [&](Bits code) __attribute__((always_inline)) {
        return minimum + scale * convert_to<Floats>(bit_cast<Ints>(code & broadcast(kTop)));
      };
      store(to + d, value(low));
      store(to + d + kLanes, value(shift_right<4>(low)));
    }
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
    const float most = reduce_max(max(low, high));
    const float least = -reduce_max(max(broadcast(0.0f) - low, broadcast(0.0f) - high));
    auto minimum_bits = bit_cast<std::uint32_t>(least);
    if ((minimum_bits >> 31) != 0) minimum_bits += 0xffffu;
    minimum_bits &= 0xffff0000u;
    const float minimum = bit_cast<float>(minimum_bits);
    std::uint32_t scale_bits = bit_cast<std::uint32_t>((most - minimum) / static_cast<float>(kTop)) + 0xffffu;
    scale_bits &= 0xffff0000u;
    const bool finite = reduce_max(max(abs_bits(low), abs_bits(high))) < 0x7f800000u;
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
      const Floats scale = broadcast(bit_cast<float>(scale_bits));
      store(codes, nearest_int((low - broadcast(minimum)) / scale));
      store(codes + kLanes, nearest_int((high - broadcast(minimum)) / scale));
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

// Cached positions are widened a tile at a time, so that all queries share that work; a tile stays in the first level
// of cache.
inline constexpr std::size_t kTileFloats = kParts == 1 ? 4096 : 1024;  // 16 positions of 256 floats, see score()
static_assert(kMaxHeadDim <= kTileFloats);

/// `n` positions of a ring from `first` on, as floats: [n, stride].
template <class Kv>
QSF_INLINE void widen(const AttendArgs& a, const std::byte* ring, std::uint32_t first, std::uint32_t n,
                      std::size_t stride, float* tile) {
  const std::size_t bytes = kv_bytes(Kv::kType, a.head_dim);
  std::uint32_t slot = first % a.capacity;
  for (std::uint32_t i = 0; i < n; ++i) {
    Kv::widen(ring + slot * bytes, a.head_dim, tile + i * stride);
    if (++slot == a.capacity) slot = 0;
  }
}

/// Tile after tile of the ring: visible(t, head, at, values, n, stride) for each query that sees n > 0 positions of it,
/// values [n, stride] the first of which is the query's own at-th.
template <class Kv, class Visible>
QSF_INLINE void for_tiles(const AttendArgs& a, const std::byte* ring, Visible visible) {
  alignas(64) float tile[kTileFloats];
  const std::size_t stride = (a.head_dim + kKvGroup - 1) / kKvGroup * kKvGroup;
  const auto most = static_cast<std::uint32_t>(kTileFloats / stride);
  const std::uint32_t end = a.end(a.n_positions - 1);
  for (std::uint32_t first = a.oldest(0), n = 0; first < end; first += n) {
    n = end - first < most ? end - first : most;
    widen<Kv>(a, ring, first, n, stride, tile);
    for (std::uint32_t t = 0; t < a.n_positions; ++t) {
      const std::uint32_t oldest = a.oldest(t), seen = a.end(t);
      const std::uint32_t from = oldest > first ? oldest : first, to = seen < first + n ? seen : first + n;
      if (from >= to) continue;
      for (std::uint32_t head = 0; head < a.n_heads; ++head) {
        visible(t, head, from - oldest, tile + (from - first) * stride, to - from, stride);
      }
    }
  }
}

/// Products of a query with kPositions keys, [kPositions, stride], lane by lane: dots(i, lanes) for each.
template <int kPositions, class Dots>
QSF_INLINE void multiply(const AttendArgs& a, const float* q, const float* keys, std::size_t stride, Dots dots) {
  Floats sums[kPositions];
  unroll<kPositions>([&](auto i) __attribute__((always_inline)) { sums[i] = broadcast(0.0f); });
  const auto add = [&](std::size_t d, Floats of_query) __attribute__((always_inline)) {
    unroll<kPositions>(
        [&](auto i) __attribute__((always_inline)) { sums[i] = sums[i] + of_query * load(keys + i * stride + d); });
  };
  std::size_t d = 0;
  for (; d + kLanes <= a.head_dim; d += kLanes) add(d, load(q + d));
  if (d < a.head_dim) add(d, load_n(q + d, a.head_dim - d));
  unroll<kPositions>([&](auto i) __attribute__((always_inline)) { dots(i, sums[i]); });
}

/// The scores of n keys, [n, stride].
template <int kPositions>
QSF_INLINE void score(const AttendArgs& a, const float* q, const float* keys, std::uint32_t n, std::size_t stride,
                      float* scores) {
  std::uint32_t i = 0;
  if constexpr (kParts == 1) {
    for (; n - i >= kLanes; i += kLanes) {
      FloatPart sums[kLanes];
      multiply<kLanes>(a, q, keys + i * stride, stride,
                       [&](auto j, Floats lanes) __attribute__((always_inline)) { sums[j] = lanes.part[0]; });
      store(scores + i, Floats{{reduce_sums(sums) * a.scale}});
    }
  }
  for (; n - i >= 4; i += 4) {
    Four<float> half[4];
    unroll<4 / kPositions>([&](auto pass) __attribute__((always_inline)) {
      constexpr std::uint32_t kFirst = pass * kPositions;
      multiply<kPositions>(a, q, keys + (i + kFirst) * stride, stride,
                           [&](auto j, Floats lanes)
                               __attribute__((always_inline)) { half[kFirst + j] = reduce_sum_to_four(lanes); });
    });
    const Four<float> four = reduce_sums_of_four(half[0], half[1], half[2], half[3]) * a.scale;
    __builtin_memcpy(scores + i, &four, sizeof four);
  }
  for (; i < n; ++i) {
    multiply<1>(a, q, keys + i * stride, stride,
                [&](auto, Floats lanes) __attribute__((always_inline)) { scores[i] = reduce_sum(lanes) * a.scale; });
  }
}

/// out[0 .. 16 kVectors), `left` of which there are, plus weights[i] * values[i] in ascending order of n positions.
template <int kVectors>
QSF_INLINE void add_weighted(const float* weights, const float* values, std::uint32_t n, std::size_t stride,
                             std::size_t left, float* out) {
  Floats sums[kVectors];
  unroll<kVectors>([&](auto v)
                       __attribute__((always_inline)) { sums[v] = load_n(out + v * kLanes, left - v * kLanes); });
  const auto add = [&](std::uint32_t i) __attribute__((always_inline)) {
    const Floats weight = broadcast(weights[i]);
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[v] = sums[v] + weight * load(values + i * stride + v * kLanes);
    });
  };
  std::uint32_t i = 0;
  if constexpr (kParts == 1) {
    for (; n - i >= 4; i += 4) unroll<4>([&](auto next) __attribute__((always_inline)) { add(i + next); });
  }
  for (; i < n; ++i) add(i);
  unroll<kVectors>([&](auto v)
                       __attribute__((always_inline)) { store_n(out + v * kLanes, sums[v], left - v * kLanes); });
}

/// Of n scores, the last of which is the query's own position's: ALiBi (Press et al., 2021).
QSF_INLINE void bias_by_distance(float* scores, std::uint32_t n, float slope) {
  for (std::uint32_t i = 0; i < n; ++i) scores[i] = scores[i] - slope * static_cast<float>(n - 1 - i);
}

template <class Kv>
void attend(const AttendArgs& a) {
  // With accumulators in 8 registers at most.
  constexpr int kPositions = kParts > 4 ? 1 : kParts == 4 ? 2 : 4;
  constexpr int kVectors = kPositions;
  const auto place = [&](std::uint32_t t, std::uint32_t head) __attribute__((always_inline)) {
    return t * std::size_t{a.stride} + head * std::size_t{a.head_dim};
  };
  const auto scores = [&](std::uint32_t t, std::uint32_t head) __attribute__((always_inline)) {
    return a.scores + (t * std::size_t{a.n_heads} + head) * a.capacity;
  };
  for_tiles<Kv>(a, a.k,
                [&](std::uint32_t t, std::uint32_t head, std::uint32_t at, const float* keys, std::uint32_t n,
                    std::size_t stride) __attribute__((always_inline)) {
                  score<kPositions>(a, a.q + place(t, head), keys, n, stride, scores(t, head) + at);
                });
  for (std::uint32_t t = 0; t < a.n_positions; ++t) {
    for (std::uint32_t head = 0; head < a.n_heads; ++head) {
      const std::uint32_t n = a.end(t) - a.oldest(t);
      if (a.slopes != nullptr) bias_by_distance(scores(t, head), n, a.slopes[head]);
      if (a.cap != 0) soft_cap(scores(t, head), n, a.cap);
      softmax_beside(scores(t, head), n, 1.0f, a.sinks != nullptr ? a.sinks + head : nullptr);
      __builtin_memset(a.out + place(t, head), 0, a.head_dim * sizeof(float));
    }
  }
  for_tiles<Kv>(a, a.v,
                [&](std::uint32_t t, std::uint32_t head, std::uint32_t at, const float* values, std::uint32_t n,
                    std::size_t stride) __attribute__((always_inline)) {
                  const float* const weights = scores(t, head) + at;
                  float* const out = a.out + place(t, head);
                  std::size_t d = 0;
                  for (; d + kVectors * kLanes <= a.head_dim; d += kVectors * kLanes) {
                    add_weighted<kVectors>(weights, values + d, n, stride, kVectors * kLanes, out + d);
                  }
                  for (; d < a.head_dim; d += kLanes)
                    add_weighted<1>(weights, values + d, n, stride, a.head_dim - d, out + d);
                });
}

}  // namespace
}  // namespace qsf
