#include <optional>

#include "threads/thread_pool.h"
#include "threads/thread_tuner.h"
#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {
  explicit Pool(std::uint32_t n) : threads(n) {}
  ThreadPool threads;
  std::optional<ThreadTuner> tuner;
};

LentThreads::LentThreads(std::uint32_t n, bool tuned) : pool_(new Pool(n)) {
  if (tuned) pool_->tuner.emplace(pool_->threads);
}
LentThreads::~LentThreads() = default;
Workers LentThreads::workers() { return pool_->threads.workers(); }
void LentThreads::stepped(Step step, double begin, double end) {
  if (pool_->tuner) pool_->tuner->stepped(step, begin, end);
}
void LentThreads::begun() {
  if (pool_->tuner) pool_->tuner->begun();
}
void LentThreads::end() { pool_->threads.end(); }

}  // namespace qsf
