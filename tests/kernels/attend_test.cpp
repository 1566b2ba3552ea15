// The cache and attention over it, against double precision on what the cache holds, and at guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One head's cache whose memory ends at an unreadable page.
struct Cache {
  Cache(KvType type, std::uint32_t capacity, std::uint32_t head_dim)
      : type(type), head_dim(head_dim), memory(std::size_t{capacity} * kv_bytes(type, head_dim)) {}

  std::byte* position(std::uint32_t slot) const { return memory.data() + std::size_t{slot} * kv_bytes(type, head_dim); }
  void store(const Kernels& kernels, std::span<const float> x, std::uint32_t slot) const {
    kernels.kv_store[static_cast<std::size_t>(type)](x.data(), head_dim, position(slot));
  }

  /// By docs/internals/attention-and-kv.md.
  struct Group {
    float scale;
    float minimum;
    std::uint32_t code;
  };
  Group group(std::uint32_t slot, std::uint32_t d) const {
    const std::uint32_t bits = type == KvType::q4 ? 4 : 2, code_bytes = 32 * bits / 8, v = d % 32;
    const std::byte* const at = position(slot) + d / 32 * (4 + code_bytes);
    const auto byte = std::to_integer<std::uint32_t>(at[4 + v % code_bytes]);
    return {bf16_to_f32(read<bf16>(at)), bf16_to_f32(read<bf16>(at + 2)),
            byte >> (bits * (v / code_bytes)) & ((1u << bits) - 1)};
  }
  float value(std::uint32_t slot, std::uint32_t d) const {
    const std::byte* const at = position(slot);
    if (type == KvType::f32) return read<float>(at + 4 * d);
    if (type == KvType::f16) return f16_to_f32(read<f16>(at + 2 * d));
    if (type == KvType::q8) return read<float>(at) * static_cast<float>(read<std::int8_t>(at + 4 + d));
    const Group g = group(slot, d);
    return g.minimum + g.scale * static_cast<float>(g.code);
  }

  KvType type;
  std::uint32_t head_dim;
  Guarded memory;
};

class AttendTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

TEST_P(AttendTest, StoresHalfFloatsRoundedToEven) {
  std::vector<float> x = {0.0f,      -0.0f,          1.0f,           65504.0f,      65519.0f,       65520.0f, 1e30f,
                          -1e30f,    0x1p-24f,       0x1p-25f,       0x1.8p-25f,    -0x1p-26f,      0x1p-14f, 6.1e-5f,
                          kInfinity, 1.00048828125f, 1.00146484375f, std::nanf(""), -std::nanf(""), 1e-45f};
  Random random(3);
  while (x.size() < 4000) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next())));
  const Cache cache(KvType::f16, 1, static_cast<std::uint32_t>(x.size()));
  cache.store(kernels(), x, 0);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(cache.memory.as<f16>()[i], f32_to_f16(x[i])) << x[i];
}

TEST_P(AttendTest, StoresInt8UnderOneScale) {
  for (const std::uint32_t head_dim : {2u, 16u, 30u, 64u, 100u}) {
    const Cache cache(KvType::q8, 3, head_dim);
    const std::vector<float> x = unit_values(head_dim, head_dim);
    cache.store(kernels(), x, 2);
    float amax = 0.0f;
    for (const float v : x) amax = std::max(amax, std::fabs(v));
    EXPECT_EQ(read<float>(cache.position(2)), amax / 127.0f);
    for (std::uint32_t d = 0; d < head_dim; ++d) {
      EXPECT_EQ(read<std::int8_t>(cache.position(2) + 4 + d), std::nearbyint(x[d] * (127.0f / amax)));
    }
  }
}

TEST_P(AttendTest, StoresFloatsAsTheyAre) {
  const Cache cache(KvType::f32, 2, 30);
  const std::vector<float> x = unit_values(30, 1);
  cache.store(kernels(), x, 1);
  for (std::uint32_t d = 0; d < 30; ++d) EXPECT_EQ(cache.value(1, d), x[d]);
}

