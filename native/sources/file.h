// The common part of sources that read files through the page cache. They announce coming reads to the system. If
// memory has no room for the file, they also give pages back after reading, so that the system need not search for
// pages to evict.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "native/sources/read_thread.h"
#include "native/sources/regular_file.h"
#include "native/sources/source.h"
#include "qsf/base/try.h"

namespace qsf {

class MappedFile;

struct FileSource {
  OpenFile file;
  std::uint64_t size;                  // at opening
  bool drops;                          // gives pages back after reading
  std::shared_ptr<MappedFile> mapped;  // set by the kind that maps the file
  ReadThread thread;

  FileSource(OpenFile open_file, std::uint64_t bytes, bool behind, ReadThread::Read read, bool helped);

  static Result<std::unique_ptr<FileSource>> open(const std::string& where, const SourceOptions& options,
                                                  std::uint64_t& size, ReadThread::Read read);
  static void submit(void* state, std::span<const ReadRequest> requests);
  static std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout);
  static Helped read_cached(void* state, Completion& out);
  static std::size_t at_hand(void* state);
  static bool is_cached(void* state, const ReadRequest& request);
  static Status copy(void* state, const ReadRequest& request);
  static void cancel(void* state);
  static void close(void* state);

  /// Returns the kind with a name and a way to read.
  template <ReadThread::Read kRead>
  static constexpr SourceKind kind(std::string_view name) {
    constexpr auto kOpen = [](const std::string& where, const SourceOptions& options,
                              std::uint64_t& size) -> Result<void*> {
      QSF_LET(source, open(where, options, size, kRead));
      return static_cast<void*>(source.release());
    };
    SourceKind out{name, false, kOpen, submit, reap, cancel, close, read_cached, at_hand};
    out.is_cached = is_cached;
    out.copy = copy;
    return out;
  }

  /// Fills the request's memory, at most `step` bytes at a time.
  template <class ReadSome>
  Status read_steps(const ReadRequest& request, const std::atomic<bool>& cancelled, std::size_t step,
                    const ReadSome& read_some) const {
    QSF_TRY(check_range(request, size));
    std::uint64_t offset = request.offset;
    for (std::span<std::byte> left(request.into, request.size); !left.empty();) {
      if (cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
      const Result<std::size_t> n = read_some(offset, left.first(std::min(left.size(), step)));
      if (!n) return n.error();
      offset += *n;
      left = left.subspan(*n);
    }
    if (drops) give_back(file.fd(), request.offset, request.size);
    return {};
  }
};

}  // namespace qsf
