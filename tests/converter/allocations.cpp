#include "converter/allocations.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

namespace qsf::test {
namespace {

std::atomic<bool> g_counting{false};
std::atomic<std::uint64_t> g_bytes{0}, g_most{0};
std::string g_what;

void* counted(std::size_t size) {
  if (g_counting.load(std::memory_order_relaxed) && g_bytes.fetch_add(size) + size > g_most) {
    g_counting = false;
    std::fprintf(stderr, "%s: %llu bytes are too many, %llu are the most\n", g_what.c_str(),
                 static_cast<unsigned long long>(g_bytes.load()), static_cast<unsigned long long>(g_most.load()));
    std::abort();
  }
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

AllocationLimit::AllocationLimit(std::string what, std::uint64_t most) {
  g_what = std::move(what);
  g_most = most;
  g_bytes = 0;
  g_counting = true;
}
AllocationLimit::~AllocationLimit() { g_counting = false; }
std::uint64_t AllocationLimit::bytes() const { return g_bytes; }

}  // namespace qsf::test

void* operator new(std::size_t size) { return qsf::test::counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