float below(float bf16_value) { return bf16_to_f32(static_cast<bf16>(f32_to_bf16(bf16_value) - 1)); }

// minimum: the largest bf16 at most the least value. scale: the smallest bf16 at least (most - minimum) / top. So
// every value lies between minimum and minimum + top * scale, within half a scale of its code's; besides, the
// subtraction and the quotient are rounded (2^-23 of at most 15 scales) and the value read is (2^-24 of itself).
TEST_P(AttendTest, StoresGroupsWithinHalfAScale) {
  for (const KvType type : {KvType::q4, KvType::q2}) {
    const float top = type == KvType::q4 ? 15.0f : 3.0f;
    for (const std::uint32_t head_dim : {2u, 16u, 30u, 32u, 64u, 80u, 100u, 128u}) {
      for (const auto& [size, offset] : {std::pair{1.0f, 0.0f},
                                         {1.0f, 1000.0f},
                                         {1e-3f, -7.0f},
                                         {1e30f, 0.0f},
                                         {1e-30f, 1e-32f},
                                         {0.0f, 3.14159f},
                                         {0.0f, 0.0f},
                                         {100.0f, 99.99f}}) {
        const Cache cache(type, 2, head_dim);
        std::vector<float> x = unit_values(head_dim, head_dim);
        for (float& v : x) v = v * size + offset;
        cache.store(kernels(), x, 1);
        for (std::uint32_t d = 0; d < head_dim; ++d) {
          const auto begin = x.begin() + d / 32 * 32, end = std::min(begin + 32, x.end());
          const auto [least, most] = std::minmax_element(begin, end);
          const auto [scale, minimum, code] = cache.group(1, d);
          ASSERT_LE(minimum, *least);
          ASSERT_GE(minimum, *least - 0x1p-7f * std::fabs(*least));
          const float wanted = (*most - minimum) / top;
          ASSERT_GE(scale, wanted);
          ASSERT_TRUE(scale == 0.0f || below(scale) < wanted) << scale << " for " << wanted;
          ASSERT_EQ(static_cast<float>(code), scale == 0.0f ? 0.0f : std::nearbyint((x[d] - minimum) / scale));
          const double error = std::fabs(double{cache.value(1, d)} - double{x[d]});
          ASSERT_LE(error, double{scale} * (0.5 + 15 * 0x1p-23) + 0x1p-24 * std::fabs(double{cache.value(1, d)}))
              << x[d] << " of " << head_dim;
        }
      }
    }
  }
}

TEST_P(AttendTest, WhatIsNotFiniteShows) {
  for (const KvType type : {KvType::q8, KvType::q4, KvType::q2}) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
      const Cache cache(type, 1, 64);
      std::vector<float> x = unit_values(64, 3);
      x[40] = bad;
      cache.store(kernels(), x, 0);
      for (std::uint32_t d = 0; d < 64; ++d) {
        EXPECT_EQ(std::isnan(cache.value(0, d)), type == KvType::q8 || d >= 32) << bad << " " << d;
      }
    }
    const Cache cache(type, 1, 64);
    std::vector<float> x(64, 0x1p-130f);
    cache.store(kernels(), x, 0);
    EXPECT_LE(std::fabs(cache.value(0, 0)), 0x1p-129f);
    if (type == KvType::q8) continue;
    x[0] = 3e38f;  // the range is no float
    x[1] = -3e38f;
    cache.store(kernels(), x, 0);
    EXPECT_TRUE(std::isnan(cache.value(0, 5)));
  }
}

