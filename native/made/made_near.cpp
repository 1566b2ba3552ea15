// Segments whose bytes are in the page cache. Helpers copy them in slices, each to the memory of its thread, and make
// rows of them while they are in its cache.
#include <algorithm>
#include <utility>

#include "native/made/made.h"
#include "native/sources/refused_memory.h"
#include "qsf/base/try.h"

namespace qsf {

ReadRequest Made::request_of(const InputRun& run, std::byte* into) const {
  ReadRequest request;
  request.offset = model_->place_of(run.input).begin + run.offset;
  request.size = static_cast<std::uint32_t>(run.size);
  request.into = into;
  return request;
}

/// Whether helpers can make all of the job's segment from the page cache. Its slice is then before the first.
bool Made::is_near(MadeJob& job) {
  job.slice.n = 0;
  if (!helped_ || cancelled_ || !file_.next_slice(job.segment, ~std::uint64_t{0}, job.slice)) return false;
  job.slice.n = 0;
  return std::ranges::all_of(job.slice.runs, [&](const InputRun& run) {
    return inners_[model_->place_of(run.input).source].is_cached(request_of(run, nullptr));
  });
}

/// Makes the next slice of the job that has waited longest.
Helped Made::make_near(Completion& out) {
  Desk desk = take_desk();
  std::unique_lock lock(mutex_);
  if (near_.empty() || cancelled_) {
    lock.unlock();
    give_desk(std::move(desk));
    return Helped::nothing;
  }
  const std::uint8_t slot = near_.front();
  MadeJob& job = jobs_[slot];
  ++job.making;
  Status status = with_kept_memory([&] {
    (void)file_.next_slice(job.segment, slice_, job.slice);
    desk.slice = job.slice;
  });
  if (job.slice.last) near_.pop();
  lock.unlock();
  if (status) {
    const Status memory = with_kept_memory([&] { status = make_slice(job, desk); });
    if (!memory) status = memory;
  }
  give_desk(std::move(desk));
  lock.lock();
  if (!status && job.status) job.status = status;
  if (!job.status && !job.slice.last) {
    job.slice.last = true;
    near_.pop();
  }
  if (--job.making != 0 || !job.slice.last) return Helped::some;
  out = {job.request.ticket, job.status};
  lock.unlock();
  if (out.status) out.status = file_.seal(job.segment, job.raw());
  lock.lock();
  free(slot);
  const bool news = has_news();
  lock.unlock();
  if (news) news_.notify_one();
  return Helped::last;
}

Status Made::make_slice(MadeJob& job, Desk& desk) {
  std::uint64_t size = 0;
  for (const InputRun& run : desk.slice.runs) size += run.size;
  desk.rows.resize(size);
  std::byte* into = desk.rows.data();
  for (const InputRun& run : desk.slice.runs) {
    QSF_TRY(inners_[model_->place_of(run.input).source].copy(request_of(run, into)));
    QSF_TRY(model_->unchanged(run.input));
    into += run.size;
  }
  return file_.make(job.segment, desk.slice, desk.rows, job.raw());
}

}  // namespace qsf
