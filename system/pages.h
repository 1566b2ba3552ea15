// Pages in a range of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

/// Returns the pages of `page` bytes that are wholly in `memory`.
inline std::span<std::byte> whole_pages(std::span<std::byte> memory, std::size_t page) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (page - begin % page) % page;
  if (memory.size() < before) return {};
  return memory.subspan(before, (memory.size() - before) / page * page);
}

}  // namespace qsf
