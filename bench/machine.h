// The machine under a benchmark: its caches, its memory, and how fast that can be read.
#pragma once

#include <cstdint>
#include <span>

#include "threads/thread_pool.h"

namespace qsf::bench {

/// Bytes of the largest cache of a level, 0 where the system does not tell.
std::uint64_t cache_bytes(int level);

/// Memory that no cache holds: four times the last level, the same pages at every call.
std::span<std::byte> large_memory();

/// A pool that lives as long as the program.
ThreadPool& pool_of(std::uint32_t threads);
/// Thread counts worth measuring: one, and one per usable core.
std::span<const std::uint32_t> thread_counts();

/// Bytes per second at which that many threads read large_memory(), now: the best of three passes.
double read_bandwidth(std::uint32_t threads);

/// Loads that missed the last level of cache in this process, counted by the processor.
class CacheMisses {
 public:
  CacheMisses();
  ~CacheMisses();
  CacheMisses(const CacheMisses&) = delete;
  CacheMisses& operator=(const CacheMisses&) = delete;
  /// Whether this system lets them be counted.
  bool counts() const { return file_ >= 0; }
  /// Since the last call.
  std::uint64_t take();

 private:
  int file_ = -1;
  std::uint64_t seen_ = 0;
};

}  // namespace qsf::bench
