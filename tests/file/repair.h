// Recomputes the checksums of a changed file, from the inside outwards, so that tests and the fuzzer get past them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/base/checksum.h"
#include "qsf/file/layout.h"

namespace qsf::test {

/// How far inside a change lies: everything around it is repaired, itself it stays as it is.
enum class Inside { header, tables, sections, weights };

namespace repair_detail {

inline std::uint64_t get(std::span<const std::byte> file, std::uint64_t at, std::uint32_t size) {
  std::uint64_t value = 0;
  if (at <= file.size() && size <= file.size() - at) std::memcpy(&value, file.data() + at, size);
  return value;
}
inline void put(std::span<std::byte> file, std::uint64_t at, std::uint32_t value) {
  if (at <= file.size() && sizeof value <= file.size() - at) store_le(file.data() + at, value);
}
/// What can be had of [at, at + size).
inline std::span<const std::byte> piece(std::span<const std::byte> file, std::uint64_t at, std::uint64_t size) {
  if (at > file.size()) return {};
  return file.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(size, file.size() - at)));
}

}  // namespace repair_detail

/// Byte offsets here are docs/reference/format.md's, written out again so that they are checked against the reader's.
/// Fields that lead nowhere are left alone.
inline void repair(std::span<std::byte> file, Inside inside) {
  using repair_detail::get, repair_detail::put, repair_detail::piece;
  const std::uint64_t directory = get(file, 100, 8);
  const std::uint64_t n_sections = std::min<std::uint64_t>(get(file, 108, 4), 64);
  const std::uint64_t index = get(file, 56, 8);
  const std::uint64_t n_layers = std::min<std::uint64_t>(get(file, 16, 4), 1024);
  if (inside >= Inside::weights) {
    std::vector<std::uint32_t> layer_crcs(n_layers);
    for (std::uint64_t i = 0; i < n_sections; ++i) {
      const std::uint64_t entry = directory + 24 * i;
      if (get(file, entry, 4) != tag("SEGS")) continue;
      const std::uint64_t segments = get(file, entry + 8, 8);
      for (std::uint64_t at = 0; at + 32 <= get(file, entry + 16, 4) && segments + at < file.size(); at += 32) {
        const std::uint64_t size = get(file, segments + at + 8, 4);
        const std::uint32_t crc = crc32(piece(file, get(file, segments + at, 8), size));
        put(file, segments + at + 20, crc);
        const std::uint64_t section = get(file, segments + at + 24, 4);
        if (section == 0 || section > n_layers) continue;
        layer_crcs[section - 1] = crc32_combine(layer_crcs[section - 1], crc, size);
      }
    }
    for (std::uint64_t i = 0; i < n_layers; ++i) put(file, index + 32 * i + 20, layer_crcs[i]);
  }
  if (inside >= Inside::sections) {
    for (std::uint64_t i = 0; i < n_sections; ++i) {
      const std::uint64_t entry = directory + 24 * i;
      put(file, entry + 20, crc32(piece(file, get(file, entry + 8, 8), get(file, entry + 16, 4))));
    }
  }
  if (inside >= Inside::tables) {
    put(file, 112, crc32(piece(file, directory, 24 * n_sections)));
    put(file, 116, crc32(piece(file, index, 32 * n_layers)));
  }
  put(file, 96, crc32(piece(file, 0, 96)));
  put(file, 124, crc32(piece(file, 100, 24)));
}

}  // namespace qsf::test