/// Attention of one query by definition, in double: a score for every position of the cache's history, minus infinity
/// where the mask hides it. `bound`: of a float implementation's error.
///
/// Scores: a dot of head_dim products in 16 lanes and a scaling, ceil(head_dim / 16) + 6 roundings of e = 2^-24 on the
/// sum of magnitudes, an absolute error s of every score; so p is off by the factor e^(2s) and the softmax's own
/// roundings. The weighted sum then rounds count + 2 times on the sum of magnitudes. Weights below e^-64 of the largest
/// are 0: each term without them is off by what such a weight would at most have added. `weight_error`: what weights
/// are rounded by, of themselves, so that terms and the sum of weights are off by as much.
struct Exact {
  Exact(std::span<const float> q, const std::vector<std::vector<float>>& keys,
        const std::vector<std::vector<float>>& values, const std::vector<bool>& visible, double scale,
        double weight_error = 0)
      : out(q.size()), bound(q.size()) {
    const auto head_dim = static_cast<double>(q.size());
    std::vector<double> p(keys.size());
    double most = -HUGE_VAL, score_error = 0, farthest = 0, sum = 0, count = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      double magnitudes = 0, score = 0;
      for (std::size_t d = 0; d < q.size(); ++d) {
        const double product = double{q[d]} * double{keys[i][d]} * scale;
        score += product;
        magnitudes += std::fabs(product);
      }
      p[i] = visible[i] ? score : -HUGE_VAL;
      if (!visible[i]) continue;
      most = std::max(most, score);
      score_error = std::max(score_error, (std::ceil(head_dim / 16) + 6) * 0x1p-24 * magnitudes);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (visible[i]) farthest = std::max(farthest, most - p[i]);
      p[i] = std::exp(p[i] - most);
      sum += p[i];
      count += visible[i] ? 1 : 0;
    }
    const double softmax = 2 * (4 + farthest) + std::ceil(count / 16) + 7;
    for (std::size_t d = 0; d < q.size(); ++d) {
      double magnitudes = 0, left_out = 0;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        // The float implementation's score may be on the other side of the limit.
        if (p[i] < std::exp(-64 + 2 * score_error)) left_out += p[i] / sum * std::fabs(double{values[i][d]});
        const double term = p[i] / sum * double{values[i][d]};
        out[d] += term;
        magnitudes += std::fabs(term);
      }
      bound[d] =
          magnitudes * (1.01 * (2 * score_error + 2 * weight_error) + (softmax + count + 2) * 0x1p-24) + left_out;
    }
  }
  std::vector<double> out, bound;
};

/// The nearest of 13 significant bits, a tie to the even one.
float of_13_bits(float x) {
  int exponent = 0;
  const double mantissa = std::frexp(double{x}, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(mantissa * 0x1p13), exponent - 13));
}

/// What kernels.h has attention do with a query's head and a cache of this type.
std::vector<float> query_taken(KvType type, std::span<const float> q) {
  std::vector<float> taken(q.begin(), q.end());
  if (type == KvType::f16) std::ranges::transform(taken, taken.begin(), of_13_bits);
  return taken;
}

