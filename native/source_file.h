// What the sources share that read files by way of the page cache. The system is told what is read soon; where memory
// has no room for the file, also what was read and is not needed, so that it need not look for pages to give up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "native/read_thread.h"
#include "native/regular_file.h"
#include "native/source.h"
#include "qsf/base/try.h"

namespace qsf {

class MappedFile;

struct FileSource {
  int fd;
  std::uint64_t size;                  // when it was opened
  bool drops;                          // what was read
  std::shared_ptr<MappedFile> mapped;  // of the kind that maps the file
  ReadThread thread;

  FileSource(int file, std::uint64_t bytes, bool behind, ReadThread::Read read, bool helped);

  static Result<void*> open(const std::string& where, const SourceOptions& options, std::uint64_t& size,
                            ReadThread::Read read);
  static void submit(void* state, std::span<const ReadRequest> requests);
  static std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout);
  static Helped read_cached(void* state, Completion& out);
  static std::size_t at_hand(void* state);
  static void cancel(void* state);
  static void close(void* state);

  /// Of a name and a way to read.
  template <ReadThread::Read kRead>
  static constexpr SourceKind kind(std::string_view name) {
    constexpr auto kOpen = [](const std::string& where, const SourceOptions& options, std::uint64_t& size) {
      return open(where, options, size, kRead);
    };
    return {name, false, kOpen, submit, reap, cancel, close, read_cached, at_hand};
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
    if (drops) give_back(fd, request.offset, request.size);
    return {};
  }
};

}  // namespace qsf
