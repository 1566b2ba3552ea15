#include <optional>

#include "threads/thread_pool.h"
#include "wasm/workers.h"

namespace qsf {
namespace {

std::optional<ThreadPool> pool;

}  // namespace

Workers lend_workers(std::uint32_t n) {
  if (!pool) pool.emplace(n);
  return pool->workers();
}

void end_workers() {
  if (pool) pool->end();
}

}  // namespace qsf
