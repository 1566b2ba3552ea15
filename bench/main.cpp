// qsf-bench: single kernels (with Google Benchmark's options), or a whole model with --model.
// docs/reference/benchmarks.md shows both.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string_view>

#include "bench/kernels.h"
#include "bench/model.h"

int main(int argc, char** argv) {
  const bool model = std::any_of(argv + 1, argv + argc, [](const char* argument) {
    const std::string_view text = argument;
    return text == "--model" || text.starts_with("--model=");
  });
  if (model) return qsf::bench::bench_model(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  qsf::bench::register_kernels();
  qsf::bench::register_hypotheses();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
