#include "converter/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace qsf::convert {
namespace {

Error failed(const char* what, const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot {} {}: {}", what, path, std::strerror(errno));
}

}  // namespace

OutputFile::OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary().c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return make_error(ErrorCode::io_error, "cannot write {}: it is not a regular file", path);
  }
  const std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failed("write", temporary);
  return OutputFile(path, fd);
}

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", temporary());
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::flush() { return fsync(fd_) == 0 ? Status() : failed("write", temporary()); }

Status OutputFile::commit() {
  if (std::rename(temporary().c_str(), path_.c_str()) != 0) return failed("rename to", path_);
  close(std::exchange(fd_, -1));
  return {};
}

}  // namespace qsf::convert
