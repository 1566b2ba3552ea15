// Checks of what the converter's readers return for any bytes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"
#include "qsf/formats/format.h"

namespace qsf::test {

using FuzzBytes = std::span<const std::byte>;

inline bool good(const Error& error) {
  if (error.sentence[0] == 0 || error.code == ErrorCode::internal) std::abort();
  return false;
}
template <class T>
bool good(const Result<T>& read) {
  return read ? true : good(read.error());
}

/// Rows of tensors that are there, read to the end, up to a few KiB each.
inline bool read_rows(std::span<const convert::LoadedTensor> tensors) {
  constexpr std::uint64_t kMost = 4096;
  for (const convert::LoadedTensor& tensor : tensors) {
    const auto shape = convert::matrix_shape(tensor.shape);
    const Format* format = find_format(tensor.format);
    if (!shape || !format || !tensor.rows_of) continue;
    const std::uint64_t size = row_bytes(*format, (*shape)[1]);
    if (size == 0 || size > kMost) continue;
    std::vector<std::byte> row(size);
    const Status last = tensor.rows_of((*shape)[0] - 1, 1, row);
    if (!last) good(last.error());                           // whole numbers that no float is
    static_cast<void>(tensor.rows_of(0, (*shape)[0], row));  // the wrong size: an error unless there is one row
  }
  return true;
}

}  // namespace qsf::test
