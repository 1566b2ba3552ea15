// Blocks whose numbers are changed one by one under moments of their columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/numbers.h"
#include "formats/rows.h"
#include "qsf/formats/search.h"

namespace qsf::test {
namespace {

/// Moments of kMaxBlock columns that have something in common.
std::vector<float> some_moments() {
  constexpr std::size_t kPositions = 400;
  Random random(9);
  std::vector<float> x(kMaxBlock);
  std::vector<double> sums(kMaxBlock * kMaxBlock);
  for (std::size_t t = 0; t < kPositions; ++t) {
    const float common = random.symmetric();
    for (std::size_t i = 0; i < kMaxBlock; ++i) x[i] = (common + random.symmetric()) * (i % 31 == 0 ? 5.0f : 1.0f);
    for (std::size_t i = 0; i < kMaxBlock; ++i) {
      for (std::size_t j = 0; j < kMaxBlock; ++j) sums[i * kMaxBlock + j] += double{x[i]} * double{x[j]} / kPositions;
    }
  }
  return {sums.begin(), sums.end()};
}

struct Errors {
  const Format& f;
  const std::vector<float>& h;
  std::span<const float> weights;

  std::vector<double> of(std::span<const float> values) const {
    std::vector<double> out(f.block);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = double{weights[i]} - double{values[i]};
    return out;
  }
  std::vector<double> pull(std::span<const float> values) const {
    const std::vector<double> e = of(values);
    std::vector<double> out(f.block);
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t j = 0; j < out.size(); ++j) out[i] += double{h[i * kMaxBlock + j]} * e[j];
    }
    return out;
  }
  double cost(std::span<const float> values) const {
    const std::vector<double> e = of(values), he = pull(values);
    double sum = 0;
    for (std::size_t i = 0; i < e.size(); ++i) sum += e[i] * he[i];
    return sum;
  }
};

bool improve(const Errors& errors, std::vector<std::byte>& bytes, std::vector<float>& moved) {
  const std::vector<double> pull = errors.pull(dequantized(errors.f, bytes, errors.f.block));
  std::vector<float> given(pull.begin(), pull.end());
  moved.assign(errors.f.block, 1.0f);
  ImprovedBlock one{given, bytes.data(), moved};
  improve_blocks(errors.f, {errors.h.data(), kMaxBlock}, {&one, 1});
  const std::vector<double> after = errors.pull(dequantized(errors.f, bytes, errors.f.block));
  double most = 0;
  for (const double x : pull) most = std::max(most, std::fabs(x));
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(double{given[i]}, after[i], 1e-4 * most) << errors.f.name;
  return one.changed;
}

TEST(Improve, BlocksCostLessEachTime) {
  const std::vector<float> h = some_moments();
  for (const Format& f : kFormats) {
    if (!f.quantized() || !rounds(f)) continue;
    for (const Spread spread : kSpreads) {
      const std::vector<float> all = spread_weights(spread, f.block * 4u);
      double first = 0, last = 0;
      for (std::size_t at = 0; at < all.size(); at += f.block) {
        const Errors errors{f, h, std::span(all).subspan(at, f.block)};
        std::vector<std::byte> bytes = quantized(f, errors.weights);
        std::vector<float> before = dequantized(f, bytes, f.block), moved;
        double cost = errors.cost(before);
        first += cost;
        for (int descent = 0; descent < 3; ++descent) {
          const std::vector<std::byte> were = bytes;
          const bool changed = improve(errors, bytes, moved);
          EXPECT_EQ(bytes != were, changed) << f.name;
          const std::vector<float> after = dequantized(f, bytes, f.block);
          const float most = std::fabs(*std::ranges::max_element(after, {}, [](float x) { return std::fabs(x); }));
          for (std::size_t i = 0; i < f.block; ++i) ASSERT_NEAR(after[i] - before[i], moved[i], 1e-5f * most) << f.name;
          ASSERT_LE(errors.cost(after), cost * (1 + 1e-5)) << f.name << " " << static_cast<int>(spread);
          cost = errors.cost(after);
          before = after;
        }
        last += cost;
      }
      if (f.scale.type != Scale::none && f.code_bits <= 4 && f.packing != Packing::trellis) {  // whose codes stay
        EXPECT_LT(last, 0.95 * first) << f.name << " " << static_cast<int>(spread);
      }
    }
  }
}

TEST(Improve, EndsWhereNoCodeAloneCostsLess) {
  const std::vector<float> h = some_moments();
  for (const char* name : {"2bit", "ternary", "q2_k", "iq4_nl", "q4_k", "qk256"}) {
    const Format& f = format(name);
    const std::vector<float> weights = spread_weights(Spread::normal, f.block);
    const Errors own{f, h, weights};
    std::vector<std::byte> bytes = quantized(f, weights);
    std::vector<float> moved;
    int descents = 0;
    while (improve(own, bytes, moved) && descents < 200) ++descents;
    ASSERT_LT(descents, 200) << name;
    const std::vector<float> values = dequantized(f, bytes, f.block);
    const double least = own.cost(values);
    const Numbers numbers = read_numbers(f, bytes.data());
    for (std::uint32_t i = 0; i < f.block; ++i) {
      const Line line = numbers.line(f, i / sub_block(f));
      for (unsigned code = 0; code < 1u << f.code_bits; ++code) {
        if (std::string_view(name) == "ternary" && code == 3) continue;  // no code
        std::vector<float> other = values;
        other[i] = line.scale * static_cast<float>(level(f, static_cast<std::uint8_t>(code)) - f.offset) + line.minimum;
        ASSERT_GE(own.cost(other), least * (1 - 1e-5)) << name << " " << i << " " << code;
      }
    }
  }
}

TEST(Improve, NumbersComeBack) {
  for (const Format& f : kFormats) {
    if (!f.quantized() || !rounds(f)) continue;
    for (const Spread spread : kSpreads) {
      const std::vector<std::byte> bytes = quantized(f, spread_weights(spread, f.block));
      std::vector<std::byte> back(f.block_bytes);
      write_numbers(f, read_numbers(f, bytes.data()), back.data());
      EXPECT_EQ(dequantized(f, back, f.block), dequantized(f, bytes, f.block)) << f.name;
    }
  }
}

}  // namespace
}  // namespace qsf::test
