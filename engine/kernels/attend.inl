// Attention over the KV cache of one head.

namespace qsf {
namespace {

// The number of floats in a tile of widened positions. All queries share the work of widening. A tile stays in the
// first level of cache; a larger tile would not.
inline constexpr std::size_t kTileFloats = kParts == 1 ? 4096 : 1024;  // 16 positions of 256 floats, see score()
static_assert(kMaxHeadDim <= kTileFloats);

/// The queries at positions [first, last) that see positions [from, to).
struct Seen {
  std::uint32_t first, last;
  std::uint32_t from, to;
};

struct Query {
  const float* q;
  float* out;
  float* scores;
  std::uint32_t oldest;  // the first position that the query sees after the first_kept ones
  std::uint32_t unseen;  // positions before it that the query does not see

  QSF_INLINE float* score(std::uint32_t position) const {
    return scores + (position < oldest ? position : position - unseen);
  }
};

/// Iterates over queries in order of positions, then heads, from a position on.
class Queries {
 public:
  QSF_INLINE Queries(const AttendArgs& a, std::uint32_t position)
      : a_(a),
        position_(position),
        seen_(a.most_seen()),
        scores_(a.scores + std::size_t{position} * a.n_heads * seen_) {}

  QSF_INLINE Query next() {
    const std::size_t at = position_ * a_.stride + std::size_t{head_} * a_.head_dim;
    const std::uint32_t oldest = a_.oldest(position_), end = a_.end(position_);
    const Query query{a_.q + at, a_.out + at, scores_, oldest, end - a_.n_seen(position_)};
    scores_ += seen_;
    if (++head_ == a_.n_heads) {
      head_ = 0;
      ++position_;
    }
    return query;
  }

