#include <memory>
#include <optional>
#include <utility>

#include "threads/thread_pool.h"
#include "threads/thread_tuner.h"
#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {
  explicit Pool(std::uint32_t n) : own(new ThreadPool(n)), threads(*own), used_by(&user) {}
  explicit Pool(Pool& owner) : threads(owner.threads), used_by(&owner.user) {}
  std::unique_ptr<ThreadPool> own;
  ThreadPool& threads;
  std::optional<ThreadTuner> tuner;
  const Pool* user = this;  // of own threads
  const Pool** used_by;
};

LentThreads::LentThreads(std::uint32_t n, bool tuned) : pool_(new Pool(n)) {
  if (tuned) pool_->tuner.emplace(pool_->threads);
}
LentThreads::~LentThreads() = default;
void LentThreads::share(LentThreads& owner) {
  pool_.reset(new Pool(*owner.pool_));
  if (owner.pool_->tuner) pool_->tuner.emplace(pool_->threads);
}
Workers LentThreads::workers() { return pool_->threads.workers(); }
void LentThreads::stepping() {
  if (std::exchange(*pool_->used_by, pool_.get()) != pool_.get() && pool_->tuner) pool_->tuner->resume();
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
