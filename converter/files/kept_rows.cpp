#include "converter/files/kept_rows.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf::convert {

Result<KeptRows> KeptRows::create(std::string path, std::size_t width) {
  KeptRows out(std::move(path), width);
  out.to_ = sys::create_file(out.path_);
  if (out.to_ < 0) {
    const bool there = errno == EEXIST;
    return make_error(there ? ErrorCode::bad_argument : ErrorCode::io_error, "cannot make {:.140} for a while: {}",
                      out.path_, std::strerror(errno));
  }
  out.made_.emplace(out.path_);
  out.from_ = sys::open_file(out.path_);
  if (out.from_ < 0) {
    return make_error(ErrorCode::io_error, "cannot read {:.140}: {}", out.path_, std::strerror(errno));
  }
  return out;
}

KeptRows::KeptRows(KeptRows&& other) noexcept
    : path_(std::move(other.path_)),
      made_(std::move(other.made_)),
      width_(other.width_),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)) {}

KeptRows::~KeptRows() {
  if (from_ >= 0) sys::close_file(from_);
  if (to_ >= 0) sys::close_file(to_);
}

Status KeptRows::add(std::span<const float> rows) {
  for (std::span<const std::byte> left = std::as_bytes(rows); !left.empty();) {
    const std::ptrdiff_t n = sys::write_some(to_, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::io_error, "cannot write {:.140}: {}", path_, std::strerror(errno));
    left = left.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status KeptRows::read(std::uint64_t row, std::span<float> out) const {
  std::uint64_t at = row * width_ * sizeof(float);
  for (std::span<std::byte> left = std::as_writable_bytes(out.first(width_)); !left.empty();) {
    const std::ptrdiff_t n = sys::read_at(from_, at, left);
    if (n < 0) return make_error(ErrorCode::io_error, "cannot read {:.140}: {}", path_, std::strerror(errno));
    if (n == 0) return make_error(ErrorCode::truncated, "{:.140} has no row {}", path_, row);
    left = left.subspan(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace qsf::convert