// Positions are fed some at a time into a ring no longer than they need; every query sees what the causal mask and the
// window leave it, and the first positions that are kept for all.
TEST_P(AttendTest, EqualsAMaskedReferenceInDouble) {
  constexpr std::uint32_t kPositions = 90;
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    const auto type = static_cast<KvType>(kv);
    for (const std::uint32_t head_dim : {2u, 10u, 16u, 48u, 64u, 72u, 128u, 1000u}) {
      for (const auto& [window, kept] : {std::pair{1u, 0u},
                                         {7u, 0u},
                                         {23u, 0u},
                                         {70u, 0u},
                                         {kPositions, 0u},
                                         {1u, 1u},
                                         {7u, 18u},
                                         {23u, 4u},
                                         {70u, 33u}}) {
        const std::uint32_t together = 1 + (head_dim + window) % 17, n = 1 + head_dim % 5;
        const std::uint32_t capacity = std::min(kept + window + together - 1, kPositions);
        const Cache k(type, capacity, head_dim), v(type, capacity, head_dim);
        std::vector<std::vector<float>> keys(kPositions), values(kPositions);
        for (auto* const all : {&keys, &values}) {
          for (auto& of_position : *all) of_position.assign(head_dim, 1e30f);  // the future
        }
        for (std::uint32_t first = 0; first < kPositions; first += together) {
          const std::uint32_t count = std::min(together, kPositions - first);
          for (std::uint32_t position = first; position < first + count; ++position) {
            const std::uint32_t slot = position < kept ? position : kept + (position - kept) % (capacity - kept);
            k.store(kernels(), unit_values(head_dim, position), slot);
            v.store(kernels(), unit_values(head_dim, position + 99), slot);
            for (std::uint32_t d = 0; d < head_dim; ++d) {
              keys[position][d] = k.value(slot, d);
              values[position][d] = v.value(slot, d);
            }
          }
          const std::uint32_t row = n * head_dim, stride = row + (count > 1 ? 3 : 0);
          const std::size_t floats = (count - 1) * stride + row;
          const Guarded q(floats * sizeof(float)), scores(count * n * capacity * sizeof(float)),
              out(floats * sizeof(float));
          q.fill(std::span<const float>(unit_values(floats, first)));
          out.fill(std::span<const float>(unit_values(floats, first + 1)));
          kernels().attend[kv]({.q = q.as<float>(),
                                .stride = stride,
                                .k = k.memory.data(),
                                .v = v.memory.data(),
                                .n_heads = n,
                                .head_dim = head_dim,
                                .capacity = capacity,
                                .position = first,
                                .n_positions = count,
                                .window = window,
                                .scale = 2.0f,
                                .scores = scores.as<float>(),
                                .out = out.as<float>(),
                                .first_kept = kept});
          for (std::uint32_t t = 0; t < count; ++t) {
            std::vector<bool> visible(kPositions);
            const std::uint32_t position = first + t;
            for (std::uint32_t i = 0; i < kPositions; ++i)
              visible[i] = i <= position && (position - i < window || i < kept);
            for (std::uint32_t j = 0; j < n; ++j) {
              const std::size_t at = t * stride + j * head_dim;
              const Exact exact(query_taken(type, {q.as<float>() + at, head_dim}), keys, values, visible, 2.0,
                                type == KvType::f16 ? 0x1p-13 + 0x1p-15 : 0.0);
              for (std::uint32_t d = 0; d < head_dim; ++d) {
                ASSERT_NEAR(out.as<float>()[at + d], exact.out[d], exact.bound[d])
                    << kKvNames[kv] << " " << head_dim << " window " << window << " kept " << kept << " at "
                    << position;
              }
            }
            // What lies between rows is not touched.
            for (std::size_t i = t * stride + row; t + 1 < count && i < (t + 1) * stride; ++i) {
              ASSERT_EQ(out.as<float>()[i], unit_values(floats, first + 1)[i]);
            }
          }
        }
      }
    }
  }
}

/// Attention of one query to the slots in this order, step by step as kernels.h has it, but for the weights, which are
/// given: within 2^-19 of what they should be, and where they have 13 bits within those, and 2^-15.
std::vector<float> in_order(std::span<const float> query, const Cache& k, const Cache& v,
                            std::span<const std::uint32_t> slots, float scale, std::span<const float> weights) {
  const bool is_short = k.type == KvType::f16;
  const double error = is_short ? 0x1p-13 + 0x1p-15 : 0x1p-19;
  const std::vector<float> q = query_taken(k.type, query);
  std::vector<float> scores;
  for (const std::uint32_t slot : slots) {
    std::array<float, 16> lanes{};
    for (std::uint32_t d = 0; d < k.head_dim; ++d) lanes[d % 16] += q[d] * k.value(slot, d);
    for (std::size_t apart = 8; apart > 0; apart /= 2) {
      for (std::size_t i = 0; i < apart; ++i) lanes[i] += lanes[i + apart];
    }
    scores.push_back(lanes[0] * scale);
  }
  const float most = *std::ranges::max_element(scores);
  const auto power = [&](float score) { return score - most < -64 ? 0 : std::exp(double{score - most}); };
  double sum = 0;
  for (const float score : scores) sum += power(score);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const double wanted = power(scores[i]) / sum;
    EXPECT_NEAR(weights[i], wanted, error * wanted) << scores[i] << " of " << most;
    EXPECT_TRUE(!is_short || weights[i] == of_13_bits(weights[i])) << weights[i];
  }
  std::vector<float> out(k.head_dim);
  for (std::uint32_t d = 0; d < k.head_dim; ++d) {
    for (std::size_t i = 0; i < slots.size(); ++i) out[d] += weights[i] * v.value(slots[i], d);
  }
  return out;
}

