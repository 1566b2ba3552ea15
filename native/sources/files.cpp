#include "native/sources/files.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "native/sources/read_thread.h"
#include "native/sources/regular_file.h"
#include "qsf/base/try.h"
#include "system/memory.h"
#include "system/past_cache.h"

namespace qsf {
namespace {

constexpr std::size_t kStep = 1u << 20;  // bytes between two looks at `cancelled`

struct Part {
  OpenFile file;
  std::uint64_t begin = 0, size = 0;
};

struct Files {
  std::vector<Part> parts;
  bool drops = false;  // gives pages back after reading, as FileSource does
  std::optional<ReadThread> thread;

  /// Returns the file of a request, and the request's offset in it; null if no file has all of its bytes.
  const Part* of(const ReadRequest& r, std::uint64_t& at) const {
    const auto next = std::ranges::upper_bound(parts, r.offset, {}, &Part::begin);
    if (next == parts.begin()) return nullptr;
    const Part& part = *std::prev(next);
    at = r.offset - part.begin;
    return at <= part.size && r.size <= part.size - at ? &part : nullptr;
  }
};

bool cached(void* state, const ReadRequest& r) {
  std::uint64_t at = 0;
  const Part* const part = static_cast<Files*>(state)->of(r, at);
  return part != nullptr && is_cached(part->file.fd(), at, r.size);
}

void ahead(void* state, const ReadRequest& r) {
  std::uint64_t at = 0;
  const Part* const part = static_cast<Files*>(state)->of(r, at);
  if (part != nullptr) fetch_ahead(part->file.fd(), at, r.size);
}

Status read(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const Files& files = *static_cast<Files*>(state);
  std::uint64_t begin = 0;
  const Part* const part = files.of(request, begin);
  if (part == nullptr) {
    return make_error(ErrorCode::truncated, "{} bytes at {} are not in one of the files", request.size, request.offset);
  }
  std::uint64_t at = begin;
  for (std::span<std::byte> left(request.into, request.size); !left.empty();) {
    if (cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
    QSF_LET(n, read_some(part->file.fd(), at, left.first(std::min(left.size(), kStep))));
    at += n;
    left = left.subspan(n);
  }
  if (files.drops) give_back(part->file.fd(), begin, request.size);
  return {};
}

ReadThread& thread_of(void* state) { return *static_cast<Files*>(state)->thread; }

constexpr SourceKind kFiles{
    .name = "pread",
    .url = false,
    .open = nullptr,
    .submit = [](void* state, std::span<const ReadRequest> requests) { thread_of(state).submit(requests); },
    .reap = [](void* state, std::span<Completion> out,
               std::chrono::milliseconds timeout) { return thread_of(state).reap(out, timeout); },
    .cancel = [](void* state) { thread_of(state).cancel(); },
    .close = [](void* state) { delete static_cast<Files*>(state); },
    .read_cached = [](void* state, Completion& out) { return thread_of(state).read_cached(out); },
    .at_hand = [](void* state) { return thread_of(state).at_hand(); },
    .is_cached = [](void* state, const ReadRequest& r) { return thread_of(state).is_cached(r); },
    .copy = [](void* state, const ReadRequest& r) { return thread_of(state).copy(r); },
};

}  // namespace

Result<Source> open_files(std::span<const FilePart> parts, const SourceOptions& options) {
  auto files = std::make_unique<Files>();
  std::uint64_t end = 0, bytes = 0;
  for (const FilePart& part : parts) {
    std::uint64_t size = 0;
    QSF_LET(file, open_regular(part.path, size));
    files->parts.push_back({std::move(file), part.begin, size});
    end = part.begin + size;
    bytes += size;
  }
  files->drops = memory_room() < options.budget + bytes;
  files->thread.emplace(read, cached, ahead, files.get(), options.helped);
  return Source::of(kFiles, files.release(), end, options);
}

}  // namespace qsf
