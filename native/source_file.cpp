#include "native/source_file.h"

#include "system/file.h"
#include "system/memory.h"

namespace qsf {
namespace {

void ahead(void* file, const ReadRequest& r) { fetch_ahead(static_cast<FileSource*>(file)->fd, r.offset, r.size); }

bool cached(void* file, const ReadRequest& r) {
  return is_cached(static_cast<FileSource*>(file)->fd, r.offset, r.size);
}

Status read_pread(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const FileSource& file = *static_cast<FileSource*>(state);
  return file.read_steps(request, cancelled, 1u << 20,
                         [&](std::uint64_t at, std::span<std::byte> into) { return read_some(file.fd, at, into); });
}

}  // namespace

FileSource::FileSource(int file, std::uint64_t bytes, bool behind, ReadThread::Read read, bool helped)
    : fd(file), size(bytes), drops(behind), thread(read, cached, ahead, this, helped) {}

Result<void*> FileSource::open(const std::string& where, const SourceOptions& options, std::uint64_t& size,
                               ReadThread::Read read) {
  QSF_LET(fd, open_regular(where, size));
  const bool drops = memory_room() < options.beside + size;
  return static_cast<void*>(new FileSource(fd, size, drops, read, options.helped));
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

void FileSource::cancel(void* state) { static_cast<FileSource*>(state)->thread.cancel(); }

void FileSource::close(void* state) {
  auto* file = static_cast<FileSource*>(state);
  const int fd = file->fd;
  delete file;  // ends the thread that reads
  sys::close_file(fd);
}

extern const SourceKind kPreadSource;
const SourceKind kPreadSource = FileSource::kind<read_pread>("pread");

}  // namespace qsf
