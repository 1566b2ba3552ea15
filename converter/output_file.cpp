#include "converter/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace qsf::convert {
namespace {

constexpr int kTries = 16;  // names that are already taken

Error failed(const char* what, const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot {} {:.140}: {}", what, path, std::strerror(errno));
}

/// A name that fits wherever OUT's own does; empty when the system has no random numbers.
std::string temporary_name() {
  std::uint64_t random = 0;
  if (getentropy(&random, sizeof random) != 0) return {};
  char name[32];
  std::snprintf(name, sizeof name, ".qsf-%016llx.tmp", static_cast<unsigned long long>(random));
  return name;
}

}  // namespace

OutputFile::OutputFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return make_error(ErrorCode::io_error, "cannot write {:.140}: it is not a regular file", path);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (int i = 0; i < kTries; ++i) {
    const std::string name = temporary_name();
    if (name.empty()) break;
    const std::string temporary = (folder / name).string();
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) return OutputFile(path, temporary, fd);
    if (errno != EEXIST) break;
  }
  return failed("write", path);
}

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", path_);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::flush() { return fsync(fd_) == 0 ? Status() : failed("write", path_); }

Status OutputFile::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("write", path_);
  close(std::exchange(fd_, -1));
  return {};
}

}  // namespace qsf::convert
