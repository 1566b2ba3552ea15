// Alignments of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsf {

inline constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector register
inline constexpr std::size_t kBlock = 4096;    // a page; reads past the page cache use multiples of it

constexpr std::uint64_t align_up(std::uint64_t n, std::uint64_t to = kAlignment) { return (n + to - 1) / to * to; }

}  // namespace qsf
