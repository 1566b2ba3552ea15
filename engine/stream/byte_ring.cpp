#include "stream/byte_ring.h"

#include <algorithm>

#include "qsf/base/try.h"

namespace qsf {

Status ByteRing::init(Arena& arena, std::uint64_t bytes, std::uint32_t places) {
  bytes_ = bytes;
  return arena.take(ranges_, places, Region::tables);
}

std::optional<std::uint32_t> ByteRing::take(std::uint64_t bytes) {
  const auto place = std::ranges::find_if(ranges_, [](const Range& r) { return r.begin == r.end; });
  if (place == ranges_.end() || bytes > bytes_) return std::nullopt;
  bool is_round = false;
  for (std::uint64_t at = next_;;) {
    if (at > bytes_ - bytes) {
      if (is_round) return std::nullopt;
      is_round = true;
      at = 0;
    }
    const auto in_way =
        std::ranges::find_if(ranges_, [&](const Range& r) { return r.begin < at + bytes && at < r.end; });
    if (in_way == ranges_.end()) {
      *place = {at, next_ = at + bytes};
      return static_cast<std::uint32_t>(place - ranges_.begin());
    }
    at = in_way->end;
  }
}

}  // namespace qsf
