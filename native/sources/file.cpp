#include "native/sources/file.h"

#include "system/memory.h"

namespace qsf {
namespace {

int fd_of(void* source) { return static_cast<FileSource*>(source)->file.fd(); }

void ahead(void* source, const ReadRequest& r) { fetch_ahead(fd_of(source), r.offset, r.size); }

bool cached(void* source, const ReadRequest& r) { return is_cached(fd_of(source), r.offset, r.size); }

Status read_pread(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  return static_cast<FileSource*>(state)->read_steps(
      request, cancelled, 1u << 20,
      [state](std::uint64_t at, std::span<std::byte> into) { return read_some(fd_of(state), at, into); });
}

}  // namespace

FileSource::FileSource(OpenFile open_file, std::uint64_t bytes, bool behind, ReadThread::Read read, bool helped)
    : file(std::move(open_file)), size(bytes), drops(behind), thread(read, cached, ahead, this, helped) {}

Result<std::unique_ptr<FileSource>> FileSource::open(const std::string& where, const SourceOptions& options,
                                                     std::uint64_t& size, ReadThread::Read read) {
  QSF_LET(file, open_regular(where, size));
  const bool drops = memory_room() < options.budget + size;
  return std::make_unique<FileSource>(std::move(file), size, drops, read, options.helped);
}

void FileSource::submit(void* state, std::span<const ReadRequest> requests) {
  static_cast<FileSource*>(state)->thread.submit(requests);
}

std::size_t FileSource::reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout) {
  return static_cast<FileSource*>(state)->thread.reap(out, timeout);
}

Helped FileSource::read_cached(void* state, Completion& out) {
  return static_cast<FileSource*>(state)->thread.read_cached(out);
}

std::size_t FileSource::at_hand(void* state) { return static_cast<FileSource*>(state)->thread.at_hand(); }

bool FileSource::is_cached(void* state, const ReadRequest& request) {
  return static_cast<FileSource*>(state)->thread.is_cached(request);
}

Status FileSource::copy(void* state, const ReadRequest& request) {
  return static_cast<FileSource*>(state)->thread.copy(request);
}

void FileSource::cancel(void* state) { static_cast<FileSource*>(state)->thread.cancel(); }

void FileSource::close(void* state) { delete static_cast<FileSource*>(state); }

extern const SourceKind kPreadSource;
const SourceKind kPreadSource = FileSource::kind<read_pread>("pread");

}  // namespace qsf
