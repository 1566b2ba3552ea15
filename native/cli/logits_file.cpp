#include "native/cli/logits_file.h"

#include <cerrno>
#include <cstring>

#include "native/cli/scores.h"
#include "qsf/base/bytes.h"
#include "qsf/base/finite.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf::run {
namespace {

constexpr std::array<char, 8> kMagic{'Q', 'S', 'F', 'L', 'O', 'G', 'I', 'T'};
constexpr std::uint32_t kVersion = 1;

Status read_all(int file, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  while (!out.empty()) {
    const std::ptrdiff_t n = sys::read_at(file, offset, out);
    if (n < 0) return make_error(ErrorCode::io_error, "cannot read {}: {}", path, std::strerror(errno));
    if (n == 0) return make_error(ErrorCode::truncated, "{} ends in the middle of a row of logits", path);
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

std::array<std::byte, kLogitsHeaderBytes> logits_header(const LogitsShape& shape) {
  std::array<std::byte, kLogitsHeaderBytes> out{};
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  std::byte* at = out.data() + kMagic.size();
  for (const std::uint32_t field : {kVersion, shape.window, shape.vocab_size, shape.windows, shape.ids_crc}) {
    store_le(at, field);
    at += sizeof field;
  }
  return out;
}

bool is_logits_file(std::span<const std::byte> front) {
  return front.size() >= kMagic.size() && std::memcmp(front.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<LogitsReader> LogitsReader::open_rows(const std::string& path, std::uint32_t vocab_size) {
  LogitsReader reader(path, sys::open_file(path));
  sys::FileInfo info;
  if (reader.file_ < 0 || !sys::look(reader.file_, info)) {
    return make_error(ErrorCode::io_error, "cannot read {}: {}", path, std::strerror(errno));
  }
  if (info.kind != sys::FileKind::regular)
    return make_error(ErrorCode::bad_input, "{} is no file with rows of logits", path);
  reader.shape_.vocab_size = vocab_size;
  QSF_TRY(reader.find_rows(0, info.size));
  return reader;
}

Result<LogitsReader> LogitsReader::open(const std::string& path) {
  LogitsReader reader(path, sys::open_file(path));
  sys::FileInfo info;
  if (reader.file_ < 0 || !sys::look(reader.file_, info)) {
    return make_error(ErrorCode::io_error, "cannot read {}: {}", path, std::strerror(errno));
  }
  const std::uint64_t size = info.size;
  std::array<std::byte, kLogitsHeaderBytes> header{};
  if (info.kind != sys::FileKind::regular || size < header.size()) {
    return make_error(ErrorCode::bad_input, "{} has no logits saved by --save-logits", path);
  }
  QSF_TRY(read_all(reader.file_, 0, header, path));
  if (!is_logits_file(header)) {
    return make_error(ErrorCode::bad_input, "{} has no logits saved by --save-logits", path);
  }
  const auto field = [&](std::size_t i) {
    return load_le<std::uint32_t>(header.data() + kMagic.size() + i * sizeof(std::uint32_t));
  };
  if (field(0) != kVersion) {
    return make_error(ErrorCode::bad_input, "{} has saved logits of version {}; this program reads {}", path, field(0),
                      kVersion);
  }
  LogitsShape& shape = reader.shape_;
  shape = {.window = field(1), .vocab_size = field(2), .windows = field(3), .ids_crc = field(4)};
  if (shape.window < kLeastWindow || shape.vocab_size == 0 || shape.windows == 0) {
    return make_error(ErrorCode::bad_input, "{} states {} windows of {} tokens and a vocabulary of {}", path,
                      shape.windows, shape.window, shape.vocab_size);
  }
  QSF_TRY(reader.find_rows(header.size(), size - header.size()));
  const std::uint64_t stated = std::uint64_t{shape.windows} * n_counted(shape.window);
  if (reader.rows_ != stated) {
    return make_error(ErrorCode::bad_input, "{} has {} rows of logits; {} windows of {} tokens have {}", path,
                      reader.rows_, shape.windows, shape.window, stated);
  }
  return reader;
}

Status LogitsReader::find_rows(std::uint64_t begin, std::uint64_t size) {
  const std::uint64_t row = std::uint64_t{shape_.vocab_size} * sizeof(float);
  if (row == 0 || size == 0 || size % row != 0) {
    return make_error(ErrorCode::bad_input, "{} has {} bytes of logits, which are no rows of a vocabulary of {}", path_,
                      size, shape_.vocab_size);
  }
  begin_ = begin;
  rows_ = size / row;
  return {};
}

LogitsReader::~LogitsReader() {
  if (file_ >= 0) sys::close_file(file_);
}

Status LogitsReader::read(std::uint64_t row, std::span<float> out) const {
  QSF_TRY(read_all(file_, begin_ + row * out.size_bytes(), std::as_writable_bytes(out), path_));
  if (all_finite(out)) return {};
  return make_error(ErrorCode::bad_input, "{} has a logit that is no finite number in row {}", path_, row);
}

}  // namespace qsf::run
