#include "system/caches.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace qsf {
namespace {

constexpr std::size_t kLine = 64;  // no known cache has shorter lines

#if defined(__x86_64__)
void drop_line(const std::byte* line) { _mm_clflush(line); }
void finish() { _mm_mfence(); }
#elif defined(__aarch64__) && defined(__linux__)
void drop_line(const std::byte* line) { asm volatile("dc civac, %0" : : "r"(line) : "memory"); }
void finish() { asm volatile("dsb ish" : : : "memory"); }
#else
void drop_line(const std::byte*) {}
void finish() {}
#endif

}  // namespace

void drop_cached(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  for (std::size_t at = 0; at < bytes.size(); at += kLine) drop_line(bytes.data() + at);
  drop_line(bytes.data() + bytes.size() - 1);
  finish();
}

}  // namespace qsf
