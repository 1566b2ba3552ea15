#include "base/arena.h"

namespace qsf {

Arena::Arena(std::span<std::byte> memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint64_t skip = align_up(address) - address;
  if (skip > memory.size()) return;
  base_ = memory.data() + skip;
  size_ = memory.size() - skip;
}

Result<std::byte*> Arena::take_bytes(std::uint64_t count, std::uint64_t each, const char* name) {
  const std::uint64_t free = size_ - used_;
  if (count > free / each || align_up(count * each) > free) {
    return make_error(ErrorCode::out_of_memory, "the arena has {} bytes free, not the {} x {} that '{}' needs", free,
                      count, each, name);
  }
  const std::uint64_t bytes = align_up(count * each);
  std::byte* at = base_ + used_;
  used_ += bytes;
  std::memset(at, 0, static_cast<std::size_t>(bytes));

  for (std::size_t i = 0; i < n_regions_; ++i) {
    if (std::strcmp(regions_[i].name, name) == 0) {
      regions_[i].size += bytes;
      return at;
    }
  }
  if (n_regions_ < regions_.size()) regions_[n_regions_++] = {name, bytes};
  return at;
}

}  // namespace qsf
