// One block of memory that is divided into ranges of different sizes, taken in turn for segments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "qsf/base/result.h"

namespace qsf {

/// Ranges of [0, bytes). Each begins at the end of the previous one, round and round, so that ranges given back in the
/// order in which they were taken leave no gaps. If there is no room there, a range begins in the next gap that is wide
/// enough.
class ByteRing {
 public:
  /// `places` is the most ranges at one time. Fails with out_of_memory.
  Status init(Arena& arena, std::uint64_t bytes, std::uint32_t places);

  /// Takes a range of `bytes` > 0 and returns its index, or none if no gap is as wide or `places` ranges are taken.
  std::optional<std::uint32_t> take(std::uint64_t bytes);
  void give_back(std::uint32_t place) { ranges_[place] = {}; }
  /// Returns the start of a range that is taken.
  std::uint64_t begin(std::uint32_t place) const { return ranges_[place].begin; }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;  // equal if free
  };

  std::span<Range> ranges_;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_ = 0;  // end of the range taken last
};

}  // namespace qsf