// Bit by bit, and, but for f16, those of attention over the floats that the cache stands for; nor does it matter how
// many heads share a call, or whether the answer takes the query's place.
TEST_P(AttendTest, AddsInTheOrderThatIsPromised) {
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    const auto type = static_cast<KvType>(kv);
    for (const std::uint32_t head_dim : {2u, 16u, 48u, 64u, 80u, 128u, 144u}) {
      const std::uint32_t capacity = 83, n = 9, position = 257, window = 82;
      const Cache k(type, capacity, head_dim), v(type, capacity, head_dim);
      const Cache wide_k(KvType::f32, capacity, head_dim), wide_v(KvType::f32, capacity, head_dim);
      for (std::uint32_t slot = 0; slot < capacity; ++slot) {
        k.store(kernels(), unit_values(head_dim, slot), slot);
        v.store(kernels(), unit_values(head_dim, slot + 99), slot);
        std::vector<float> key(head_dim), value(head_dim);
        for (std::uint32_t d = 0; d < head_dim; ++d) {
          key[d] = k.value(slot, d);
          value[d] = v.value(slot, d);
        }
        wide_k.store(kernels(), key, slot);
        wide_v.store(kernels(), value, slot);
      }
      std::vector<std::uint32_t> slots;
      for (std::uint32_t seen = position + 1 - window; seen <= position; ++seen) slots.push_back(seen % capacity);
      const std::vector<float> q = unit_values(n * head_dim, 1);
      std::vector<float> scores(n * capacity), out(n * head_dim), wanted;
      AttendArgs args{.q = q.data(),
                      .stride = n * head_dim,
                      .k = k.memory.data(),
                      .v = v.memory.data(),
                      .n_heads = n,
                      .head_dim = head_dim,
                      .capacity = capacity,
                      .position = position,
                      .n_positions = 1,
                      .window = window,
                      .scale = 7.0f,
                      .scores = scores.data(),
                      .out = out.data()};
      kernels().attend[kv](args);
      for (std::uint32_t j = 0; j < n; ++j) {
        const auto head = in_order(std::span(q).subspan(j * head_dim, head_dim), k, v, slots, args.scale,
                                   std::span(scores).subspan(j * args.most_seen(), slots.size()));
        wanted.insert(wanted.end(), head.begin(), head.end());
      }
      EXPECT_EQ(out, wanted) << kKvNames[kv] << " " << head_dim;
      std::vector<float> apart = q;
      for (std::uint32_t j = 0; j < n; ++j) {
        args.q = args.out = apart.data() + j * head_dim;
        args.n_heads = 1;
        kernels().attend[kv](args);
      }
      EXPECT_EQ(apart, wanted) << kKvNames[kv] << " " << head_dim;
      if (type == KvType::f16) continue;
      std::vector<float> wide(n * head_dim);
      args.q = q.data();
      args.out = wide.data();
      args.n_heads = n;
      args.k = wide_k.memory.data();
      args.v = wide_v.memory.data();
      kernels().attend[static_cast<std::size_t>(KvType::f32)](args);
      EXPECT_EQ(out, wide) << kKvNames[kv] << " " << head_dim;
    }
  }
}

