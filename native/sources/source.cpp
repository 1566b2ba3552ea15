#include "native/sources/source.h"

#include <algorithm>
#include <array>

#include "native/sources/address.h"
#include "native/sources/http_text.h"
#include "system/file.h"
#include "system/memory.h"

namespace qsf {

extern const SourceKind kUringSource, kOverlappedSource, kDirectSource, kMmapSource, kPreadSource, kHttpSource;

namespace {

constexpr std::array kKinds{
    &kPreadSource,
#ifdef QSF_HAVE_MMAP
    &kMmapSource,
#endif
    &kDirectSource,
#ifdef QSF_HAVE_OVERLAPPED
    &kOverlappedSource,
#endif
#ifdef QSF_HAVE_URING
    &kUringSource,
#endif
#ifdef QSF_HAVE_CURL
    &kHttpSource,
#endif
};

const SourceKind* find_kind(std::string_view name, bool url) {
  for (const SourceKind* kind : kKinds) {
    if (name.empty() ? kind->url == url : kind->name == name) return kind;
  }
  return nullptr;
}

#if defined(QSF_HAVE_URING)
constexpr const SourceKind& kPastCache = kUringSource;
#elif defined(QSF_HAVE_OVERLAPPED)
constexpr const SourceKind& kPastCache = kOverlappedSource;
#else
constexpr const SourceKind& kPastCache = kDirectSource;
#endif

/// Returns the kind for a file. If memory has room for the whole file in addition to the model, the page cache keeps it
/// for the next pass. Otherwise pages would be dropped before they are used again, and searching for them costs more
/// than reading.
const SourceKind* choose_kind(const std::string& where, const SourceOptions& options) {
  sys::FileInfo file;
  if (!sys::look(where, file)) return &kPreadSource;  // which reports the reason
  return memory_room() < options.budget + file.size ? &kPastCache : &kPreadSource;
}

}  // namespace

std::span<const SourceKind* const> source_kinds() { return kKinds; }

#ifndef QSF_HAVE_CURL
Result<std::string> http_text(const std::string&, const SourceOptions&, std::uint64_t) {
  return make_error(ErrorCode::unsupported_host, "this build reads files only: it was made without libcurl");
}
#endif

Result<Source> Source::open(const std::string& where, const SourceOptions& options) {
  const bool chosen = options.kind.empty() && !is_url(where);
  const SourceKind* kind = chosen ? choose_kind(where, options) : find_kind(options.kind, is_url(where));
  if (kind == nullptr && options.kind.empty()) {
    return make_error(ErrorCode::unsupported_host, "this build reads files only: it was made without libcurl");
  }
  if (kind == nullptr) {
    return make_error(ErrorCode::bad_argument, "there is no source '{}'", options.kind);
  }
  if (kind->url != is_url(where)) {
    return make_error(ErrorCode::bad_argument, "the source '{}' does not read {}", kind->name,
                      kind->url ? "files, only URLs" : "URLs, only files");
  }
  std::uint64_t size = 0;
  Result<void*> state = kind->open(where, options, size);
  while (!state && state.error().code == ErrorCode::unsupported_host && kind->instead != nullptr) {
    kind = kind->instead;
    state = kind->open(where, options, size);
  }
  if (!state) return state.error();
  return of(*kind, *state, size, options);
}

Source::Source(Source&& other) noexcept
    : kind_(other.kind_), state_(other.state_), size_(other.size_), leaves_finishing_(other.leaves_finishing_) {
  other.state_ = nullptr;
}

Source::~Source() {
  if (state_ != nullptr) kind_->close(state_);
}

std::size_t Source::submit(std::span<const ReadRequest> requests) {
  const std::size_t n = std::min(requests.size(), room());
  if (n == 0) return 0;
  under_way_.fetch_add(n, std::memory_order_release);
  kind_->submit(state_, requests.first(n));
  return n;
}

std::size_t Source::reap(std::span<Completion> out, std::chrono::milliseconds timeout) {
  const std::size_t n = kind_->reap(state_, out, timeout);
  std::size_t kept = 0, finished = 0;
  for (Completion& done : out.first(n)) {
    const bool whole = done.job == Completion::kFinished || (!leaves_finishing_ && kind_->finish(state_, done));
    if (whole) {
      done.job = Completion::kFinished;
      ++finished;
    }
    if (whole || leaves_finishing_) out[kept++] = done;
  }
  under_way_.fetch_sub(finished, std::memory_order_release);
  return kept;
}

bool Source::finish(Completion& done) {
  if (done.job == Completion::kFinished) return true;
  if (!kind_->finish(state_, done)) return false;
  done.job = Completion::kFinished;
  under_way_.fetch_sub(1, std::memory_order_release);
  return true;
}

Helped Source::read_cached(Completion& out) {
  const Helped helped = kind_->read_cached == nullptr ? Helped::nothing : kind_->read_cached(state_, out);
  if (helped == Helped::last) under_way_.fetch_sub(1, std::memory_order_release);
  return helped;
}

std::size_t Source::at_hand() const { return kind_->at_hand == nullptr ? 0 : kind_->at_hand(state_); }

bool Source::is_cached(const ReadRequest& request) const {
  return kind_->is_cached != nullptr && kind_->is_cached(state_, request);
}

std::span<const std::byte> Source::mapped() const {
  return kind_->mapped == nullptr ? std::span<const std::byte>() : kind_->mapped(state_);
}

Status Source::intact() { return kind_->intact == nullptr ? Status() : kind_->intact(state_); }

void Source::cancel() { kind_->cancel(state_); }

std::size_t take_completions(Completions& from, std::span<Completion> to) {
  std::size_t n = 0;
  for (; n < to.size() && !from.empty(); ++n) {
    to[n] = from.front();
    from.pop();
  }
  return n;
}

Status check_range(const ReadRequest& request, std::uint64_t size) {
  if (request.offset <= size && request.size <= size - request.offset) return {};
  return make_error(ErrorCode::truncated, "{} bytes at {} were asked of a file of {} bytes", request.size,
                    request.offset, size);
}

}  // namespace qsf
