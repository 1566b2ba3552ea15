// Claims about fused products of Q4_K weights, each measured against an alternative: weights become floats first, block
// by block or as a whole matrix, and are then multiplied as floats.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "bench/kernels.h"
#include "bench/machine.h"
#include "bench/separate.h"
#include "bench/weights.h"

namespace qsf::bench {
namespace {

using benchmark::Counter;

enum class Way : std::uint8_t { fused, separate, separate_matrix };
constexpr const char* kWays[] = {"fused", "separate", "separate-matrix"};

struct Claim {
  Way way;
  bool memory;
  std::uint32_t rows, cols;
};

/// Returns the first row's product in doubles, and the product of the norms.
std::pair<double, double> expected(const Format& f, std::uint32_t cols, const std::vector<float>& x) {
  const std::vector<std::byte> rows = random_rows(f, cols, 1);
  std::vector<float> row(cols);
  dequantize_row(f, std::span(rows).first(row_bytes(f, cols)), row);
  double sum = 0, w_norm = 0, x_norm = 0;
  for (std::uint32_t k = 0; k < cols; ++k) {
    sum += static_cast<double>(row[k]) * x[k];
    w_norm += static_cast<double>(row[k]) * row[k];
    x_norm += static_cast<double>(x[k]) * x[k];
  }
  return {sum, std::sqrt(w_norm * x_norm)};
}

void run_claim(benchmark::State& state, const Kernels& kernels, const Claim& c) {
  const Format& f = *find_format("q4_k");
  const auto format = static_cast<std::size_t>(format_index(f.id));
  const std::size_t bytes = std::size_t{c.rows} * c.cols / kSeparateBlock * kSeparateBlockBytes;
  std::vector<std::byte> own(c.memory ? 0 : bytes);
  const std::span<std::byte> weights = c.memory ? large_memory() : std::span(own);
  fill_with(c.way == Way::fused ? random_strip(f, c.cols, 1) : random_rows(f, c.cols, 1), weights);
  Activations activations(kernels, c.cols, 1);
  std::vector<float> y(c.rows), widened(c.way == Way::separate_matrix ? std::size_t{c.rows} * c.cols : 0);
  MatmulArgs args{};
  activations.into(args);
  args.rows = c.rows;
  args.y = y.data();
  args.y_stride = c.rows;
  CacheMisses misses;
  std::size_t at = 0;
  misses.take();
  for (auto _ : state) {
    const std::byte* w = weights.data() + at;
    if (c.way == Way::fused) {
      kernels.quantize_columns(activations.x.data(), c.cols, c.cols, 1, ScaleOf::group, args.xq);
      args.weights = w;
      kernels.matmul[format](args);
    } else if (c.way == Way::separate) {
      separate_product(w, c.rows, c.cols, activations.x.data(), y.data());
    } else {
      widen_matrix(w, bytes / kSeparateBlockBytes, widened.data());
      args.weights = reinterpret_cast<const std::byte*>(widened.data());
      kernels.matmul[static_cast<std::size_t>(format_index(FormatId::f32))](args);
    }
    benchmark::ClobberMemory();
    at += bytes;
    if (at + bytes > weights.size()) at = 0;
  }
  // Activations are rounded to 127 steps of the largest in their group, an error of far less than a hundredth of the
  // norms.
  const auto [sum, norms] = expected(f, c.cols, activations.x);
  if (std::abs(y[0] - sum) > 0.01 * norms) state.SkipWithError("the product is wrong");
  const double dots = static_cast<double>(c.rows) * c.cols / kSeparateBlock;
  const double floats = c.way == Way::separate_matrix ? 2.0 * c.rows * c.cols * sizeof(float) : 0;  // written and read
  const double x = c.way == Way::fused ? c.cols * (1 + 8.0 / kGroup) : c.cols * sizeof(float);
  state.counters["dots/s"] = {dots, Counter::kIsIterationInvariantRate};
  state.counters["touched"] = static_cast<double>(bytes) + floats + x + c.rows * sizeof(float);
  if (misses.counts()) {
    state.counters["missed"] = {64.0 * static_cast<double>(misses.take()), Counter::kAvgIterations};
  }
}

/// Computes 1000 products of random rows and activations and reports the error of the fused product against doubles.
void run_errors(benchmark::State& state, const Kernels& kernels) {
  constexpr std::uint32_t kCols = 4096, kDots = 1000;
  const Format& f = *find_format("q4_k");
  const auto format = static_cast<std::size_t>(format_index(f.id));
  std::vector<double> relative, to_norms, rounded;
  for (auto _ : state) {
    for (std::uint32_t seed = 0; relative.size() < kDots; ++seed) {
      const std::vector<std::byte> strip = random_strip(f, kCols, 100 + seed);
      Activations activations(kernels, kCols, 1, 10000 + seed);
      std::array<float, kTileRows> y{};
      MatmulArgs args{};
      activations.into(args);
      args.weights = strip.data();
      args.rows = kTileRows;
      args.y = y.data();
      args.y_stride = kTileRows;
      kernels.matmul[format](args);
      std::vector<float> row(kCols);
      for (std::uint32_t r = 0; r < kTileRows && relative.size() < kDots; ++r) {
        dequantize_tile_row(f, strip, r, row);
        double exact = 0, exact_rounded = 0, w_norm = 0, x_norm = 0;
        for (std::uint32_t k = 0; k < kCols; ++k) {
          const double w = row[k], x = activations.x[k];
          exact += w * x;
          exact_rounded += w * (static_cast<double>(args.xq.d[k / kGroup]) * args.xq.codes[k]);
          w_norm += w * w;
          x_norm += x * x;
        }
        const double error = std::abs(y[r] - exact);
        relative.push_back(error / std::abs(exact));
        to_norms.push_back(error / std::sqrt(w_norm * x_norm));
        rounded.push_back(std::abs(y[r] - exact_rounded) / std::sqrt(w_norm * x_norm));
      }
    }
  }
  for (std::vector<double>* errors : {&relative, &to_norms, &rounded}) std::sort(errors->begin(), errors->end());
  state.counters["relative_max"] = relative.back();
  state.counters["relative_median"] = relative[kDots / 2];
  state.counters["within_1e-3"] =
      static_cast<double>(std::upper_bound(relative.begin(), relative.end(), 1e-3) - relative.begin()) / kDots;
  state.counters["to_norms_max"] = to_norms.back();
  state.counters["rounded_activations_max"] = rounded.back();
}

}  // namespace

void register_hypotheses() {
  if (find_format("q4_k") == nullptr) return;
  if (const Kernels* kernels = find_kernels(kSeparateIsa); kernels != nullptr) {
    for (const Claim& c : {Claim{Way::fused, false, 1024, 1024}, Claim{Way::separate, false, 1024, 1024},
                           Claim{Way::fused, true, 4096, 4096}, Claim{Way::separate, true, 4096, 4096},
                           Claim{Way::separate_matrix, true, 4096, 4096}}) {
      const std::string name = std::string("h1-h2/") + kWays[static_cast<std::size_t>(c.way)] + "/" + kSeparateIsa +
                               (c.memory ? "/memory" : "/l2");
      benchmark::RegisterBenchmark(name.c_str(), [c, kernels](benchmark::State& state) {
        run_claim(state, *kernels, c);
      })->UseRealTime();
    }
  }
  for (const Kernels* kernels : available_kernels()) {
    benchmark::RegisterBenchmark(("h4/" + std::string(kernels->isa)).c_str(), [kernels](benchmark::State& state) {
      run_errors(state, *kernels);
    })->Iterations(1);
  }
}

}  // namespace qsf::bench