 private:
  const AttendArgs& a_;
  std::uint32_t position_, head_ = 0;
  std::size_t seen_;
  float* scores_;
};

/// Calls body(queries) for all queries of `seen`, with kAtOnce queries in a call while as many are left, then one by
/// one.
template <int kAtOnce, class Body>
QSF_INLINE void for_queries(const AttendArgs& a, const Seen& seen, Body body) {
  Queries queries(a, seen.first);
  const auto take = [&]<int kCount>(std::integral_constant<int, kCount>) __attribute__((always_inline)) {
    Query several[kCount];
    unroll<kCount>([&](auto i) __attribute__((always_inline)) { several[i] = queries.next(); });
    body(several);
  };
  std::uint32_t left = (seen.last - seen.first) * a.n_heads;
  for (; left >= kAtOnce; left -= kAtOnce) take(std::integral_constant<int, kAtOnce>{});
  if constexpr (kAtOnce > 1) {
    for (; left > 0; --left) take(std::integral_constant<int, 1>{});
  }
}

/// Whether sums use fused multiply-add. It needs a cache whose products are exact floats, because then a fused sum has
/// the bits of one that is not fused, and a processor that has the instruction.
template <bool kShort, class Part = FloatPart>
inline constexpr bool kFusedOver = kShort && requires(Part part) { plus_product(part, part, part); };

/// Returns sum + a b, fused or not.
template <bool kFused, class V>
QSF_INLINE V add_product(V sum, V a, V b) {
  if constexpr (kFused) {
    return QSF_EACH(V, plus_product(sum.part[i], a.part[i], b.part[i]));
  } else {
    return sum + a * b;
  }
}

/// Prefetches the positions that follow a tile in the ring, a few cache lines for each call.
class AskedAhead {
 public:
  QSF_INLINE void begin(const Ring& ring, std::uint32_t first) {
    const std::size_t bytes = ring.bytes();
    at_ = ring.data + ring.slot(first) * bytes;
    end_ = ring.data + ring.capacity * bytes;
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

/// Positions that queries read from the same rings: those from `floor` to `limit` that query t sees and that are in its
/// window, if `in_window`, before its exact ones, if `rounded`, or among them, if `last`.
struct Portion {
  const Ring* k;
  const Ring* v;
  std::uint32_t floor, limit;
  bool in_window, rounded, last;

  QSF_INLINE std::uint32_t begin(const AttendArgs& a, std::uint32_t t) const {
    const std::uint32_t least = in_window ? a.oldest(t) : last ? a.exact_from(t) : 0;
    return least > floor ? least : floor;
  }
  QSF_INLINE std::uint32_t end(const AttendArgs& a, std::uint32_t t) const {
    const std::uint32_t most = rounded ? a.exact_from(t) : a.end(t);
    return most < limit ? most : limit;
  }
};

/// Splits the positions of a part into tiles of at most `most`. Calls enter(first, n) for each tile, then visible(seen)
/// for each run of queries that see the same positions of it.
template <class Enter, class Visible>
QSF_INLINE void for_tiles(const AttendArgs& a, const Portion& part, std::uint32_t most, Enter enter, Visible visible) {
  const std::uint32_t end = part.end(a, a.n_positions - 1);
  for (std::uint32_t first = part.begin(a, 0), n = 0; first < end; first += n) {
    n = end - first < most ? end - first : most;
    enter(first, n);
    const auto seen_by = [&](std::uint32_t t) __attribute__((always_inline)) {
      const std::uint32_t oldest = part.begin(a, t), seen = part.end(a, t);
      return Seen{t, t + 1, oldest > first ? oldest : first, seen < first + n ? seen : first + n};
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

/// Multiplies a query with kPositions keys, [kPositions, stride], and calls dots(i, lanes) with the 16 lane sums of
/// each.
template <bool kFused, int kPositions, class Dots>
QSF_INLINE void multiply(const AttendArgs& a, const float* q, const float* keys, std::size_t stride, Dots dots) {
  Floats sums[kPositions];
  unroll<kPositions>([&](auto i) __attribute__((always_inline)) { sums[i] = broadcast(0.0f); });
  const auto add = [&](std::size_t d, Floats of_query) __attribute__((always_inline)) {
    unroll<kPositions>([&](auto i) __attribute__((always_inline)) {
      sums[i] = add_product<kFused>(sums[i], of_query, load(keys + i * stride + d));
    });
  };
  std::size_t d = 0;
  for (; d + kLanes <= a.head_dim; d += kLanes) add(d, load(q + d));
  if (d < a.head_dim) add(d, load_n(q + d, a.head_dim - d));
  unroll<kPositions>([&](auto i) __attribute__((always_inline)) { dots(i, sums[i]); });
}

/// Computes the scores of n keys, [n, stride].
template <bool kFused, int kPositions>
void score(const AttendArgs& a, const float* q, const float* keys, std::uint32_t n, std::size_t stride, float* scores) {
  std::uint32_t i = 0;
  if constexpr (kParts == 1) {
    for (; n - i >= kLanes; i += kLanes) {
      FloatPart sums[kLanes];
      multiply<kFused, kLanes>(a, q, keys + i * stride, stride,
                               [&](auto j, Floats lanes) __attribute__((always_inline)) { sums[j] = lanes.part[0]; });
      store(scores + i, Floats{{reduce_sums(sums) * a.scale}});
    }
  }
  for (; n - i >= 4; i += 4) {
    Four<float> half[4];
    unroll<4 / kPositions>([&](auto pass) __attribute__((always_inline)) {
      constexpr std::uint32_t kFirst = pass * kPositions;
      multiply<kFused, kPositions>(
          a, q, keys + (i + kFirst) * stride, stride,
          [&](auto j, Floats lanes) __attribute__((always_inline)) { half[kFirst + j] = reduce_sum_to_four(lanes); });
    });
    const Four<float> four = reduce_sums_of_four(half[0], half[1], half[2], half[3]) * a.scale;
    __builtin_memcpy(scores + i, &four, sizeof four);
  }
  for (; i < n; ++i) {
    multiply<kFused, 1>(a, q, keys + i * stride, stride, [&](auto, Floats lanes) __attribute__((always_inline)) {
      scores[i] = reduce_sum(lanes) * a.scale;
    });
  }
}

/// Adds lane sums by the tree of kernels.h if each lane has a vector of its own. leaf(l) returns the sum of lanes l and
/// l + 8.
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

inline constexpr std::uint32_t kTurnedFor = 8;  // queries; for fewer, transposing takes longer than it saves

/// Computes the scores of kPanels panels of 16 keys, [head_dim, 16] each, for kQueries queries. The scores have the
/// bits of score(). A lane is a key, so that no sum over lanes is needed.
template <bool kFused, int kQueries, int kPanels>
QSF_INLINE void score_panels(const AttendArgs& a, const Query (&queries)[kQueries], const float* keys, Floats* scores) {
  using Sums = Several<Floats, kQueries * kPanels>;
  const std::size_t panel = a.head_dim * std::size_t{kLanes};
  const auto for_products = [&](std::size_t d, auto of) __attribute__((always_inline)) {
    Floats of_panel[kPanels];
    unroll<kPanels>(
        [&](auto p) __attribute__((always_inline)) { of_panel[p] = in_register(load(keys + p * panel + d * kLanes)); });
    unroll<kQueries>([&](auto i) __attribute__((always_inline)) {
      const Floats of_query = in_register(broadcast(queries[i].q[d]));
      unroll<kPanels>([&](auto p) __attribute__((always_inline)) { of(i * kPanels + p, of_query, of_panel[p]); });
    });
  };
  const auto begin = [&](std::size_t d) __attribute__((always_inline)) {
    Sums sums;
    for_products(d, [&](std::size_t i, Floats x, Floats y) __attribute__((always_inline)) { sums.of[i] = x * y; });
    return sums;
  };
  const auto add = [&](Sums& sums, std::size_t d) __attribute__((always_inline)) {
    for_products(d, [&](std::size_t i, Floats x, Floats y)
                        __attribute__((always_inline)) { sums.of[i] = add_product<kFused>(sums.of[i], x, y); });
  };
  const Sums sums = add_by_tree([&](auto lane) __attribute__((always_inline)) {
    constexpr std::size_t kOther = kLanes / 2;
    Sums sum = begin(lane), other = begin(lane + kOther);
    for (std::size_t d = lane + kLanes; d < a.head_dim; d += kLanes) {
      add(sum, d);
      add(other, d + kOther);
    }
    return sum + other;
  });
  // Adding +0 turns -0 into +0, because the sums of score() begin with +0 and are never -0.
  unroll<kQueries * kPanels>(
      [&](auto i) __attribute__((always_inline)) { scores[i] = (sums.of[i] + broadcast(0.0f)) * broadcast(a.scale); });
}

/// Computes the scores of keys in kPanels panels from position `at` on, and stores those that the queries see.
template <bool kFused, int kQueries, int kPanels>
QSF_INLINE void score_turned(const AttendArgs& a, const Seen& seen, const Query (&queries)[kQueries], std::uint32_t at,
                             const float* panels) {
  Floats scores[kQueries * kPanels];
  score_panels<kFused, kQueries, kPanels>(a, queries, panels, scores);
  unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
    const std::uint32_t begin = at + p * kLanes;
    const std::uint32_t from = seen.from > begin ? seen.from - begin : 0;
    const std::uint32_t to = seen.to < begin + kLanes ? seen.to - begin : kLanes;
    unroll<kQueries>([&](auto i) __attribute__((always_inline)) {
      const Floats of_query = scores[i * kPanels + p];
      if (from == 0 && to == kLanes) return store(queries[i].score(begin), of_query);
      float padded[kLanes];
      store(padded, of_query);
      if (from < to) {
        __builtin_memcpy(queries[i].score(begin + from), padded + from, (to - from) * sizeof(float));
      }
    });
  });
}

/// Adds weights[i] * values[i] to out[0 .. 16 kVectors) of kQueries queries, for n positions in ascending order. Only
/// the first `left` elements of `out` exist.
template <bool kFused, int kQueries, int kVectors>
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
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[q][v] = add_product<kFused>(sums[q][v], weight, value[v]);
      });
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

/// Adds weighted values in all dimensions of kQueries queries. `first` is the position of the tile's first value.
template <bool kFused, int kVectors, int kQueries>
void add_values(const AttendArgs& a, const Seen& seen, const Query (&queries)[kQueries], std::uint32_t first,
                const float* tile, std::size_t stride) {
  const float* weights[kQueries];
  float* out[kQueries];
  unroll<kQueries>([&](auto q) __attribute__((always_inline)) {
    weights[q] = queries[q].score(seen.from);
    out[q] = queries[q].out;
  });
  const float* values = tile + (seen.from - first) * stride;
  const auto next = [&](std::size_t by) __attribute__((always_inline)) {
    values += by;
    unroll<kQueries>([&](auto q) __attribute__((always_inline)) { out[q] += by; });
  };
  std::size_t left = a.head_dim;
  for (; left >= kVectors * kLanes; left -= kVectors * kLanes, next(kVectors * kLanes)) {
    add_weighted<kFused, kQueries, kVectors>(weights, values, seen.to - seen.from, stride, kVectors * kLanes, out);
  }
  for (; left > 0; left -= left < kLanes ? left : kLanes, next(kLanes)) {
    add_weighted<kFused, kQueries, 1>(weights, values, seen.to - seen.from, stride, left, out);
  }
}

/// Subtracts slope times the distance from each of n scores (ALiBi, Press et al., 2021). The last score belongs to the
/// query's own position.
QSF_INLINE void bias_by_distance(float* scores, std::uint32_t n, float slope) {
  for (std::uint32_t i = 0; i < n; ++i) scores[i] = scores[i] - slope * static_cast<float>(n - 1 - i);
}

/// Adds the bias of its distance to each of n scores. The first score belongs to the position `first` after the
/// query's.
QSF_INLINE void add_biases(float* scores, std::uint32_t n, std::int32_t first, const DistanceBiases& by,
                           std::uint32_t head) {
  const float* const biases = by.biases + std::size_t{head} * by.n_buckets;
  const auto reach = static_cast<std::int32_t>(by.reach);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::int32_t distance = first + static_cast<std::int32_t>(i);
    const std::int32_t limited = distance < -reach ? -reach : distance > reach ? reach : distance;
    scores[i] = scores[i] + biases[by.of_distance[limited]];
  }
}

/// Replaces scores with softmax weights. `sink` is an additional score without a value, or null.
template <bool kShort>
QSF_INLINE void weigh(float* scores, std::uint32_t n, const float* sink) {
  if constexpr (kShort) {
    // With fewer than 2^20 positions, every product of a weight and a value's last bit is an exact float.
    softmax_beside(
        scores, n, 1.0f, sink, [](Floats x) __attribute__((always_inline)) { return rough_exp(x); },
        [](Floats p, Floats by) __attribute__((always_inline)) { return round_to_13_bits(p * by); });
  } else {
    softmax_beside(scores, n, 1.0f, sink);
  }
}

/// The rings of keys and values, and the parts of the positions in ascending order.
struct Cached {
  Ring k, v, exact_k, exact_v;
  Portion parts[4];
  int n = 0;

