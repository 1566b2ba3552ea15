#include "native/made/made.h"

#include <algorithm>
#include <utility>

#include "native/sources/clock.h"
#include "native/sources/refused_memory.h"
#include "qsf/base/try.h"

namespace qsf {

using convert::MadeFile;
using std::chrono::milliseconds;

namespace {

// Bytes of a step that are staged: from files, and from servers, whose answers take as long as many bytes.
constexpr std::uint64_t kStageOfFile = 256u << 10, kStageOfServer = 1u << 20;
// A slice stays in a core's cache. Smaller ones cost more in calls of the system. Several threads share a segment.
constexpr std::uint64_t kSlice = 64u << 10, kSlicesOfSegment = 8;
constexpr std::uint32_t kThreads = 4;  // that make segments at a time
constexpr milliseconds kTurn{5};       // longest wait for one thing while others may happen

std::uint64_t slice_of(const FilePlan& plan) {
  std::uint64_t largest = 0;
  for (const SegmentEntry& s : plan.segments()) largest = std::max<std::uint64_t>(largest, s.raw_size);
  return std::min(kSlice, largest / kSlicesOfSegment);
}

Error cancelled() { return make_error(ErrorCode::cancelled, "reading was cancelled"); }

}  // namespace

Made::Made(std::shared_ptr<MadeModel> model, std::vector<Source> inners, bool helped)
    : model_(std::move(model)),
      file_(model_->file()),
      plan_(file_.plan()),
      inners_(std::move(inners)),
      stage_(inners_[0].kind().url ? kStageOfServer : kStageOfFile),
      helped_(helped && inners_[0].kind().copy != nullptr),
      slice_(slice_of(plan_)) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) free_.push(static_cast<std::uint8_t>(i));
  for (std::uint8_t i = 0; i < kStages; ++i) free_stages_.push(i);
  desks_.reserve(kSourceDepth);
  reserve();
}

/// Takes the memory that any order of requests needs, so that none is taken while tokens are made.
void Made::reserve() {
  MadeFile::Step step;
  std::uint64_t staged = 0;
  for (std::uint32_t i = 0; i < plan_.segments().size(); ++i) {
    step.parts.clear();
    do {
      file_.next_step(i, stage_, step);
      staged = std::max(staged, step.anywhere ? 0 : step.staged);
    } while (!step.last && !step.anywhere);
  }
  for (MadeJob& job : jobs_) job.reserve(step);
  for (std::vector<std::byte>& stage : stages_) stage.resize(staged);
  const std::uint64_t slice_bytes = helped_ ? file_.slice_bytes(slice_) : 0;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    Desk desk{plan_.make_room(), {}, {}};
    desk.rows.reserve(slice_bytes);
    desk.slice.runs.reserve(step.runs.capacity());
    desks_.push_back(std::move(desk));
  }
}

std::size_t Made::at_hand() {
  std::size_t n = 0;
  for (const Source& inner : inners_) n += inner.at_hand();
  const std::lock_guard lock(mutex_);
  return n + near_.size();
}

Status Made::intact() {
  Status first;
  for (Source& inner : inners_) {
    const Status status = inner.intact();
    if (first && !status) first = status;
  }
  return first;
}

std::size_t Made::under_way() const {
  std::size_t n = 0;
  for (const Source& inner : inners_) n += inner.under_way();
  return n;
}

std::uint64_t Made::memory() const {
  constexpr std::uint64_t kCopies = 3;         // of staged bytes, while they are converted
  constexpr std::uint64_t kWhole = 10u << 20;  // of rows that may come from anywhere: a window, and its inputs
  constexpr std::uint64_t kCode = 512u << 10;  // of the converter's code and tables, which no other model touches
  const std::uint64_t staged = file_.least_staged() == 0 ? 0 : std::max(stage_, file_.least_staged());
  // Counted without helpers too, so that a budget does for any number of threads.
  const std::uint64_t slices = inners_[0].kind().copy == nullptr ? 0 : file_.slice_bytes(slice_);
  return model_->memory() + kCode + kStages * (1 + kCopies) * staged + kThreads * (plan_.room_bytes() + slices) +
         (file_.reads_anywhere() ? kWhole : 0) + jobs_.size() * jobs_[0].bytes() + sizeof(Made);
}

