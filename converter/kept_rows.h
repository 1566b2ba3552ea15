// Rows of floats in a file that is gone when they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "qsf/base/result.h"

namespace qsf::convert {

class KeptRows {
 public:
  /// bad_argument where there is something at `path`, io_error where nothing can be made there.
  static Result<KeptRows> create(std::string path, std::size_t width);
  KeptRows(KeptRows&& other) noexcept;
  KeptRows& operator=(KeptRows&&) = delete;
  ~KeptRows();

  /// Rows behind those that are there. io_error.
  Status add(std::span<const float> rows);
  /// One of them, [width]. io_error, truncated.
  Status read(std::uint64_t row, std::span<float> out) const;

 private:
  KeptRows(std::string path, std::size_t width) : path_(std::move(path)), width_(width) {}

  std::string path_;
  std::size_t width_;
  int to_ = -1, from_ = -1;
};

}  // namespace qsf::convert
