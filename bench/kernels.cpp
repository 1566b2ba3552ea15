#include "bench/kernels.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "bench/machine.h"
#include "bench/weights.h"

namespace qsf::bench {
namespace {

using benchmark::Counter;

enum class Place : std::uint8_t { memory, l2 };

struct Product {
  const Kernels* kernels;
  std::size_t format;
  std::uint32_t rows, cols;
  Place place;
  std::uint32_t columns, threads;

  std::string name() const {
    return "matmul/" + std::string(kFormats[format].name) + "/" + std::string(kernels->isa) + "/" +
           std::to_string(rows) + "x" + std::to_string(cols) + (place == Place::memory ? "/memory" : "/l2") +
           "/columns:" + std::to_string(columns) + "/threads:" + std::to_string(threads);
  }
};

Counter per_iteration(double amount) { return {amount, Counter::kIsIterationInvariantRate}; }

/// Fills large_memory() with matrices. They are kept for later calls, because filling takes longer than most
/// measurements.
void fill_memory(const Format& f, std::uint32_t cols) {
  static const Format* filled = nullptr;
  static std::uint32_t filled_cols = 0;
  if (filled == &f && filled_cols == cols) return;
  fill_with(random_strip(f, cols, 1), large_memory());
  filled = &f;
  filled_cols = cols;
}

/// Runs one product per iteration. Products from memory use the next of many equal matrices each time.
void run_product(benchmark::State& state, const Product& p) {
  const Format& f = kFormats[p.format];
  const std::uint64_t bytes = tensor_bytes(f, layout_of(f), p.rows, p.cols);
  const std::uint64_t strip = bytes / ((p.rows + kTileRows - 1) / kTileRows);
  std::vector<std::byte> own;
  std::span<const std::byte> weights;
  double bandwidth = 0;
  if (p.place == Place::memory) {
    bandwidth = read_bandwidth(p.threads);
    fill_memory(f, p.cols);
    weights = large_memory();
  } else {
    own.resize(bytes);
    fill_with(random_strip(f, p.cols, 1), own);
    weights = own;
  }
  Activations activations(*p.kernels, p.cols, p.columns);
  std::vector<float> y(std::size_t{p.rows} * p.columns);
  const Workers workers = pool_of(p.threads).workers();
  const std::uint32_t strips = p.rows / kTileRows, tasks = std::min(strips, p.threads == 1 ? 1 : p.threads * 4);
  std::uint64_t at = 0;
  for (auto _ : state) {
    parallel_for(workers, tasks, [&](std::uint32_t task) {
      const std::uint32_t first = strips * task / tasks, end = strips * (task + 1) / tasks;
      MatmulArgs args{};
      activations.into(args);
      args.weights = weights.data() + at + first * strip;
      args.rows = (end - first) * kTileRows;
      args.y = y.data() + std::size_t{first} * kTileRows;
      args.y_stride = p.rows;
      p.kernels->matmul[p.format](args);
    });
    benchmark::ClobberMemory();
    at += bytes;
    if (at + bytes > weights.size()) at = 0;
  }
  state.counters["GB/s"] = per_iteration(static_cast<double>(bytes) * 1e-9);
  state.counters["GMAC/s"] = per_iteration(1e-9 * p.rows * p.cols * p.columns);
  if (bandwidth > 0) state.counters["share"] = per_iteration(static_cast<double>(bytes) / bandwidth);
}

void run_quantize(benchmark::State& state, const Kernels& kernels, std::uint32_t cols) {
  Activations activations(kernels, cols, 1);
  MatmulArgs args{};
  activations.into(args);
  for (auto _ : state) {
    kernels.quantize_columns(activations.x.data(), cols, cols, 1, ScaleOf::group, args.xq);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = per_iteration(1e-9 * cols * sizeof(float));
}

void run_attend(benchmark::State& state, const Kernels& kernels, std::size_t type, std::uint32_t head_dim,
                std::uint32_t positions) {
  const std::vector<float> values = normal(std::size_t{head_dim} * positions, 3);
  const KvForms forms = forms_of(static_cast<KvType>(type));
  const std::size_t key_bytes = kv_bytes(forms.key, head_dim), value_bytes = kv_bytes(forms.value, head_dim);
  std::vector<std::byte> keys(key_bytes * positions), cached(value_bytes * positions);
  std::vector<float> scores(positions), out(head_dim);
  AttendArgs args{};
  args.q = values.data();
  args.k = keys.data();
  args.v = cached.data();
  args.stride = head_dim;
  args.n_heads = args.n_positions = 1;
  args.head_dim = head_dim;
  args.capacity = args.window = positions;
  args.position = positions - 1;
  args.scale = 0.125f;
  args.scores = scores.data();
  args.out = out.data();
  for (std::uint32_t i = 0; i < positions; ++i) {
    const auto store = [&](KvForm form, std::size_t at, std::byte* to) {
      kernels.kv_store[static_cast<std::size_t>(form)](&values[at * head_dim], head_dim, to);
    };
    store(forms.key, i, &keys[i * key_bytes]);
    store(forms.value, positions - 1 - i, &cached[i * value_bytes]);
  }
  for (auto _ : state) {
    kernels.attend[type](args);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = per_iteration(1e-9 * static_cast<double>(keys.size() + cached.size()));
  state.counters["GMAC/s"] = per_iteration(2e-9 * head_dim * positions);
}

template <class Body>
void add(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime();
}

void add_product(const Product& p) {
  add(p.name(), [p](benchmark::State& state) { run_product(state, p); });
}

void register_products(std::size_t format, const Kernels* kernels) {
  struct Shape {
    std::uint32_t rows, cols;
  };
  for (const std::uint32_t threads : thread_counts()) {
    for (const std::uint32_t columns : {1, 4, 8, 32, 128}) {
      add_product({kernels, format, 4096, 4096, Place::memory, columns, threads});
    }
    for (const Shape& s : {Shape{1536, 576}, Shape{5632, 2048}, Shape{2048, 5632}}) {
      add_product({kernels, format, s.rows, s.cols, Place::memory, 1, threads});
    }
  }
  // Half of the second cache level, so that activations and results also fit.
  constexpr std::uint32_t kCols = 1024;
  const std::uint64_t room = std::max<std::uint64_t>(cache_bytes(2), 512 << 10) / 2;
  const std::uint64_t rows = room / row_bytes(kFormats[format], kCols) / kTileRows * kTileRows;
  for (const std::uint32_t columns : {1, 4, 8}) {
    add_product({kernels, format, static_cast<std::uint32_t>(rows), kCols, Place::l2, columns, 1});
  }
}

}  // namespace

void register_kernels() {
  for (const std::uint32_t threads : thread_counts()) {
    add("read/memory/threads:" + std::to_string(threads), [threads](benchmark::State& state) {
      double bandwidth = 0;
      for (auto _ : state) bandwidth = std::max(bandwidth, read_bandwidth(threads));
      state.counters["GB/s"] = bandwidth * 1e-9;
    });
  }
  for (std::size_t format = 0; format < kFormats.size(); ++format) {
    for (const Kernels* kernels : available_kernels()) register_products(format, kernels);
  }
  for (const Kernels* kernels : available_kernels()) {
    const std::string isa(kernels->isa);
    for (const std::uint32_t cols : {576, 2048, 5632}) {
      add("quantize_columns/" + isa + "/" + std::to_string(cols),
          [kernels, cols](benchmark::State& state) { run_quantize(state, *kernels, cols); });
    }
    for (std::size_t type = 0; type < kKvNames.size(); ++type) {
      for (const std::uint32_t head_dim : {64, 128}) {
        for (const std::uint32_t positions : {128, 1024, 4096}) {
          add("attend/" + std::string(kKvNames[type]) + "/" + isa + "/head_dim:" + std::to_string(head_dim) +
                  "/positions:" + std::to_string(positions),
              [=](benchmark::State& state) { run_attend(state, *kernels, type, head_dim, positions); });
        }
      }
    }
  }
}

}  // namespace qsf::bench