/// Returns the segment that the request wants wholly.
std::uint32_t Made::segment_at(const ReadRequest& request) const {
  const std::span<const SegmentEntry> segments = plan_.segments();
  const auto at = std::ranges::lower_bound(segments, request.offset, {}, &SegmentEntry::offset);
  const bool whole = at != segments.end() && at->offset == request.offset && at->raw_size == request.size;
  return whole ? static_cast<std::uint32_t>(at - segments.begin()) : MadeJob::kNone;
}

/// Whether the reaping thread has something to do. It has nothing to do with segments that helpers make, and waking it
/// for each of them would take a tenth of the time.
bool Made::has_news() const { return cancelled_ || !arrived_.empty() || !whole_.empty() || under_way() != 0; }

void Made::submit(std::span<const ReadRequest> requests) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    for (const ReadRequest& request : requests) {
      const std::uint8_t slot = free_.front();
      free_.pop();
      MadeJob& job = jobs_[slot];
      job.request = request;
      job.segment = segment_at(request);
      job.step.parts.clear();
      job.planned = false;
      job.status = {};
      waiting_.push(slot);
    }
    begin_waiting();
    news = has_news();
  }
  if (news) news_.notify_one();
}

/// Begins the jobs that there is memory for, in order.
void Made::begin_waiting() {
  while (!waiting_.empty() && begin(waiting_.front())) waiting_.pop();
  send();
}

/// Returns false if a job has to wait for memory that others stage in. A job for which the system refuses memory ends.
bool Made::begin(std::uint8_t slot) {
  MadeJob& job = jobs_[slot];
  if (job.segment == MadeJob::kNone) {
    whole_.push(slot);
    return true;
  }
  bool begun = true;
  const Status memory = with_kept_memory([&] {
    if (job.step.parts.empty() && is_near(job)) {
      near_.push(slot);
      return;
    }
    if (!job.planned) file_.next_step(job.segment, stage_, job.step);
    job.planned = true;
    begun = begin_step(slot);
  });
  if (memory) return begun;
  job.status = memory;
  arrived_.push(slot);
  return true;
}

bool Made::begin_step(std::uint8_t slot) {
  MadeJob& job = jobs_[slot];
  if (job.step.anywhere) {
    whole_.push(slot);
    return true;
  }
  if (job.step.staged != 0 && job.stage == MadeJob::kNone) {
    if (free_stages_.empty()) return false;
    job.stage = free_stages_.front();
    free_stages_.pop();
  }
  std::byte* stage = job.stage != MadeJob::kNone ? stages_[job.stage].data() : nullptr;
  job.into.clear();
  job.staged.clear();
  for (const MadeFile::Part& part : job.step.parts) {
    std::byte* at = part.from == RowsFrom::stored ? job.request.into + part.at : stage;
    for (const InputRun& run : std::span(job.step.runs).subspan(part.first_run, part.n_runs)) {
      job.into.push_back(at);
      if (part.from != RowsFrom::stored) job.staged.push_back({run.input, run.offset, {at, run.size}});
      at += run.size;
    }
    if (part.from != RowsFrom::stored) stage = at;
  }
  job.sent = 0;
  job.left = job.step.runs.size();
  (job.left == 0 ? arrived_ : sending_).push(slot);
  return true;
}

/// Submits runs as far as the inner sources take them.
void Made::send() {
  for (; !sending_.empty(); sending_.pop()) {
    MadeJob& job = jobs_[sending_.front()];
    for (; job.sent < job.step.runs.size(); ++job.sent) {
      const InputRun& run = job.step.runs[job.sent];
      Source& inner = inners_[model_->place_of(run.input).source];
      if (inner.room() == 0) return;
      ReadRequest request = request_of(run, job.into[job.sent]);
      request.ticket = sending_.front();
      inner.submit({&request, 1});
    }
  }
}

