#include "threads/thread_pool.h"
#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {
  ThreadPool threads;
};

LentThreads::LentThreads(std::uint32_t n) : pool_(new Pool{ThreadPool(n)}) {}
LentThreads::~LentThreads() = default;
Workers LentThreads::workers() { return pool_->threads.workers(); }
void LentThreads::end() { pool_->threads.end(); }

}  // namespace qsf
