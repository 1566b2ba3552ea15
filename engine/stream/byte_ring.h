// Room for segments of different sizes in one piece of memory, given out in turn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "qsf/base/result.h"

namespace qsf {

/// Places are ranges of [0, bytes). Each begins where the one before it ended, round and round, so that what is given
/// back in the order in which it was taken leaves no gaps; else where the next gap is wide enough.
class ByteRing {
 public:
  /// `places`: that there may be at once.
  Status init(Arena& arena, std::uint64_t bytes, std::uint32_t places);

  /// A place of so many bytes, which must not be none; none where no gap is as wide, or all places are taken.
  std::optional<std::uint32_t> take(std::uint64_t bytes);
  void give_back(std::uint32_t place) { ranges_[place] = {}; }
  /// Where a place that is taken begins.
  std::uint64_t begin(std::uint32_t place) const { return ranges_[place].begin; }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;  // free where they are the same
  };

  std::span<Range> ranges_;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_ = 0;  // where what was taken last ends
};

}  // namespace qsf
