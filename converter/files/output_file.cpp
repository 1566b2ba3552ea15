#include "converter/files/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "system/file.h"

namespace qsf::convert {
namespace {

Error failed(const char* what, const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot {} {:.140}: {}", what, path, std::strerror(errno));
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  sys::FileInfo info;
  const bool exists = sys::look(path, info);
  if (exists && info.kind != sys::FileKind::regular) {
    return make_error(ErrorCode::io_error, "cannot write {:.140}: it is not a regular file", path);
  }
  std::error_code error;
  if (!exists && std::filesystem::is_symlink(sys::path_of(path), error)) {
    return make_error(ErrorCode::io_error, "cannot write {:.140}: it is a link to nothing", path);
  }
  sys::NewFile file = sys::NewFile::create(path);
  if (!file) return failed("write", path);
  return OutputFile(std::move(file));
}

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::ptrdiff_t n = sys::write_at(file_.file(), offset, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", file_.path());
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::flush() { return sys::flush_file(file_.file()) ? Status() : failed("write", file_.path()); }

Status OutputFile::commit() { return file_.commit() ? Status() : failed("write", file_.path()); }

}  // namespace qsf::convert
