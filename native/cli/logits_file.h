// Files of saved logits to compare with; docs/reference/cli.md describes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "qsf/base/result.h"

namespace qsf::run {

/// The shape of the rows in a file: [windows][n_counted(window)][vocab_size] float32.
struct LogitsShape {
  std::uint32_t window = 0;  // tokens; 0 for rows without windows
  std::uint32_t vocab_size = 0;
  std::uint32_t windows = 0;
  std::uint32_t ids_crc = 0;  // CRC-32 of the windows' token ids, little-endian, as they were fed
};

inline constexpr std::size_t kLogitsHeaderBytes = 32;
std::array<std::byte, kLogitsHeaderBytes> logits_header(const LogitsShape& shape);

/// Whether these first bytes of a file are those of saved logits.
bool is_logits_file(std::span<const std::byte> front);

/// Reads rows of logits, one at a time.
class LogitsReader {
 public:
  /// Errors: io_error, bad_input, truncated.
  static Result<LogitsReader> open(const std::string& path);
  /// Opens rows without a header, as qsf-run --logits writes them.
  static Result<LogitsReader> open_rows(const std::string& path, std::uint32_t vocab_size);
  LogitsReader(LogitsReader&& other) noexcept
      : path_(std::move(other.path_)),
        file_(std::exchange(other.file_, -1)),
        shape_(other.shape_),
        begin_(other.begin_),
        rows_(other.rows_) {}
  LogitsReader& operator=(LogitsReader&&) = delete;
  ~LogitsReader();

  const LogitsShape& shape() const { return shape_; }
  std::uint64_t rows() const { return rows_; }
  /// Reads the logits of a row, [vocab_size]. Errors: io_error, truncated, bad_input for a logit that is not finite.
  Status read(std::uint64_t row, std::span<float> out) const;

 private:
  LogitsReader(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status find_rows(std::uint64_t begin, std::uint64_t size);

  std::string path_;
  int file_;
  LogitsShape shape_;
  std::uint64_t begin_ = 0, rows_ = 0;
};

}  // namespace qsf::run
