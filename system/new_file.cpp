#include "system/new_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "system/file.h"
#include "system/temporary.h"

namespace qsf::sys {
namespace {

constexpr int kTries = 16;  // names that are taken already

}  // namespace

NewFile NewFile::create(const std::string& path) {
  FileInfo info;
  const bool exists = look(path, info);
  std::error_code error;
  if (!exists && std::filesystem::is_symlink(path_of(path), error)) {
    errno = ENOENT;
    return {};
  }
  std::string at = exists ? resolved(path) : path;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = temporary_name();
    if (name.empty()) break;
    std::string temporary = folder_of(at) + name;
    const int file = create_file(temporary);
    if (file >= 0) {
      if (exists) copy_mode(file, info);
      return {std::move(at), std::move(temporary), file};
    }
    if (errno != EEXIST) break;
  }
  return {};
}

NewFile::~NewFile() {
  if (file_ >= 0) close_file(file_);
}

bool NewFile::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::ptrdiff_t n = write_some(file_, bytes);
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
  }
  return true;
}

bool NewFile::commit() {
  if (!close_file(std::exchange(file_, -1)) || !replace_file(temporary_.path(), path_)) return false;
  temporary_.keep();
  return true;
}

}  // namespace qsf::sys
