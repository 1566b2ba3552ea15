#include <memory>
#include <optional>

#include "threads/thread_pool.h"
#include "threads/thread_tuner.h"
#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {
  explicit Pool(std::uint32_t n) : own(new ThreadPool(n)), threads(*own) {}
  explicit Pool(ThreadPool& others) : threads(others) {}
  std::unique_ptr<ThreadPool> own;
  ThreadPool& threads;
  std::optional<ThreadTuner> tuner;
};

LentThreads::LentThreads(std::uint32_t n, bool tuned) : pool_(new Pool(n)) {
  if (tuned) pool_->tuner.emplace(pool_->threads);
}
LentThreads::~LentThreads() = default;
void LentThreads::share(LentThreads& owner) {
  pool_.reset(new Pool(owner.pool_->threads));
  if (owner.pool_->tuner) pool_->tuner.emplace(pool_->threads);
}
Workers LentThreads::workers() { return pool_->threads.workers(); }
void LentThreads::stepping() {
  if (pool_->tuner) pool_->tuner->stepping();
}
void LentThreads::stepped(Step step, double begin, double end) {
  if (pool_->tuner) pool_->tuner->stepped(step, begin, end);
}
void LentThreads::begun() {
  if (pool_->tuner) pool_->tuner->begun();
}
void LentThreads::end() {
  if (pool_->own) pool_->own->end();
}

}  // namespace qsf
