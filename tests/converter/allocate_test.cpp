// The choice of types by size, and the measure that it goes by.
#include "converter/quantize/allocate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "converter/moments.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/types/written_type.h"
#include "formats/rows.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using convert::Moments;
using convert::RowCost;
using convert::TensorChoice;

std::vector<TensorChoice> some_tensors(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<TensorChoice> out(n);
  for (std::size_t t = 0; t < n; ++t) {
    const double loss = 1.5 + double{random.symmetric()};
    const std::uint64_t weights = 100 + 50 * (t % 3);
    for (const std::uint64_t bits : {2u, 3u, 4u, 8u}) {
      out[t].types.push_back({FormatId::f32, weights * bits, loss * std::exp2(-2.0 * static_cast<double>(bits))});
    }
  }
  return out;
}

struct Total {
  std::uint64_t bytes = 0;
  double loss = 0;
};
Total total(const std::vector<TensorChoice>& tensors) {
  Total out;
  for (const TensorChoice& tensor : tensors) {
    out.bytes += tensor.types[tensor.chosen].bytes;
    out.loss += tensor.types[tensor.chosen].loss;
  }
  return out;
}

double least_loss(std::vector<TensorChoice>& tensors, std::size_t from, std::uint64_t bytes) {
  if (from == tensors.size()) return total(tensors).bytes <= bytes ? total(tensors).loss : 1e9;
  double least = 1e9;
  for (std::size_t i = 0; i < tensors[from].types.size(); ++i) {
    tensors[from].chosen = i;
    least = std::min(least, least_loss(tensors, from + 1, bytes));
  }
  return least;
}

TEST(Allocate, FitsAndIsNearTheBestOfAllChoices) {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    std::vector<TensorChoice> tensors = some_tensors(6, seed);
    double last = 1e9;
    for (std::uint64_t bytes = 2000; bytes <= 7200; bytes += 400) {
      ASSERT_TRUE(convert::choose_types(tensors, bytes));
      const Total chosen = total(tensors);
      EXPECT_LE(chosen.bytes, bytes);
      EXPECT_LE(chosen.loss, last * 1.0001);
      last = chosen.loss;
      std::vector<TensorChoice> tried = tensors;
      // What a price of bytes cannot reach is less than the step of one tensor.
      double step = 0;
      for (const TensorChoice& tensor : tensors) step = std::max(step, tensor.types[tensor.chosen].loss);
      EXPECT_LE(chosen.loss, least_loss(tried, 0, bytes) + step);
    }
  }
}

TEST(Allocate, RefusesWhatIsTooSmall) {
  std::vector<TensorChoice> tensors = some_tensors(4, 1);
  const Status status = convert::choose_types(tensors, 10);
  ASSERT_FALSE(status);
  EXPECT_EQ(error_of(status).code, ErrorCode::bad_argument);
}

TEST(Allocate, LossesGoThroughWhatWasMeasured) {
  using Points = std::vector<convert::LossPoint>;
  const auto at = [](double error, const Points& points) { return convert::loss_at(error, points); };
  const Points two{{0.08, 0.5}, {0.005, 0.02}};
  EXPECT_NEAR(at(0.08, two), 0.5, 1e-12);
  EXPECT_NEAR(at(0.005, two), 0.02, 1e-12);
  EXPECT_NEAR(at(0.02, two), 0.1, 1e-12);  // half way in logarithms
  EXPECT_NEAR(at(0.001, two), 0.004, 1e-12);
  EXPECT_EQ(at(0, two), 0);
  EXPECT_NEAR(at(0.04, {{0.08, 0.5}, {0.005, 0}}), 0.25, 1e-12);
  const Points three{{0.16, 0.6}, {0.04, 0.15}, {0.01, 0.03}};
  for (const convert::LossPoint& point : three) EXPECT_NEAR(at(point.error, three), point.loss, 1e-12);
  EXPECT_NEAR(at(0.08, three), 0.3, 1e-12);
  EXPECT_NEAR(at(0.02, three), std::sqrt(0.15 * 0.03), 1e-12);
  EXPECT_NEAR(at(0.32, three), 0.6 * std::pow(2, std::log(20.0) / std::log(16.0)), 1e-12);
  // Where measures went astray, too, losses rise with errors.
  for (const Points& points :
       {two, three, Points{{0.08, 0.01}, {0.005, 0.02}}, Points{{0.16, 0.6}, {0.04, 0.02}, {0.01, 0.03}},
        Points{{0.16, 0.1}, {0.04, 0.9}, {0.01, 0.03}}, Points{{0.16, 0.6}, {0.005, 0.1}, {0.01, 0.03}}}) {
    double last = 0;
    for (double error = 1e-4; error < 1; error *= 1.1) {
      EXPECT_GT(at(error, points), last) << error;
      last = at(error, points);
    }
  }
}

