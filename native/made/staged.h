// Bytes of a model's files that were read ahead, for the readers of these files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>

#include "native/sources/source.h"

namespace qsf {

/// A run of a file's bytes in memory.
struct StagedRun {
  std::uint32_t input = 0;
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

/// All functions may be called by any thread.
class Staged {
 public:
  /// Offers the runs until remove() is called with the same `key`, which is below kSourceDepth. The runs must outlive
  /// that.
  void offer(std::size_t key, std::span<const StagedRun> runs);
  void remove(std::size_t key);
  /// Copies bytes of a file. Returns false unless one run has all of them.
  bool find(std::uint32_t input, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  mutable std::shared_mutex mutex_;
  std::array<std::span<const StagedRun>, kSourceDepth> all_;  // by key
};

}  // namespace qsf
