// Rows of floats in a temporary file, which is removed with the object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "qsf/base/result.h"
#include "system/unfinished.h"

namespace qsf::convert {

class KeptRows {
 public:
  /// Creates the file. Returns bad_argument if `path` exists, io_error if no file can be created there.
  static Result<KeptRows> create(std::string path, std::size_t width);
  KeptRows(KeptRows&& other) noexcept;
  KeptRows& operator=(KeptRows&&) = delete;
  ~KeptRows();

  /// Appends rows. Returns io_error if they cannot be written.
  Status add(std::span<const float> rows);
  /// Reads one row, [width]. Returns io_error or truncated.
  Status read(std::uint64_t row, std::span<float> out) const;

 private:
  KeptRows(std::string path, std::size_t width) : path_(std::move(path)), width_(width) {}

  std::string path_;
  std::optional<sys::Unfinished> made_;
  std::size_t width_;
  int to_ = -1, from_ = -1;
};

}  // namespace qsf::convert
