// Any bytes as a QSF file: what opens must open again the same, and nothing may crash.
#pragma once

#include <cstdlib>

#include "tests/file/open_file.h"
#include "tests/file/repair.h"

namespace qsf::test {

inline void fuzz_file(std::span<const std::byte> bytes) {
  const Result<OpenFile> as_it_is = open_file(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  if (repaired.size() >= kHeaderSize) {
    store_le(repaired.data() + 92, static_cast<std::uint32_t>(repaired.size()));
    repair(repaired, Inside::weights);
  }
  const Result<OpenFile> opened = open_file(repaired);
  if (!as_it_is && as_it_is.error().sentence[0] == 0) std::abort();
  if (!opened && (opened.error().sentence[0] == 0 || opened.error().code == ErrorCode::internal)) std::abort();
  if (as_it_is && (!opened || opened->raw != as_it_is->raw)) std::abort();
}

}  // namespace qsf::test