// One matrix of the built-in model, all others have their types.
TEST(Allocate, GgufFilesMayHaveTypesThatAreNoFormats) {
  const Result<convert::LoadedModel> model = convert::open_model(kSource + "/models/stories");
  ASSERT_TRUE(model) << model.error().sentence;
  const std::pair<std::uint32_t, Role> open{1, Role::attn_k};
  for (const bool gguf : {true, false}) {
    convert::Options options;
    options.gguf = gguf;
    const Result<FileSpec> file = convert::plan_file(*model, options);
    ASSERT_TRUE(file) << file.error().sentence;
    for (const TensorSpec& tensor : file->tensors) {
      if (std::pair(tensor.stage, tensor.role) != open) options.types[{tensor.stage, tensor.role}] = ggml_type(8);
    }
    const auto measure = [](auto, FormatId type, auto, auto) -> Result<double> {
      return type == ggml_type(10) ? 0.3 : type == ggml_type(11) ? 0.1 : 0.03;
    };
    const auto choices = convert::type_choices(*model, options, {}, measure);
    ASSERT_TRUE(choices) << choices.error().sentence;
    ASSERT_EQ(choices->size(), 1u);
    const convert::TensorChoice& choice = choices->front();
    double last = 10;
    for (const char* const name : {"iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"}) {
      const FormatId id = *convert::written_id(name);
      const auto at = std::ranges::find(choice.types, id, &convert::TypeChoice::format);
      ASSERT_EQ(at != choice.types.end(), gguf) << name;
      if (!gguf) continue;
      EXPECT_EQ(at->bytes, choice.weights / 256 * row_bytes(convert::format_of(id), 256)) << name;
      EXPECT_LT(at->loss, last) << name;
      EXPECT_GT(at->loss, 0.03) << name;  // all are rougher than q4_k
      last = at->loss;
    }
  }
}

TEST(RowCost, IsTheMomentsOfTheErrors) {
  for (const std::uint32_t width : {96u, 256u}) {
    const std::uint32_t cols = width == 96 ? 96 : 600;
    const Moments moments = some_moments(cols, width, 100000 / cols);
    const RowCost cost = RowCost::of(moments);
    // Linear in the moments but for one factor, so two vectors' costs are in the moments' relation.
    const auto exact = [&](const std::vector<float>& e) {
      double mean = 0, sum = 0;
      for (std::uint32_t i = 0; i < cols; ++i) mean += moments.of(i, i) / cols;
      const double keep = moments.n / (moments.n + 0.1 * width);
      for (std::uint32_t i = 0; i < cols; ++i) {
        for (std::uint32_t j = 0; j < cols; ++j) {
          const double h = moments.of(i, j) / mean * (i == j ? 1 : keep) + (i == j ? 0.01 : 0);
          sum += double{e[i]} * h * double{e[j]};
        }
      }
      return sum;
    };
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      const std::vector<float> e = random_weights(cols, seed);
      EXPECT_NEAR(cost(e), exact(e), 1e-4 * exact(e)) << width;
    }
  }
}

TEST(RowCost, RowsCostNoMoreThanRounded) {
  for (const std::uint32_t cols : {96u, 600u}) {
    const Moments moments = some_moments(cols, cols == 96 ? 96 : 256, 500);
    const RowCost cost = RowCost::of(moments);
    for (const char* name : {"2bit", "q2_k", "q3_k", "iq4_nl", "q6_k", "ternary", "8bit"}) {
      const Format& f = format(name);
      double ratios = 0;
      for (const Spread spread : kSpreads) {
        const std::vector<float> weights = spread_weights(spread, cols);
        std::vector<std::byte> bytes(row_bytes(f, cols));
        const auto cost_of = [&] {
          std::vector<float> e = dequantized(f, bytes, cols);
          for (std::size_t i = 0; i < e.size(); ++i) e[i] = weights[i] - e[i];
          return cost(e);
        };
        quantize_row(f, weights, bytes);
        const double rounded = cost_of();
        cost.quantize(f, weights, bytes);
        EXPECT_LE(cost_of(), rounded) << name;
        ratios += cost_of() / rounded;
      }
      EXPECT_LT(ratios, static_cast<double>(kSpreads.size())) << name;
    }
  }
}

TEST(RowCost, RowsTogetherBecomeTheSame) {
  constexpr std::uint32_t kCols = 600, kRows = 6;
  const RowCost cost = RowCost::of(some_moments(kCols, 256, 500));
  for (const char* name : {"q2_k", "iq4_nl", "trellis2"}) {
    const Format& f = format(name);
    const std::size_t size = row_bytes(f, kCols);
    const std::vector<float> weights = random_weights(kCols * kRows, 3);
    std::vector<std::byte> together(kRows * size), alone(kRows * size);
    cost.quantize(f, weights, together);
    for (std::size_t r = 0; r < kRows; ++r) {
      cost.quantize(f, std::span(weights).subspan(r * kCols, kCols), std::span(alone).subspan(r * size, size));
    }
    EXPECT_EQ(together, alone) << name;
  }
}

}  // namespace
}  // namespace qsf::test
