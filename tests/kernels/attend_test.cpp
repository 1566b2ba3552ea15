// Attention over the cache, against double precision on what the cache holds, and at guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "kernels/kv_cache.h"

namespace qsf::test {
namespace {

class AttendTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

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

/// What kernels.h has attention do with a query's head and a cache of this form.
std::vector<float> query_taken(KvForm form, std::span<const float> q) {
  std::vector<float> taken(q.begin(), q.end());
  if (is_short(form)) std::ranges::transform(taken, taken.begin(), of_13_bits);
  return taken;
}

// Positions are fed some at a time into a ring no longer than they need; every query sees what the causal mask and the
// window leave it, and the first positions that are kept for all.
TEST_P(AttendTest, EqualsAMaskedReferenceInDouble) {
  constexpr std::uint32_t kPositions = 90;
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    const KvForms forms = forms_of(static_cast<KvType>(kv));
    for (const std::uint32_t head_dim : {2u, 10u, 16u, 48u, 64u, 72u, 128u, 1000u}) {
      if (forms.rotates() && head_dim != 10 && head_dim != 64) continue;
      for (const auto& [window, kept, aligned] : {std::tuple{1u, 0u, false},
                                                  {7u, 0u, false},
                                                  {23u, 0u, false},
                                                  {70u, 0u, false},
                                                  {kPositions, 0u, false},
                                                  {1u, 1u, false},
                                                  {7u, 18u, false},
                                                  {23u, 4u, false},
                                                  {70u, 33u, false},
                                                  {1u, 0u, true},
                                                  {23u, 0u, true}}) {
        if (head_dim == 1000 && window != 23) continue;  // it takes most of the time
        const std::uint32_t together = 1 + (head_dim + window) % 17, n = 1 + head_dim % 5;
        const std::uint32_t capacity = std::min(kept + window + together - 1, kPositions);
        const Cache k(forms.key, capacity, head_dim), v(forms.value, capacity, head_dim);
        // Some positions are read in f16.
        ExactPositions exactly;
        if (forms.rotates() && head_dim == 64) {
          exactly.window = std::min(window, 9u);
          exactly.first = window == kPositions ? 4 : std::min(kept, 4u);
          exactly.capacity = std::min(exactly.first + exactly.window + together - 1, kPositions);
        }
        const Cache exact_k(KvForm::f16, std::max(exactly.capacity, 1u), head_dim);
        const Cache exact_v(KvForm::f16, std::max(exactly.capacity, 1u), head_dim);
        exactly.k = exact_k.memory.data();
        exactly.v = exact_v.memory.data();
        using Positions = std::vector<std::vector<float>>;
        Positions keys(kPositions), values(kPositions), keys_f16, values_f16;
        for (auto* const all : {&keys, &values}) {
          for (auto& of_position : *all) of_position.assign(head_dim, 1e30f);  // the future
        }
        keys_f16 = values_f16 = keys;
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
            if (exactly.window == 0) continue;
            const std::uint32_t place =
                position < exactly.first
                    ? position
                    : exactly.first + (position - exactly.first) % (exactly.capacity - exactly.first);
            exact_k.store(kernels(), unit_values(head_dim, position), place);
            exact_v.store(kernels(), unit_values(head_dim, position + 99), place);
            for (std::uint32_t d = 0; d < head_dim; ++d) {
              keys_f16[position][d] = exact_k.value(place, d);
              values_f16[position][d] = exact_v.value(place, d);
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
                                .first_kept = kept,
                                .exact = exactly,
                                .aligned = aligned});
          for (std::uint32_t t = 0; t < count; ++t) {
            Positions seen_keys = keys, seen_values = values;
            for (std::uint32_t i = 0; i <= first + t; ++i) {
              if (i >= exactly.first && first + t - i >= exactly.window) continue;
              seen_keys[i] = keys_f16[i];
              seen_values[i] = values_f16[i];
            }
            std::vector<bool> visible(kPositions);
            const std::uint32_t position = first + t;
            for (std::uint32_t i = 0; i < kPositions; ++i) {
              const bool near = aligned ? i / window == position / window : position - i < window;
              visible[i] = i <= position && (near || i < kept);
            }
            for (std::uint32_t j = 0; j < n; ++j) {
              const std::size_t at = t * stride + j * head_dim;
              const Exact exact(query_taken(forms.key, {q.as<float>() + at, head_dim}), seen_keys, seen_values, visible,
                                2.0, is_short(forms.key) ? 0x1p-13 + 0x1p-15 : 0.0);
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
  const bool rounded = is_short(k.form);
  const double error = rounded ? 0x1p-13 + 0x1p-15 : 0x1p-19;
  const std::vector<float> q = query_taken(k.form, query);
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
    EXPECT_TRUE(!rounded || weights[i] == of_13_bits(weights[i])) << weights[i];
  }
  std::vector<float> out(k.head_dim);
  for (std::uint32_t d = 0; d < k.head_dim; ++d) {
    for (std::size_t i = 0; i < slots.size(); ++i) out[d] += weights[i] * v.value(slots[i], d);
  }
  return out;
}

// Bit by bit, and, unless values are short, those of attention over the floats that the cache stands for; nor does it
// matter how many heads share a call, or whether the answer takes the query's place.
TEST_P(AttendTest, AddsInTheOrderThatIsPromised) {
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    const KvForms forms = forms_of(static_cast<KvType>(kv));
    for (const std::uint32_t head_dim : {2u, 16u, 48u, 64u, 80u, 128u, 144u}) {
      const std::uint32_t capacity = 83, n = 9, position = 257, window = 82;
      const Cache k(forms.key, capacity, head_dim), v(forms.value, capacity, head_dim);
      const Cache wide_k(KvForm::f32, capacity, head_dim), wide_v(KvForm::f32, capacity, head_dim);
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
      if (is_short(forms.key)) continue;
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
    const KvForms forms = forms_of(static_cast<KvType>(kv));
    const Cache k(forms.key, 1, 16), v(forms.value, 1, 16);
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
  const Cache k(KvForm::f32, kPositions, kHeadDim), v(KvForm::f32, kPositions, kHeadDim);
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

// Earlier and later positions, some of them out of the reach of the buckets. A score with a bias is that of vectors
// with one more dimension, in which the query is 1 and the key the bias.
TEST_P(AttendTest, AddsTheBiasOfADistance) {
  constexpr std::uint32_t kHeadDim = 48, kHeads = 3, kPositions = 61, kFirst = 25, kQueries = 11, kReach = 19;
  constexpr std::uint32_t kBuckets = 8;
  std::array<std::uint8_t, 2 * kReach + 1> of_distance{};
  for (std::uint32_t i = 0; i < of_distance.size(); ++i) of_distance[i] = static_cast<std::uint8_t>(i * 5 % kBuckets);
  const std::vector<float> biases = unit_values(kHeads * kBuckets, 3);
  const Cache k(KvForm::f32, kPositions, kHeadDim), v(KvForm::f32, kPositions, kHeadDim);
  std::vector<std::vector<float>> keys, values;
  for (std::uint32_t p = 0; p < kPositions; ++p) {
    keys.push_back(unit_values(kHeadDim, p));
    values.push_back(unit_values(kHeadDim, p + 99));
    k.store(kernels(), keys[p], p);
    v.store(kernels(), values[p], p);
    keys[p].push_back(0);
    values[p].push_back(0);
  }
  for (const std::uint32_t window : {kPositions, 15u}) {
    const std::vector<float> q = unit_values(kQueries * kHeads * kHeadDim, 7);
    std::vector<float> scores(kQueries * kHeads * kPositions), out(q.size());
    kernels().attend[static_cast<std::size_t>(KvType::f32)](
        {.q = q.data(),
         .stride = kHeads * kHeadDim,
         .k = k.memory.data(),
         .v = v.memory.data(),
         .n_heads = kHeads,
         .head_dim = kHeadDim,
         .capacity = kPositions,
         .position = kFirst,
         .n_positions = kQueries,
         .window = window,
         .scale = 1.0f,
         .scores = scores.data(),
         .out = out.data(),
         .ahead = window - 1,
         .length = kPositions,
         .by_distance = {biases.data(), &of_distance[kReach], kBuckets, kReach}});
    for (std::uint32_t i = 0; i < kQueries * kHeads; ++i) {
      const std::uint32_t own = kFirst + i / kHeads, head = i % kHeads;
      std::vector<bool> visible(kPositions);
      for (std::uint32_t p = 0; p < kPositions; ++p) {
        const std::uint32_t far = p > own ? p - own : own - p, place = std::min(far, kReach);
        visible[p] = far < window;
        keys[p].back() = biases[head * kBuckets + of_distance[p > own ? kReach + place : kReach - place]];
      }
      std::vector<float> query(q.begin() + i * kHeadDim, q.begin() + (i + 1) * kHeadDim);
      query.push_back(1);
      const Exact exact(query, keys, values, visible, 1.0);
      for (std::uint32_t d = 0; d < kHeadDim; ++d) {
        ASSERT_NEAR(out[i * kHeadDim + d], exact.out[d], exact.bound[d]) << window << " " << own << " " << head;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttendTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
