#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "system/file.h"

namespace qsf::sys {
namespace {

FileInfo info_of(const struct stat& status) {
  FileInfo info;
  info.kind = S_ISREG(status.st_mode)    ? FileKind::regular
              : S_ISDIR(status.st_mode)  ? FileKind::folder
              : S_ISFIFO(status.st_mode) ? FileKind::pipe
              : S_ISSOCK(status.st_mode) ? FileKind::socket
                                         : FileKind::device;
  info.size = static_cast<std::uint64_t>(status.st_size);
  info.volume = static_cast<std::uint64_t>(status.st_dev);
  info.number = static_cast<std::uint64_t>(status.st_ino);
  info.mode = static_cast<std::uint32_t>(status.st_mode) & 0777;
#ifdef __APPLE__
  const timespec& modified = status.st_mtimespec;
#else
  const timespec& modified = status.st_mtim;
#endif
  info.modified = std::int64_t{modified.tv_sec} * 1'000'000'000 + modified.tv_nsec;
  return info;
}

/// Makes reads and writes wait again that O_NONBLOCK would fail.
void wait_in_calls(int file) {
  const int flags = ::fcntl(file, F_GETFL);
  if (flags >= 0) (void)::fcntl(file, F_SETFL, flags & ~O_NONBLOCK);
}

}  // namespace

bool look(const std::string& path, FileInfo& out) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  out = info_of(status);
  return true;
}

bool look(int file, FileInfo& out) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return false;
  out = info_of(status);
  return true;
}

std::optional<std::uint64_t> place_in(int file) {
  FileInfo info;
  const off_t place = look(file, info) && info.kind == FileKind::regular ? ::lseek(file, 0, SEEK_CUR) : -1;
  return place < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(place));
}

int open_file(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }
int open_input(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  FileInfo info;
  if (file >= 0 && !(look(file, info) && info.kind == FileKind::pipe)) wait_in_calls(file);
  return file;
}
int open_output(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file >= 0) wait_in_calls(file);
  return file;
}
int create_file(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}
bool close_file(int file) { return ::close(file) == 0; }

std::ptrdiff_t read_at(int file, std::uint64_t at, std::span<std::byte> into) {
  ssize_t n;
  do {
    n = ::pread(file, into.data(), into.size(), static_cast<off_t>(at));
  } while (n < 0 && errno == EINTR);
  return n;
}

std::ptrdiff_t write_at(int file, std::uint64_t at, std::span<const std::byte> bytes) {
  return ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
}

std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes) {
  return ::write(file, bytes.data(), bytes.size());
}

bool flush_file(int file) { return ::fsync(file) == 0; }

bool replace_file(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()) == 0; }
bool remove_file(const std::string& path) { return ::unlink(path.c_str()) == 0; }
bool is_writable(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }
void copy_mode(int file, const FileInfo& from) { (void)::fchmod(file, static_cast<mode_t>(from.mode)); }

bool is_single_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == text.npos;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  const std::string out = real == nullptr ? path : real;
  std::free(real);
  return out;
}

std::filesystem::path path_of(std::string_view text) { return text; }
std::string text_of(const std::filesystem::path& path) { return path.string(); }

bool random_bytes(std::span<std::byte> out) { return ::getentropy(out.data(), out.size()) == 0; }
std::uint32_t process_number() { return static_cast<std::uint32_t>(::getpid()); }

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string cache_folder() {
  std::string cache = environment("XDG_CACHE_HOME");
  const std::string home = environment("HOME");
  if (cache.starts_with('/')) return cache;
  return home.starts_with('/') ? home + "/.cache" : "";
}

}  // namespace qsf::sys
