#include "system/new_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "system/file.h"

namespace qsf::sys {
namespace {

constexpr int kTries = 16;  // names that are taken already

/// Returns a name that fits in any folder with the final name; empty if the system has no random numbers.
std::string temporary_name() {
  std::uint64_t random = 0;
  if (!random_bytes(std::as_writable_bytes(std::span(&random, 1)))) return {};
  char name[32];
  std::snprintf(name, sizeof name, ".qsf-%016llx.tmp", static_cast<unsigned long long>(random));
  return name;
}

}  // namespace

NewFile NewFile::create(const std::string& path) {
  FileInfo info;
  const bool exists = look(path, info);
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
