// The machine that a benchmark runs on: its caches, its memory, and the speed of reading memory.
#pragma once

#include <cstdint>
#include <span>

#include "threads/thread_pool.h"

namespace qsf::bench {

/// Returns the bytes of the largest cache of a level, 0 if the system does not report it.
std::uint64_t cache_bytes(int level);

/// Returns memory that no cache holds, the same pages at every call: four times the last level and at least 256 MiB,
/// but at most half of the machine's memory.
std::span<std::byte> large_memory();

/// Returns a pool that exists as long as the program.
ThreadPool& pool_of(std::uint32_t threads);
/// Returns the thread counts to measure: one, and one per usable core.
std::span<const std::uint32_t> thread_counts();

/// Measures the bytes per second at which `threads` threads read large_memory(): the best of three passes.
double read_bandwidth(std::uint32_t threads);

/// The loads of the constructing thread that missed the last level of cache, counted by the processor.
class CacheMisses {
 public:
  CacheMisses();
  ~CacheMisses();
  CacheMisses(const CacheMisses&) = delete;
  CacheMisses& operator=(const CacheMisses&) = delete;
  /// Whether this system allows counting them.
  bool counts() const { return file_ >= 0; }
  /// Returns the misses since the last call.
  std::uint64_t take();

 private:
  int file_ = -1;
  std::uint64_t seen_ = 0;
};

}  // namespace qsf::bench