/// Takes a run of a job. Returns whether it was the last.
bool Made::arrived(const Completion& run) {
  MadeJob& job = jobs_[run.ticket];
  --job.left;
  if (!run.status && job.status) job.status = run.status;
  if (!job.status) leave_out(static_cast<std::uint8_t>(run.ticket));
  return job.left == 0;
}

/// Leaves out the runs of a job that were not submitted.
void Made::leave_out(std::uint8_t slot) {
  MadeJob& job = jobs_[slot];
  job.left -= job.step.runs.size() - job.sent;
  job.sent = job.step.runs.size();
  for (std::size_t n = sending_.size(); n > 0; --n) {
    const std::uint8_t each = sending_.front();
    sending_.pop();
    if (each != slot) sending_.push(each);
  }
}

/// Ends the jobs of which no run is under way.
void Made::give_up() {
  for (Slots* const slots : {&waiting_, &whole_}) {
    for (; !slots->empty(); slots->pop()) {
      jobs_[slots->front()].status = cancelled();
      arrived_.push(slots->front());
    }
  }
  for (; !near_.empty(); near_.pop()) {
    MadeJob& job = jobs_[near_.front()];
    job.status = cancelled();
    job.slice.last = true;
    if (job.making == 0) arrived_.push(near_.front());  // otherwise the last helper ends it
  }
  while (!sending_.empty()) {
    const std::uint8_t slot = sending_.front();
    jobs_[slot].status = cancelled();
    leave_out(slot);
    if (jobs_[slot].left == 0) arrived_.push(slot);
  }
}

std::size_t Made::reap(std::span<Completion> out, milliseconds timeout) {
  const Clock::time_point end = Clock::now() + timeout;
  std::array<Completion, kSourceDepth> runs;
  std::unique_lock lock(mutex_);
  for (std::size_t n = 0;;) {
    if (cancelled_) give_up();
    for (; n < out.size() && !arrived_.empty(); arrived_.pop()) {
      const std::uint8_t slot = arrived_.front();
      out[n++] = {jobs_[slot].request.ticket, jobs_[slot].status, slot};
    }
    if (n != 0) return n;
    if (!whole_.empty()) {
      const std::uint8_t slot = whole_.front();
      whole_.pop();
      lock.unlock();
      Status status;
      const Status memory = with_memory([&] { status = make_whole(jobs_[slot]); });
      out[0] = {jobs_[slot].request.ticket, memory ? status : memory};
      lock.lock();
      free(slot);
      return 1;
    }
    const Clock::time_point now = Clock::now();
    if (under_way() == 0) {
      if (cancelled_ || now >= end) return 0;
      news_.wait_until(lock, std::min(end, now + std::chrono::hours(1)));
      continue;
    }
    const auto most = std::clamp(std::chrono::ceil<milliseconds>(end - now), milliseconds(0), kTurn);
    for (Source& inner : inners_) {
      if (inner.under_way() == 0) continue;
      lock.unlock();
      const std::size_t n_runs = inner.reap(runs, most);
      lock.lock();
      for (const Completion& run : std::span(runs).first(n_runs)) {
        if (arrived(run)) arrived_.push(static_cast<std::uint8_t>(run.ticket));
      }
    }
    send();
    if (arrived_.empty() && whole_.empty() && Clock::now() >= end) return 0;
  }
}

void Made::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  for (Source& inner : inners_) inner.cancel();
  news_.notify_one();
}

Helped Made::read_cached(Completion& out) {
  if (const Helped near = make_near(out); near != Helped::nothing) return near;
  Completion run;
  Helped helped = Helped::nothing;
  for (std::size_t i = 0; i < inners_.size() && helped == Helped::nothing; ++i) helped = inners_[i].read_cached(run);
  if (helped != Helped::last) return helped;
  bool whole = false;
  {
    const std::lock_guard lock(mutex_);
    whole = arrived(run);
    send();
  }
  if (!whole) {
    news_.notify_one();  // the reaping thread may have seen that nothing was under way
    return Helped::some;
  }
  const auto slot = static_cast<std::uint8_t>(run.ticket);
  Completion done{jobs_[slot].request.ticket, jobs_[slot].status, slot};
  if (!finish(done)) return Helped::some;
  out = {done.ticket, done.status};
  return Helped::last;
}

