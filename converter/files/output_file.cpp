#include "converter/files/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "system/file.h"

namespace qsf::convert {
namespace {

constexpr int kTries = 16;  // names that are taken already

Error failed(const char* what, const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot {} {:.140}: {}", what, path, std::strerror(errno));
}

/// Returns a name that fits in any folder with OUT's own name; empty if the system has no random numbers.
std::string temporary_name() {
  std::uint64_t random = 0;
  if (!sys::random_bytes(std::as_writable_bytes(std::span(&random, 1)))) return {};
  char name[32];
  std::snprintf(name, sizeof name, ".qsf-%016llx.tmp", static_cast<unsigned long long>(random));
  return name;
}

}  // namespace

OutputFile::OutputFile(std::string path, sys::Unfinished temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) sys::close_file(fd_);
}

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
  const std::string at = exists ? sys::resolved(path) : path;
  const std::string folder = sys::folder_of(at);
  for (int i = 0; i < kTries; ++i) {
    const std::string name = temporary_name();
    if (name.empty()) break;
    std::string temporary = folder + name;
    const int fd = sys::create_file(temporary);
    if (fd >= 0) {
      if (exists) sys::copy_mode(fd, info);
      return OutputFile(at, sys::Unfinished(std::move(temporary)), fd);
    }
    if (errno != EEXIST) break;
  }
  return failed("write", path);
}

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::ptrdiff_t n = sys::write_at(fd_, offset, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", path_);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::flush() { return sys::flush_file(fd_) ? Status() : failed("write", path_); }

Status OutputFile::commit() {
  if (!sys::replace_file(temporary_.path(), path_)) return failed("write", path_);
  temporary_.keep();
  sys::close_file(std::exchange(fd_, -1));
  return {};
}

}  // namespace qsf::convert
