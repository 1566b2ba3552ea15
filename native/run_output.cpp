#include "native/run_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/run_signal.h"
#include "native/run_terminal.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr int kAttempts = 100;  // names of temporaries that others may have taken

Error cannot_write(const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot write {}: {}", path, std::strerror(errno));
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// That a regular file that is written is none of those that are read.
Status check_inputs(const struct stat& output, const std::string& name, std::span<const std::string> inputs) {
  struct stat other{};
  for (const std::string& input : inputs) {
    if (S_ISREG(output.st_mode) && ::stat(input.c_str(), &other) == 0 && same_file(output, other)) {
      return make_error(ErrorCode::bad_argument, "cannot write {}: it is {}, which is read", name, input);
    }
  }
  return {};
}

/// write(bytes) writes some of the bytes, as write(2) does.
template <class Write>
Status write_all(std::span<const std::byte> bytes, const std::string& name, Write write) {
  while (!bytes.empty()) {
    const ssize_t n = write(bytes);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return cannot_write(name);
    } else if (cancelled()) {
      return make_error(ErrorCode::cancelled, "stopped while writing {}", name);
    }
  }
  return {};
}

Status write_all(int file, std::span<const std::byte> bytes, const std::string& name) {
  return write_all(bytes, name,
                   [file](std::span<const std::byte> left) { return ::write(file, left.data(), left.size()); });
}

std::string absolute(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  const std::string out = real == nullptr ? path : real;
  std::free(real);
  return out;
}

/// A new file in the folder of `path`: its name, and its number or -1.
std::pair<std::string, int> create_beside(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (int i = 0; i < kAttempts; ++i) {
    std::string name = folder + ".qsf-run-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return {std::move(name), file};
  }
  return {"", -1};
}

}  // namespace

void hold_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened for the wrong direction, so that using it fails; what cannot be told anywhere goes nowhere.
    (void)::open("/dev/null", file == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

Status check_output(std::span<const std::string> inputs) {
  struct stat output{};
  if (::fstat(STDOUT_FILENO, &output) != 0) return {};
  return check_inputs(output, "standard output", inputs);
}

Status show(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const std::string shown = terminal ? printable(text, true) : std::string(text);
  return write_all(STDOUT_FILENO, std::as_bytes(std::span(shown)), "standard output");
}

Status finish_output() {
  const bool good = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return good ? Status() : cannot_write("standard output");
}

Result<OutputFile> OutputFile::create(const std::string& path, std::span<const std::string> inputs) {
  struct stat target{}, other{};
  const bool exists = ::stat(path.c_str(), &target) == 0;
  if (exists && S_ISDIR(target.st_mode)) {
    errno = EISDIR;
    return cannot_write(path);
  }
  if (exists && !S_ISREG(target.st_mode)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) return cannot_write(path);
    return OutputFile(path, "", file);
  }
  if (exists) QSF_TRY(check_inputs(target, path, inputs));
  if (exists && ::fstat(STDOUT_FILENO, &other) == 0 && same_file(target, other)) {
    return make_error(ErrorCode::bad_argument, "cannot write {}: standard output goes there", path);
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) return cannot_write(path);
  const std::string at = exists ? absolute(path) : path;
  const auto [temporary, file] = create_beside(at);
  if (file < 0) return cannot_write(path);
  if (exists) (void)::fchmod(file, target.st_mode & 0777);  // a file system without modes has nothing to keep
  return OutputFile(at, temporary, file);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) { return write_all(file_, bytes, path_); }

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::byte* begin = bytes.data();
  return write_all(bytes, path_, [&](std::span<const std::byte> left) {
    return ::pwrite(file_, left.data(), left.size(),
                    static_cast<off_t>(offset + static_cast<std::uint64_t>(left.data() - begin)));
  });
}

Status OutputFile::commit() {
  if (::close(std::exchange(file_, -1)) != 0) return cannot_write(path_);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_);
  temporary_.clear();
  return {};
}

}  // namespace qsf::run
