#include "native/run/output.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "native/cli/exit_status.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::chrono::milliseconds kUntilRead{20};  // between looks for the reader of a named pipe

const std::string kStandardOutput = "standard output";

bool unread = false;  // whether standard output failed because nobody reads it

Error cannot_write(const std::string& path) {
  const Error error = make_error(ErrorCode::io_error, "cannot write {}: {}", path, std::strerror(errno));
  if (path == kStandardOutput) unread = sys::nobody_reads(sys::kOutput);
  return error;
}

/// Returns bad_argument if the output is a regular file that is also read.
Status check_inputs(const sys::FileInfo& output, const std::string& name, std::span<const std::string> inputs) {
  sys::FileInfo other;
  for (const std::string& input : inputs) {
    if (output.kind == sys::FileKind::regular && sys::look(input, other) && output.is(other)) {
      return make_error(ErrorCode::bad_argument, "cannot write {}: it is {}, which is read", name, input);
    }
  }
  return {};
}

/// Writes all bytes; write(bytes) writes some of them, as write(2) does.
template <class Write>
Status write_all(std::span<const std::byte> bytes, const std::string& name, Write write) {
  while (!bytes.empty()) {
    const std::ptrdiff_t n = write(bytes);
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
  return write_all(bytes, name, [file](std::span<const std::byte> left) { return sys::write_some(file, left); });
}

}  // namespace

Status check_output(std::span<const std::string> inputs) {
  sys::FileInfo output;
  if (!sys::look(sys::kOutput, output)) return {};
  return check_inputs(output, kStandardOutput, inputs);
}

Status show(std::string_view text) {
  static const bool terminal = sys::is_terminal(sys::kOutput);
  const std::string shown = terminal ? printable(text, true) : std::string(text);
  return write_all(sys::kOutput, std::as_bytes(std::span(shown)), kStandardOutput);
}

Status finish_output() {
  const bool good = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return good ? Status() : cannot_write(kStandardOutput);
}

int fail(const Error& error) {
  if (unread) return kUnread;
  tell(error);
  return error.code == ErrorCode::cancelled ? exit_code_of(caught_signal()) : 1;
}

Result<OutputFile> OutputFile::create(const std::string& path, std::span<const std::string> inputs) {
  sys::FileInfo target, other;
  const bool exists = sys::look(path, target);
  if (exists && target.kind == sys::FileKind::folder) {
    errno = EISDIR;
    return cannot_write(path);
  }
  if (exists && target.kind != sys::FileKind::regular) {
    int file = sys::open_output(path);
    while (file < 0 && errno == ENXIO && target.kind == sys::FileKind::pipe) {
      if (cancelled()) return make_error(ErrorCode::cancelled, "stopped while nobody reads {}", path);
      std::this_thread::sleep_for(kUntilRead);
      file = sys::open_output(path);
    }
    if (file < 0) return cannot_write(path);
    return OutputFile(path, file);
  }
  if (exists) QSF_TRY(check_inputs(target, path, inputs));
  if (exists && sys::look(sys::kOutput, other) && other.kind == target.kind && target.is(other)) {
    return make_error(ErrorCode::bad_argument, "cannot write {}: standard output goes there", path);
  }
  if (exists && !sys::is_writable(path)) return cannot_write(path);
  sys::NewFile file = sys::NewFile::create(path);
  if (!file) return cannot_write(path);
  return OutputFile(std::move(file));
}

OutputFile::~OutputFile() {
  if (device_ >= 0) sys::close_file(device_);
}

Status OutputFile::write(std::span<const std::byte> bytes) { return write_all(file(), bytes, path_); }

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::byte* begin = bytes.data();
  return write_all(bytes, path_, [&](std::span<const std::byte> left) {
    return sys::write_at(file(), offset + static_cast<std::uint64_t>(left.data() - begin), left);
  });
}

Status OutputFile::commit() {
  const bool good = new_file_ ? new_file_.commit() : sys::close_file(std::exchange(device_, -1));
  return good ? Status() : cannot_write(path_);
}

}  // namespace qsf::run
