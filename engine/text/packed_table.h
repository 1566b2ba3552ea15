// Tables that are stored as differences of seven bits a byte, which saves a tenth of a page's download. They are
// unpacked when the program starts.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

/// Numbers of seven bits a byte, lowest first. All bytes of a number except the last have the top bit.
class PackedNumbers {
 public:
  explicit constexpr PackedNumbers(std::span<const std::uint8_t> bytes) : at_(bytes.data()) {}

  constexpr std::uint32_t next() {
    std::uint32_t number = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t byte = *at_++;
      number |= (byte & 127u) << shift;
      if (byte < 128) return number;
    }
  }
  /// Returns the next difference between numbers: 0, -1, 1, -2, 2 and so on are stored as 0, 1, 2, 3, 4.
  constexpr std::uint32_t difference() {
    const std::uint32_t number = next();
    return (number >> 1) ^ (0 - (number & 1));
  }

 private:
  const std::uint8_t* at_;
};

constexpr std::size_t count_packed(std::span<const std::uint8_t> bytes) {
  std::size_t n = 0;
  for (const std::uint8_t byte : bytes) n += byte < 128 ? 1 : 0;
  return n;
}

/// Returns rows of kColumns numbers. They are stored column after column, each number as its difference from the one
/// above.
template <std::unsigned_integral T, std::size_t kColumns, std::size_t kRows>
std::array<std::array<T, kColumns>, kRows> unpack_columns(PackedNumbers numbers) {
  std::array<std::array<T, kColumns>, kRows> table{};
  for (std::size_t column = 0; column < kColumns; ++column) {
    std::uint32_t above = 0;
    for (auto& row : table) row[column] = static_cast<T>(above += numbers.difference());
  }
  return table;
}

/// Returns the value of the range that contains `code`. A row is a range's start and value; the first range starts at
/// 0.
template <std::size_t kRows>
std::uint32_t in_range(const std::array<std::array<std::uint32_t, 2>, kRows>& ranges, std::uint32_t code) {
  return std::ranges::upper_bound(ranges, code, {}, [](const auto& row) { return row[0]; })[-1][1];
}

}  // namespace qsf
