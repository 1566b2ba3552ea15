#include "converter/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace qsf::convert {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return make_error(ErrorCode::io_error, "cannot open {}: {}", path, std::strerror(errno));
  struct stat info{};
  MappedFile file;
  Status status;
  if (fstat(fd, &info) != 0) {
    status = make_error(ErrorCode::io_error, "cannot read {}: {}", path, std::strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = make_error(ErrorCode::io_error, "{} is not a regular file", path);
  } else if (info.st_size > 0) {
    const auto size = static_cast<std::size_t>(info.st_size);
    void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
      status = make_error(ErrorCode::io_error, "cannot map {}: {}", path, std::strerror(errno));
    } else {
      file.bytes_ = {static_cast<const std::byte*>(at), size};
    }
  }
  close(fd);
  if (!status) return status.error();
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace qsf::convert
