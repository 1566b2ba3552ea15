// Ranges of a file's bytes, and a check that no two tables of a hostile file claim the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::convert {

/// The bytes [begin, end) of a file, and the name of the entry that they belong to.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
  std::string_view name;
};

/// Sorts the ranges by their begin. Returns bad_input, with the name of `file` and of both entries, if two overlap.
Status check_no_overlap(std::span<ByteRange> ranges, std::string_view file);

}  // namespace qsf::convert