  QSF_INLINE Cached(const AttendArgs& a, KvForms forms) {
    const auto of = [](KvForm form) { return &kReaders[static_cast<std::size_t>(form)]; };
    const ExactPositions& e = a.exact;
    k = {a.k, of(forms.key), a.head_dim, a.capacity, a.first_kept};
    v = {a.v, of(a.v == a.k ? forms.key : forms.value), a.head_dim, a.capacity, a.first_kept};
    exact_k = {e.k, of(KvForm::f16), a.head_dim, e.capacity, e.first};
    exact_v = {e.v, of(KvForm::f16), a.head_dim, e.capacity, e.first};
    const std::uint32_t windows = a.first_kept > e.first ? a.first_kept : e.first;
    if (e.first != 0) parts[n++] = {&exact_k, &exact_v, 0, e.first, false, false, false};
    if (a.first_kept != 0) parts[n++] = {&k, &v, e.first, a.first_kept, false, true, false};
    parts[n++] = {&k, &v, windows, ~0u, true, true, false};
    if (e.window != 0) parts[n++] = {&exact_k, &exact_v, e.first, ~0u, false, false, true};
  }
  Cached(const Cached&) = delete;
};

template <bool kShort>
void attend(const AttendArgs& args, KvForms forms) {
  // The accumulators fill at most 8 registers, or 16 on processors with 32.
  constexpr int kPositions = kParts > 4 ? 1 : kParts == 4 ? 2 : 4;
  constexpr int kQueries = kParts == 1 ? 4 : kParts <= 4 && !kFewKernels ? 2 : 1;
  constexpr int kVectors = kParts == 1 ? 4 : (kPositions + kQueries - 1) / kQueries;
  constexpr bool kFused = kFusedOver<kShort>;
  alignas(64) float tile[kTileFloats];
  AttendArgs a = args;
  const Cached cached(a, forms);
  const std::size_t stride = (a.head_dim + kKvGroup - 1) / kKvGroup * kKvGroup;
  const auto most = static_cast<std::uint32_t>(kTileFloats / stride);
  const Seen all{0, a.n_positions, 0, 0};
  if constexpr (kShort) {
    for_queries<1>(a, all, [&](const Query(&query)[1]) __attribute__((always_inline)) {
      for (std::size_t d = 0; d < a.head_dim; d += kLanes) {
        const std::size_t left = a.head_dim - d;
        store_n(query[0].out + d, round_to_13_bits(load_n(query[0].q + d, left)), left);
      }
    });
    a.q = a.out;
  }
  std::uint32_t first = 0;  // of the tile
  AskedAhead ahead;
  bool turned = false;
  if constexpr (kTurnsKeys) {
    turned = a.n_positions * a.n_heads >= kTurnedFor && a.head_dim % kLanes == 0 && most >= kLanes;
    for (int part = 0; turned && part < cached.n; ++part) {
      const Ring& ring = *cached.parts[part].k;
      for_tiles(
          a, cached.parts[part], most / kLanes * kLanes,
          [&](std::uint32_t begin, std::uint32_t n) __attribute__((always_inline)) {
            first = begin;
            ahead.begin(ring, begin + n);
            ring.reader->widen_turned(ring, first, n, tile);
          },
          [&](const Seen& seen) __attribute__((always_inline)) {
            for_queries<2>(a, seen,
                           [&]<int kTogether>(const Query(&queries)[kTogether]) __attribute__((always_inline)) {
                             ahead.ask();
                             std::uint32_t at = first + (seen.from - first) / kLanes * kLanes;
                             const float* panels = tile + (at - first) * std::size_t{a.head_dim};
                             for (; at + kLanes < seen.to; at += 2 * kLanes, panels += 2 * kLanes * a.head_dim) {
                               score_turned<kFused, kTogether, 2>(a, seen, queries, at, panels);
                             }
                             if (at < seen.to) score_turned<kFused, kTogether, 1>(a, seen, queries, at, panels);
                           });
          });
    }
  }
  const auto widened = [&](const Ring& ring) __attribute__((always_inline)) {
    return [&](std::uint32_t begin, std::uint32_t n) __attribute__((always_inline)) {
      first = begin;
      ahead.begin(ring, begin + n);
      ring.reader->widen(ring, first, n, stride, tile);
    };
  };
  for (int part = 0; !turned && part < cached.n; ++part) {
    for_tiles(a, cached.parts[part], most, widened(*cached.parts[part].k),
              [&](const Seen& seen) __attribute__((always_inline)) {
                for_queries<1>(a, seen, [&](const Query(&query)[1]) __attribute__((always_inline)) {
                  ahead.ask();
                  score<kFused, kPositions>(a, query[0].q, tile + (seen.from - first) * stride, seen.to - seen.from,
                                            stride, query[0].score(seen.from));
                });
              });
  }
  Queries queries(a, 0);
  for (std::uint32_t t = 0; t < a.n_positions; ++t) {
    const std::uint32_t n = a.n_seen(t);
    const auto from_own = static_cast<std::int32_t>(a.oldest(t) - (a.position + t));  // of the first one seen
    for (std::uint32_t head = 0; head < a.n_heads; ++head) {
      const Query query = queries.next();
      if (a.slopes != nullptr) bias_by_distance(query.scores, n, a.slopes[head]);
      if (a.by_distance.biases != nullptr) add_biases(query.scores, n, from_own, a.by_distance, head);
      if (a.cap != 0) soft_cap(query.scores, n, a.cap);
      weigh<kShort>(query.scores, n, a.sinks != nullptr ? a.sinks + head : nullptr);
      __builtin_memset(query.out, 0, a.head_dim * sizeof(float));
    }
  }
  for (int part = 0; part < cached.n; ++part) {
    for_tiles(a, cached.parts[part], most, widened(*cached.parts[part].v),
              [&](const Seen& seen) __attribute__((always_inline)) {
                for_queries<kQueries>(a, seen, [&](const auto& together) __attribute__((always_inline)) {
                  ahead.ask();
                  add_values<kFused, kVectors>(a, seen, together, first, tile, stride);
                });
              });
  }
}

/// Calls attention for a type.
template <std::size_t kType>
void attend_as(const AttendArgs& args) {
  constexpr KvForms kForms = forms_of(static_cast<KvType>(kType));
  attend<kForms.key == KvForm::f16 || kForms.rotates()>(args, kForms);
}

}  // namespace
}  // namespace qsf
