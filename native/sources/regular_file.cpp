#include "native/sources/regular_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "qsf/base/align.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf {
namespace {

/// Returns the name of another kind of file; empty for a regular file.
std::string_view other_than_file(sys::FileKind kind) {
  constexpr std::array<std::string_view, 5> kNames{"", "a folder", "a pipe", "a socket", "a device"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace

Error system_error(const char* doing, const char* what) {
  return make_error(errno == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::io_error, "{} {}: {}", doing, what,
                    std::strerror(errno));
}

Error ended(std::uint64_t at) {
  return make_error(ErrorCode::truncated, "the file now ends before byte {}: it was cut while it was read", at);
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) sys::close_file(fd_);
}

Result<OpenFile> open_regular(const std::string& where, std::uint64_t& size) {
  // The kind is checked before opening, because opening a device may have effects.
  sys::FileInfo info;
  if (!sys::look(where, info)) return system_error("cannot open", where.c_str());
  OpenFile file(info.kind == sys::FileKind::regular ? sys::open_file(where) : -1);
  if (info.kind == sys::FileKind::regular && (file.fd() < 0 || !sys::look(file.fd(), info))) {
    return system_error("cannot open", where.c_str());
  }
  const std::string_view other = other_than_file(info.kind);
  size = info.size;
  if (other.empty() && size != 0) return file;
  if (other.empty()) return make_error(ErrorCode::truncated, "{} is empty", where);
  return make_error(ErrorCode::io_error, "cannot open {}: it is {}, not a regular file", where, other);
}

Result<std::size_t> read_some(int fd, std::uint64_t at, std::span<std::byte> into) {
  const std::ptrdiff_t n = sys::read_at(fd, at, into);
  if (n < 0) return system_error("cannot read", "the model file");
  if (n == 0) return ended(at + into.size());
  return static_cast<std::size_t>(n);
}

Status read_all(int fd, std::uint64_t at, std::span<std::byte> into) {
  while (!into.empty()) {
    QSF_LET(n, read_some(fd, at, into));
    at += n;
    into = into.subspan(n);
  }
  return {};
}

std::span<std::byte> whole_blocks(const ReadRequest& request, std::uint32_t block) {
  const auto address = reinterpret_cast<std::uintptr_t>(request.into);
  if (!request.blocks || (request.offset - address) % block != 0) return {};
  const std::size_t before = address % block;
  return {request.into - before, align_up(before + request.size, block)};
}

}  // namespace qsf