bool Made::finish(Completion& done) {
  const auto slot = static_cast<std::uint8_t>(done.job);
  MadeJob& job = jobs_[slot];
  if (done.status) {
    const Status memory = with_kept_memory([&] { done.status = make_step(slot); });
    if (!memory) done.status = memory;
    model_->staged().remove(slot);
  }
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    goes_on = done.status && !job.step.last && !cancelled_;
    if (done.status && !job.step.last && cancelled_) done.status = cancelled();
    if (goes_on) {
      // At once, because others may wait for the memory that this job has.
      job.planned = false;
      if (!begin(slot)) waiting_.push(slot);
      send();
    } else {
      free(slot);
    }
  }
  news_.notify_one();
  return !goes_on;
}

void Made::free(std::uint8_t slot) {
  MadeJob& job = jobs_[slot];
  if (job.stage != MadeJob::kNone) free_stages_.push(static_cast<std::uint8_t>(job.stage));
  job.stage = MadeJob::kNone;
  free_.push(slot);
  begin_waiting();
}

Status Made::make_step(std::uint8_t slot) {
  MadeJob& job = jobs_[slot];
  std::uint32_t last = MadeJob::kNone;
  for (const InputRun& run : job.step.runs) {
    if (run.input != std::exchange(last, run.input)) QSF_TRY(model_->unchanged(run.input));
  }
  Desk desk = take_desk();
  model_->staged().offer(slot, job.staged);
  Status status = file_.make(job.segment, job.step, job.raw(), desk.room);
  give_desk(std::move(desk));
  if (status && job.step.last) status = file_.seal(job.segment, job.raw());
  return status;
}

/// Makes a segment some of whose rows may come from anywhere, or any other bytes. The reaping thread.
Status Made::make_whole(MadeJob& job) {
  const ReadRequest& r = job.request;
  if (job.segment == MadeJob::kNone) {
    QSF_TRY(check_range(r, plan_.size()));
    QSF_TRY(make_range(r.offset, job.raw()));
    return model_->unchanged();
  }
  Desk desk = take_desk();
  Status status = model_->make_whole(job.segment, job.raw(), desk.room);
  give_desk(std::move(desk));
  if (status) status = model_->unchanged();
  return status ? file_.seal(job.segment, job.raw()) : status;
}

Status Made::make_range(std::uint64_t offset, std::span<std::byte> out) {
  if (offset < plan_.front_size()) {
    const std::size_t n = std::min<std::uint64_t>(plan_.front_size() - offset, out.size());
    QSF_TRY(model_->read_front(offset, out.first(n)));
    offset += n;
    out = out.subspan(n);
  }
  Desk desk = take_desk();
  const std::span<const SegmentEntry> segments = plan_.segments();
  auto segment = std::ranges::upper_bound(segments, offset, {}, &SegmentEntry::offset);
  if (segment != segments.begin()) --segment;
  Status status;
  for (; status && !out.empty(); ++segment) {
    const auto gap = segment->offset > offset ? segment->offset - offset : 0;
    const std::size_t zeros = std::min<std::uint64_t>(gap, out.size());
    std::ranges::fill(out.first(zeros), std::byte{0});
    offset += zeros;
    out = out.subspan(zeros);
    const std::uint64_t within = offset - std::min(offset, segment->offset);
    if (out.empty() || within >= segment->raw_size) continue;
    const std::size_t n = std::min<std::uint64_t>(segment->raw_size - within, out.size());
    status = plan_.read(static_cast<std::uint32_t>(segment - segments.begin()), within, out.first(n), desk.room);
    offset += n;
    out = out.subspan(n);
  }
  give_desk(std::move(desk));
  return status;
}

Desk Made::take_desk() {
  const std::lock_guard lock(mutex_);
  if (desks_.empty()) return {};
  Desk desk = std::move(desks_.back());
  desks_.pop_back();
  return desk;
}

void Made::give_desk(Desk desk) {
  const std::lock_guard lock(mutex_);
  desks_.push_back(std::move(desk));
}

}  // namespace qsf
