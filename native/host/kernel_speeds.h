// Speeds of this machine's kernels on weights in memory. All instruction sets give the same bits, so the fastest is
// used.
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

/// Returns the available instruction sets, slowest first.
std::vector<std::string_view> instruction_sets();

/// Returns the bytes of weights per second in products of a batch, in one pass over `weights`. Products of one column
/// read from memory, whatever the caches hold.
Result<double> product_rate(std::span<std::byte> weights, FormatId format, Batch batch, std::string_view isa,
                            ThreadPool& pool);

/// The most bytes of weights per second that products of a batch have reached. `isa` is a name of instruction_set().
struct KernelSpeed {
  FormatId format;
  Batch batch;
  std::uint32_t threads;
  std::string_view isa;
  double rate = 0;
  bool settled = false;  // reached twice; a single measurement may be too low if other programs use the machine

  void saw(double seen);
};

class KernelSpeeds {
 public:
  /// Bytes of weights to measure with; they take longer than starting to read them. Measurements hold for models that
  /// are at least as large.
  static constexpr std::size_t kWeights = 64u << 20;
  /// Bytes of weights to measure many columns with, for each thread. Computing takes so long that it matters little
  /// whether caches hold them.
  static constexpr std::size_t kPromptWeights = 4u << 20;

  /// Adds an earlier measurement.
  void add(const KernelSpeed& speed) { all_.push_back(speed); }
  std::span<const KernelSpeed> all() const { return all_; }
  /// Measures every instruction set that may be the fastest, until all are settled for the format, the batch and the
  /// number of threads. Overwrites `memory`; measures nothing if it has fewer than kWeights bytes. Takes about a third
  /// of a second at most. Returns whether anything was measured.
  Result<bool> measure(FormatId format, Batch batch, std::span<std::byte> memory, ThreadPool& pool);
  /// Returns the speed of the last instruction set, or of another that is faster by more than noise. Null if nothing is
  /// known or one is not settled.
  const KernelSpeed* best(FormatId format, Batch batch, std::uint32_t threads) const;

 private:
  KernelSpeed& of(FormatId format, Batch batch, std::uint32_t threads, std::string_view isa);

  std::vector<KernelSpeed> all_;
};

}  // namespace qsf
