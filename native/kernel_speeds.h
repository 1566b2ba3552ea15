// How fast the kernels of this machine's instruction sets go through weights in memory. All of them give the same bits,
// so the fastest serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/formats/format.h"
#include "qsf/model/work.h"
#include "threads/thread_pool.h"

namespace qsf {

/// The instruction sets that are here, slowest first.
std::vector<std::string_view> instruction_sets();

/// Bytes of weights a second in products of a batch, by going through `weights` once: of one column from memory,
/// whatever caches hold.
Result<double> product_rate(std::span<std::byte> weights, FormatId format, Batch batch, std::string_view isa,
                            ThreadPool& pool);

/// Bytes of weights a second in products of a batch, the most that was seen. `isa` is one of instruction_set()'s.
struct KernelSpeed {
  FormatId format;
  Batch batch;
  std::uint32_t threads;
  std::string_view isa;
  double rate = 0;
  bool settled = false;  // seen twice: what is seen once may be less than the machine can, while others use it

  void saw(double seen);
};

class KernelSpeeds {
 public:
  /// Bytes that take longer than starting to read them. What is measured holds for models that are at least as large.
  static constexpr std::size_t kWeights = 64u << 20;
  /// Bytes that many columns are multiplied with, for each thread: computing takes so long that it matters little where
  /// they lie.
  static constexpr std::size_t kPromptWeights = 4u << 20;

  /// What was measured earlier.
  void add(const KernelSpeed& speed) { all_.push_back(speed); }
  std::span<const KernelSpeed> all() const { return all_; }
  /// Measures every instruction set that may serve, until all of the format and batch with so many threads are settled.
  /// `memory` is overwritten; with fewer than kWeights bytes nothing is measured. Takes a third of a second at most.
  /// Whether anything was measured.
  Result<bool> measure(FormatId format, Batch batch, std::span<std::byte> memory, ThreadPool& pool);
  /// The last instruction set, unless another is faster by more than noise. Null where nothing is known or some is not
  /// settled.
  const KernelSpeed* best(FormatId format, Batch batch, std::uint32_t threads) const;

 private:
  KernelSpeed& of(FormatId format, Batch batch, std::uint32_t threads, std::string_view isa);

  std::vector<KernelSpeed> all_;
};

}  // namespace qsf
