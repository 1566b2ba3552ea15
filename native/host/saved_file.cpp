#include "native/host/saved_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "qsf/base/try.h"
#include "system/file.h"
#include "system/new_file.h"

namespace qsf {
namespace {

constexpr std::size_t kBuffer = 256 << 10;  // bytes of a read or a write

Error cannot(const char* what, const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot {} {:.300}: {}", what, path, std::strerror(errno));
}

/// Returns a file that commit() puts in the place of `path`.
Result<sys::NewFile> new_file(const std::string& path) {
  sys::FileInfo info;
  const bool exists = sys::look(path, info);
  if (exists && info.kind != sys::FileKind::regular) {
    return make_error(ErrorCode::io_error, "cannot write {:.300}: it is not a regular file", path);
  }
  if (exists && !sys::is_writable(path)) return cannot("write", path);
  sys::NewFile file = sys::NewFile::create(path);
  if (!file) return cannot("write", path);
  return file;
}

}  // namespace

Status check_writable(const std::string& path) {
  const Result<sys::NewFile> file = new_file(path);
  return file ? Status() : file.error();
}

Status save_to_file(Session& session, const std::string& path, std::string_view note, std::uint32_t n_tokens,
                    bool flush) {
  const auto note_bytes = std::as_bytes(std::span(note));
  QSF_LET(header, session.begin_save(sum_of_note(note_bytes), n_tokens));
  Result<sys::NewFile> made = new_file(path);
  if (!made) return made.error();
  sys::NewFile file = std::move(*made);
  if (!file.write(header) || !file.write(note_bytes)) return cannot("write", path);
  std::vector<std::byte> buffer(kBuffer);
  for (std::size_t n = buffer.size(); n == buffer.size();) {
    QSF_LET(written, session.save(buffer));
    n = written;
    if (!file.write(std::span(buffer).first(n))) return cannot("write", path);
  }
  if (flush && !sys::flush_file(file.file())) return cannot("write", path);
  return file.commit() ? Status() : cannot("write", path);
}

Status put_before(Session& session, std::string_view rest, std::vector<std::uint32_t>& prompt) {
  std::vector<std::uint32_t> ids(rest.size() + 8);
  QSF_LET(n, session.tokenize(rest, false, ids));
  prompt.insert(prompt.begin(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
  return {};
}

Result<SavedFile> SavedFile::open(const std::string& path) {
  std::uint64_t size = 0;
  Result<OpenFile> file = open_regular(path, size);
  if (!file) return file.error();
  SavedFile out(path, std::move(*file), size);
  const std::span<std::byte> front = std::span(out.bytes_).first(std::min<std::uint64_t>(size, kSavedHeaderSize));
  QSF_TRY(out.read(0, front));
  const Result<SavedHeader> header = read_saved_header(front, size);
  if (!header) return out.named(header.error());
  out.header_ = *header;
  return out;
}

Status SavedFile::read(std::uint64_t at, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::ptrdiff_t n = sys::read_at(file_.fd(), at, into);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot("read", path_);
    if (n == 0) return named(ended(at + into.size()));
    at += static_cast<std::uint64_t>(n);
    into = into.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Error SavedFile::named(const Error& error) const {
  return make_error(error.code, "{:.300}: {}", path_, error.sentence);
}

Result<std::string> SavedFile::note() const {
  std::string note(header_.note.bytes, '\0');
  const auto bytes = std::as_writable_bytes(std::span(note));
  QSF_TRY(read(kSavedHeaderSize, bytes));
  const Status checked = check_note(header_, bytes);
  if (!checked) return named(checked.error());
  return note;
}

Result<std::vector<std::uint32_t>> SavedFile::tokens() const {
  std::vector<std::uint32_t> ids(header_.n_tokens);
  QSF_TRY(read(header_.payload_offset(), std::as_writable_bytes(std::span(ids))));
  return ids;
}

Status SavedFile::restore(Session& session, std::uint32_t sequence) const {
  if (const Status begun = session.begin_restore(bytes_, size_, sequence); !begun) return named(begun.error());
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kBuffer, header_.payload_bytes()));
  while (true) {
    for (std::uint64_t at = header_.payload_offset(); at < size_;) {
      const std::span<std::byte> piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size_ - at));
      QSF_TRY(read(at, piece));
      const Result<bool> done = session.restore(piece);
      if (!done) return named(done.error());
      if (*done) return {};
      at += piece.size();
    }
  }
}

}  // namespace qsf
