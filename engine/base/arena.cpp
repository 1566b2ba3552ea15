#include "base/arena.h"

#include <cstring>
#include <limits>

namespace qsf {

Arena::Arena(std::span<std::byte> memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint64_t skip = align_up(address) - address;
  if (skip > memory.size()) return;
  base_ = memory.data() + skip;
  size_ = memory.size() - skip;
}

Arena Arena::dry(const Arena& other) {
  Arena arena = other;
  arena.base_ = nullptr;
  arena.dry_ = true;
  arena.size_ = std::numeric_limits<std::uint64_t>::max() / 2;
  return arena;
}

Result<std::byte*> Arena::take_bytes(std::uint64_t count, std::uint64_t each, Region region) {
  const std::uint64_t free = size_ - used_;
  if (count > (free - free % kAlignment) / each) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 2;
    refused_ = count > most / each ? most : used_ + align_up(count * each);
    return make_error(ErrorCode::out_of_memory, "the arena has {} bytes free, not the {} x {} that '{}' needs", free,
                      count, each, region_name(region));
  }
  const std::uint64_t bytes = align_up(count * each);
  std::byte* const at = dry_ ? nullptr : base_ + used_;
  used_ += bytes;
  regions_[static_cast<std::size_t>(region)] += bytes;
  if (!dry_) std::memset(at, 0, static_cast<std::size_t>(bytes));
  return at;
}

}  // namespace qsf
