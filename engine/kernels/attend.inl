// Attention over the KV cache of one head.

namespace qsf {
namespace {

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

/// Queries [first, last), of a.n_heads at each position, that see positions [from, to).
struct Seen {
  std::uint32_t first, last;
  std::uint32_t from, to;
};

QSF_INLINE std::size_t place(const AttendArgs& a, std::uint32_t query) {
  return query / a.n_heads * a.stride + query % a.n_heads * std::size_t{a.head_dim};
}
/// A query's of a position.
QSF_INLINE float* score_of(const AttendArgs& a, std::uint32_t query, std::uint32_t position) {
  return a.scores + query * std::size_t{a.capacity} + (position - a.oldest(query / a.n_heads));
}

/// What a ring holds behind a tile, asked for a few lines at a time.
class AskedAhead {
 public:
  QSF_INLINE void begin(const AttendArgs& a, const std::byte* ring, std::uint32_t first, std::size_t bytes) {
    at_ = ring + first % a.capacity * bytes;
    end_ = ring + a.capacity * bytes;
  }
  QSF_INLINE void ask() {
    if constexpr (!kReadsAhead) return;
    for (int line = 0; line < kLines && at_ < end_; ++line, at_ += kLine) __builtin_prefetch(at_, 0, 2);
  }

 private:
  static constexpr int kLines = 16;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

/// Tiles of at most so many of the positions that queries see: enter(first, n), then visible(seen) for those queries
/// that see the same of it.
template <class Enter, class Visible>
QSF_INLINE void for_tiles(const AttendArgs& a, std::uint32_t most, Enter enter, Visible visible) {
  const std::uint32_t end = a.end(a.n_positions - 1);
  for (std::uint32_t first = a.oldest(0), n = 0; first < end; first += n) {
    n = end - first < most ? end - first : most;
    enter(first, n);
    const auto seen_by = [&](std::uint32_t t) __attribute__((always_inline)) {
      const std::uint32_t oldest = a.oldest(t), seen = a.end(t);
      return Seen{t * a.n_heads, (t + 1) * a.n_heads, oldest > first ? oldest : first,
                  seen < first + n ? seen : first + n};
    };
    for (std::uint32_t t = 0; t < a.n_positions;) {
      Seen seen = seen_by(t++);
      for (; t < a.n_positions; ++t) {
        const Seen next = seen_by(t);
        if (next.from != seen.from || next.to != seen.to) break;
        seen.last = next.last;
      }
      if (seen.from < seen.to) visible(seen);
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

/// The tree of a sum over lanes, where lane l's is a vector apart: leaf(l) is that of lanes l and l + 8.
template <int kLane = 0, int kApart = 1, class Leaf>
QSF_INLINE auto add_by_tree(Leaf leaf) {
  if constexpr (2 * kApart == kLanes) {
    return leaf(std::integral_constant<int, kLane>{});
  } else {
    return add_by_tree<kLane, 2 * kApart>(leaf) + add_by_tree<kLane + kApart, 2 * kApart>(leaf);
  }
}

template <int kCount>
QSF_INLINE Several<Floats, kCount> operator+(const Several<Floats, kCount>& a, const Several<Floats, kCount>& b) {
  return several<Floats, kCount>([&](std::size_t i) __attribute__((always_inline)) { return a.of[i] + b.of[i]; });
}

inline constexpr bool kTurnsKeys = kParts == 1;
inline constexpr std::uint32_t kTurnedFor = 8;  // queries: for fewer it takes longer than it saves

/// The scores of kPanels times 16 keys, [head_dim, 16] each, of kQueries queries: the bits that score() has, with keys
/// in the lanes, so that sums are not gathered from them.
template <int kQueries, int kPanels>
QSF_INLINE void score_panels(const AttendArgs& a, const float* const (&q)[kQueries], const float* keys,
                             Floats* scores) {
  using Sums = Several<Floats, kQueries * kPanels>;
  const std::size_t panel = a.head_dim * std::size_t{kLanes};
  const auto products = [&](std::size_t d) __attribute__((always_inline)) {
    Sums sums;
    Floats of_panel[kPanels];
    unroll<kPanels>(
        [&](auto p) __attribute__((always_inline)) { of_panel[p] = in_register(load(keys + p * panel + d * kLanes)); });
    unroll<kQueries>([&](auto i) __attribute__((always_inline)) {
      const Floats of_query = in_register(broadcast(q[i][d]));
      unroll<kPanels>([&](auto p)
                          __attribute__((always_inline)) { sums.of[i * kPanels + p] = of_query * of_panel[p]; });
    });
    return sums;
  };
  const Sums sums = add_by_tree([&](auto lane) __attribute__((always_inline)) {
    constexpr std::size_t kOther = kLanes / 2;
    Sums sum = products(lane), other = products(lane + kOther);
    for (std::size_t d = lane + kLanes; d < a.head_dim; d += kLanes) {
      sum = sum + products(d);
      other = other + products(d + kOther);
    }
    return sum + other;
  });
  // A sum that begins with +0 is never -0.
  unroll<kQueries * kPanels>(
      [&](auto i) __attribute__((always_inline)) { scores[i] = (sums.of[i] + broadcast(0.0f)) * broadcast(a.scale); });
}

/// Of keys of a tile from `first` on, in panels, those scores that the queries see.
template <int kQueries, int kPanels>
QSF_INLINE void score_turned(const AttendArgs& a, const Seen& seen, std::uint32_t query, std::uint32_t first,
                             std::uint32_t begin, const float* keys) {
  const float* q[kQueries];
  unroll<kQueries>([&](auto i) __attribute__((always_inline)) { q[i] = a.q + place(a, query + i); });
  Floats scores[kQueries * kPanels];
  score_panels<kQueries, kPanels>(a, q, keys + (begin - first) * std::size_t{a.head_dim}, scores);
  unroll<kQueries>([&](auto i) __attribute__((always_inline)) {
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
      const std::uint32_t at = begin + p * kLanes;
      const std::uint32_t from = seen.from > at ? seen.from - at : 0;
      const std::uint32_t to = seen.to < at + kLanes ? seen.to - at : kLanes;
      if (from == 0 && to == kLanes) return store(score_of(a, query + i, at), scores[i * kPanels + p]);
      float padded[kLanes];
      store(padded, scores[i * kPanels + p]);
      if (from < to) __builtin_memcpy(score_of(a, query + i, at + from), padded + from, (to - from) * sizeof(float));
    });
  });
}

/// Of kQueries queries, out[0 .. 16 kVectors), `left` of which there are, plus weights[i] * values[i] in ascending
/// order of n positions.
template <int kQueries, int kVectors>
QSF_INLINE void add_weighted(const float* const (&weights)[kQueries], const float* values, std::uint32_t n,
                             std::size_t stride, std::size_t left, float* const (&out)[kQueries]) {
  Floats sums[kQueries][kVectors];
  unroll<kQueries>([&](auto q) __attribute__((always_inline)) {
    unroll<kVectors>(
        [&](auto v) __attribute__((always_inline)) { sums[q][v] = load_n(out[q] + v * kLanes, left - v * kLanes); });
  });
  const auto add = [&](std::uint32_t i) __attribute__((always_inline)) {
    Floats value[kVectors];
    unroll<kVectors>(
        [&](auto v) __attribute__((always_inline)) { value[v] = in_register(load(values + i * stride + v * kLanes)); });
    unroll<kQueries>([&](auto q) __attribute__((always_inline)) {
      const Floats weight = broadcast(weights[q][i]);
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) { sums[q][v] = sums[q][v] + weight * value[v]; });
    });
  };
  std::uint32_t i = 0;
  if constexpr (kParts == 1) {
    for (; n - i >= 4; i += 4) unroll<4>([&](auto next) __attribute__((always_inline)) { add(i + next); });
  }
  for (; i < n; ++i) add(i);
  unroll<kQueries>([&](auto q) __attribute__((always_inline)) {
    unroll<kVectors>(
        [&](auto v) __attribute__((always_inline)) { store_n(out[q] + v * kLanes, sums[q][v], left - v * kLanes); });
  });
}

/// The same of all their dimensions, of values from position `first` on.
template <int kQueries, int kVectors>
QSF_INLINE void add_values(const AttendArgs& a, const Seen& seen, std::uint32_t query, std::uint32_t first,
                           const float* tile, std::size_t stride) {
  const float* weights[kQueries];
  float* out[kQueries];
  unroll<kQueries>([&](auto q) __attribute__((always_inline)) {
    weights[q] = score_of(a, query + q, seen.from);
    out[q] = a.out + place(a, query + q);
  });
  const float* values = tile + (seen.from - first) * stride;
  const auto next = [&](std::size_t by) __attribute__((always_inline)) {
    values += by;
    unroll<kQueries>([&](auto q) __attribute__((always_inline)) { out[q] += by; });
  };
  std::size_t left = a.head_dim;
  for (; left >= kVectors * kLanes; left -= kVectors * kLanes, next(kVectors * kLanes)) {
    add_weighted<kQueries, kVectors>(weights, values, seen.to - seen.from, stride, kVectors * kLanes, out);
  }
  for (; left > 0; left -= left < kLanes ? left : kLanes, next(kLanes)) {
    add_weighted<kQueries, 1>(weights, values, seen.to - seen.from, stride, left, out);
  }
}

/// Of n scores, the last of which is the query's own position's: ALiBi (Press et al., 2021).
QSF_INLINE void bias_by_distance(float* scores, std::uint32_t n, float slope) {
  for (std::uint32_t i = 0; i < n; ++i) scores[i] = scores[i] - slope * static_cast<float>(n - 1 - i);
}

/// body(query) for those that saw, kAtOnce at once while there are as many.
template <int kAtOnce, class Body>
QSF_INLINE void for_queries(const Seen& seen, Body body) {
  std::uint32_t query = seen.first;
  for (; seen.last - query >= kAtOnce; query += kAtOnce) body(std::integral_constant<int, kAtOnce>{}, query);
  if constexpr (kAtOnce > 1) {
    for (; query < seen.last; ++query) body(std::integral_constant<int, 1>{}, query);
  }
}

/// A tile of keys turned, in panels of 16: [head_dim, 16] each.
template <class Kv>
QSF_INLINE void widen_turned(const AttendArgs& a, std::uint32_t first, std::uint32_t n, std::size_t stride,
                             float* tile) {
  alignas(64) float rows[kTileFloats];
  for (std::uint32_t i = 0; i < n; i += kLanes, tile += a.head_dim * std::size_t{kLanes}) {
    const std::uint32_t there = n - i < kLanes ? n - i : kLanes;
    widen<Kv>(a, a.k, first + i, there, stride, rows);
    __builtin_memset(rows + there * stride, 0, (kLanes - there) * stride * sizeof(float));
    for (std::size_t d = 0; d < a.head_dim; d += kLanes) {
      FloatPart turned[kLanes];
      unroll<kLanes>([&](auto j) __attribute__((always_inline)) { turned[j] = load(rows + j * stride + d).part[0]; });
      transpose(turned);
      unroll<kLanes>([&](auto j)
                         __attribute__((always_inline)) { store(tile + (d + j) * kLanes, Floats{{turned[j]}}); });
    }
  }
}

template <class Kv>
void attend(const AttendArgs& a) {
  // With accumulators in 8 registers at most, in 16 where there are 32.
  constexpr int kPositions = kParts > 4 ? 1 : kParts == 4 ? 2 : 4;
  constexpr int kQueries = kParts == 1 ? 4 : kParts <= 4 && !kFewKernels ? 2 : 1;
  constexpr int kVectors = kParts == 1 ? 4 : (kPositions + kQueries - 1) / kQueries;
  alignas(64) float tile[kTileFloats];
  const std::size_t stride = (a.head_dim + kKvGroup - 1) / kKvGroup * kKvGroup;
  const auto most = static_cast<std::uint32_t>(kTileFloats / stride);
  const std::uint32_t n_queries = a.n_positions * a.n_heads;
  std::uint32_t first = 0;  // of the tile
  AskedAhead ahead;
  const auto enter = [&](const std::byte* ring, std::uint32_t begin, std::uint32_t n) __attribute__((always_inline)) {
    first = begin;
    ahead.begin(a, ring, begin + n, kv_bytes(Kv::kType, a.head_dim));
  };

  bool turned = false;
  if constexpr (kTurnsKeys) {
    turned = n_queries >= kTurnedFor && a.head_dim % kLanes == 0 && most >= kLanes;
    if (turned) {
      for_tiles(
          a, most / kLanes * kLanes,
          [&](std::uint32_t begin, std::uint32_t n) __attribute__((always_inline)) {
            enter(a.k, begin, n);
            widen_turned<Kv>(a, first, n, stride, tile);
          },
          [&](const Seen& seen) __attribute__((always_inline)) {
            for_queries<2>(seen, [&](auto together, std::uint32_t query) __attribute__((always_inline)) {
              ahead.ask();
              std::uint32_t at = first + (seen.from - first) / kLanes * kLanes;
              for (; at + kLanes < seen.to; at += 2 * kLanes)
                score_turned<together, 2>(a, seen, query, first, at, tile);
              if (at < seen.to) score_turned<together, 1>(a, seen, query, first, at, tile);
            });
          });
    }
  }
  const auto widened = [&](const std::byte* ring) __attribute__((always_inline)) {
    return [&, ring](std::uint32_t begin, std::uint32_t n) __attribute__((always_inline)) {
      enter(ring, begin, n);
      widen<Kv>(a, ring, first, n, stride, tile);
    };
  };
  if (!turned) {
    for_tiles(a, most, widened(a.k), [&](const Seen& seen) __attribute__((always_inline)) {
      for_queries<1>(seen, [&](auto, std::uint32_t query) __attribute__((always_inline)) {
        ahead.ask();
        score<kPositions>(a, a.q + place(a, query), tile + (seen.from - first) * stride, seen.to - seen.from, stride,
                          score_of(a, query, seen.from));
      });
    });
  }
  for (std::uint32_t query = 0; query < n_queries; ++query) {
    const std::uint32_t t = query / a.n_heads, head = query % a.n_heads, n = a.end(t) - a.oldest(t);
    float* const scores = score_of(a, query, a.oldest(t));
    if (a.slopes != nullptr) bias_by_distance(scores, n, a.slopes[head]);
    if (a.cap != 0) soft_cap(scores, n, a.cap);
    softmax_beside(scores, n, 1.0f, a.sinks != nullptr ? a.sinks + head : nullptr);
    __builtin_memset(a.out + place(a, query), 0, a.head_dim * sizeof(float));
  }
  for_tiles(a, most, widened(a.v), [&](const Seen& seen) __attribute__((always_inline)) {
    for_queries<kQueries>(seen, [&](auto together, std::uint32_t query) __attribute__((always_inline)) {
      ahead.ask();
      add_values<together, kVectors>(a, seen, query, first, tile, stride);
    });
  });
}

}  // namespace
}  // namespace qsf
