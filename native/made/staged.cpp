#include "native/made/staged.h"

#include <algorithm>
#include <mutex>

namespace qsf {

void Staged::offer(std::size_t key, std::span<const StagedRun> runs) {
  const std::unique_lock lock(mutex_);
  all_[key] = runs;
}

void Staged::remove(std::size_t key) {
  const std::unique_lock lock(mutex_);
  all_[key] = {};
}

bool Staged::find(std::uint32_t input, std::uint64_t offset, std::span<std::byte> into) const {
  const std::shared_lock lock(mutex_);
  for (const std::span<const StagedRun> runs : all_) {
    for (const StagedRun& run : runs) {
      if (run.input != input || offset < run.offset) continue;
      const std::uint64_t skip = offset - run.offset;
      if (skip > run.bytes.size() || into.size() > run.bytes.size() - skip) continue;
      std::ranges::copy(run.bytes.subspan(skip, into.size()), into.begin());
      return true;
    }
  }
  return false;
}

}  // namespace qsf
