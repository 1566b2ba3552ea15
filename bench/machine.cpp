#include "bench/machine.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "native/host/host.h"
#include "native/sources/clock.h"

namespace qsf::bench {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

using Words [[gnu::vector_size(64)]] = std::uint64_t;
constexpr std::size_t kStreams = 4;  // read together, which keeps more of the memory's pages open than one stream

/// Returns all of the bytes, combined so that no load can be omitted. size must be a multiple of kStreams *
/// sizeof(Words).
#if defined(__x86_64__)
[[gnu::target_clones("default", "avx2", "avx512f")]]
#endif
std::uint64_t read_all(const std::byte* at, std::size_t size) {
  std::array<Words, kStreams> sums{};
  const std::size_t stride = size / kStreams;
  for (std::size_t i = 0; i < stride; i += sizeof(Words)) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      Words words;
      std::memcpy(&words, at + s * stride + i, sizeof words);
      sums[s] ^= words;
    }
  }
  const Words all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < sizeof(Words) / sizeof(std::uint64_t); ++i) out ^= all[i];
  return out;
}

}  // namespace

std::uint64_t cache_bytes(int level) {
  const std::array names{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return static_cast<std::uint64_t>(std::max(::sysconf(names.at(static_cast<std::size_t>(level) - 1)), 0L));
}

std::span<std::byte> large_memory() {
  static const Result<Pages> pages = [] {
    const auto physical =
        static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t wanted = std::max(4 * cache_bytes(3), 256 * kMiB);
    return Pages::take(std::min(wanted, physical / 2) / kMiB * kMiB);
  }();
  if (!pages) {
    std::fprintf(stderr, "qsf-bench: %s\n", pages.error().sentence);
    std::exit(1);
  }
  static const bool touched = [] {
    std::memset(pages->bytes().data(), 1, pages->bytes().size());
    return true;
  }();
  (void)touched;
  return pages->bytes();
}

ThreadPool& pool_of(std::uint32_t threads) {
  static std::map<std::uint32_t, ThreadPool> pools;
  return pools.try_emplace(threads, threads).first->second;
}

std::span<const std::uint32_t> thread_counts() {
  static const std::vector<std::uint32_t> counts =
      usable_cores() > 1 ? std::vector<std::uint32_t>{1, usable_cores()} : std::vector<std::uint32_t>{1};
  return counts;
}

double read_bandwidth(std::uint32_t threads) {
  const std::span<const std::byte> memory = large_memory();
  constexpr std::size_t kPiece = kMiB;
  static std::atomic<std::uint64_t> kept;
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const Clock::time_point begin = Clock::now();
    parallel_for(pool_of(threads).workers(), static_cast<std::uint32_t>(memory.size() / kPiece),
                 [&](std::uint32_t i) { kept ^= read_all(memory.data() + i * kPiece, kPiece); });
    best = std::max(best, static_cast<double>(memory.size()) / seconds_since(begin));
  }
  return best;
}

CacheMisses::CacheMisses() {
  perf_event_attr what{};
  what.type = PERF_TYPE_HW_CACHE;
  what.size = sizeof what;
  what.config = PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
  what.exclude_kernel = 1;
  what.exclude_hv = 1;
  file_ = static_cast<int>(::syscall(SYS_perf_event_open, &what, 0, -1, -1, 0));
  take();
}

CacheMisses::~CacheMisses() {
  if (counts()) ::close(file_);
}

std::uint64_t CacheMisses::take() {
  std::uint64_t now = seen_;
  if (counts() && ::read(file_, &now, sizeof now) != sizeof now) now = seen_;
  return now - std::exchange(seen_, now);
}

}  // namespace qsf::bench