// A query that is not finite shows, also where it is rounded.
TEST_P(AttendTest, AQueryThatIsNotFiniteShows) {
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    const auto type = static_cast<KvType>(kv);
    const Cache k(type, 1, 16), v(type, 1, 16);
    k.store(kernels(), unit_values(16, 1), 0);
    v.store(kernels(), unit_values(16, 2), 0);
    for (const float bad : {kInfinity, -kInfinity, std::nanf(""), std::bit_cast<float>(0x7fffffffu)}) {
      std::vector<float> q = unit_values(16, 3), scores(1), out(16);
      q[5] = bad;
      kernels().attend[kv]({.q = q.data(),
                            .stride = 16,
                            .k = k.memory.data(),
                            .v = v.memory.data(),
                            .n_heads = 1,
                            .head_dim = 16,
                            .capacity = 1,
                            .position = 0,
                            .n_positions = 1,
                            .window = 1,
                            .scale = 1.0f,
                            .scores = scores.data(),
                            .out = out.data()});
      for (const float y : out) EXPECT_TRUE(std::isnan(y)) << kKvNames[kv] << " " << bad;
    }
  }
}

// A sink is a term more in the sum that weights are divided by: sixteen lanes, one more addition and what the weights
// themselves are off by, as in Exact.
TEST_P(AttendTest, ASinkTakesItsShareOfTheSum) {
  constexpr std::uint32_t kHeadDim = 48, kHeads = 5, kPositions = 21;
  const Cache k(KvType::f32, kPositions, kHeadDim), v(KvType::f32, kPositions, kHeadDim);
  std::vector<std::vector<float>> keys, values;
  for (std::uint32_t p = 0; p < kPositions; ++p) {
    keys.push_back(unit_values(kHeadDim, p));
    values.push_back(unit_values(kHeadDim, p + 99));
    k.store(kernels(), keys[p], p);
    v.store(kernels(), values[p], p);
  }
  const std::vector<float> q = unit_values(kHeads * kHeadDim, 7);
  const float sinks[kHeads] = {-kInfinity, -30, 0.5f, 3, 60};
  std::vector<float> scores(kHeads * kPositions), out(q.size()), without(q.size());
  AttendArgs args{.q = q.data(),
                  .stride = q.size(),
                  .k = k.memory.data(),
                  .v = v.memory.data(),
                  .n_heads = kHeads,
                  .head_dim = kHeadDim,
                  .capacity = kPositions,
                  .position = kPositions - 1,
                  .n_positions = 1,
                  .window = kPositions,
                  .scale = 1.0f,
                  .sinks = sinks,
                  .scores = scores.data(),
                  .out = out.data()};
  kernels().attend[static_cast<std::size_t>(KvType::f32)](args);
  args.sinks = nullptr;
  args.out = without.data();
  kernels().attend[static_cast<std::size_t>(KvType::f32)](args);
  for (std::uint32_t j = 0; j < kHeads; ++j) {
    const std::span<const float> query(q.data() + j * kHeadDim, kHeadDim);
    const Exact exact(query, keys, values, std::vector<bool>(kPositions, true), 1.0);
    double sum = 0;
    for (const auto& key : keys) {
      double score = 0;
      for (std::uint32_t d = 0; d < kHeadDim; ++d) score += double{query[d]} * double{key[d]};
      sum += std::exp(score);
    }
    const double share = sum / (sum + std::exp(double{sinks[j]}));
    for (std::uint32_t d = 0; d < kHeadDim; ++d) {
      const std::size_t at = j * kHeadDim + d;
      EXPECT_TRUE(j != 0 || out[at] == without[at]);
      ASSERT_NEAR(out[at], exact.out[d] * share, 2 * exact.bound[d] * share) << "sink " << sinks[j];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttendTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
