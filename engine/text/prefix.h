// Tokens that a text begins with, in a table of ids ascending by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qsf {

/// Calls found(place) for every token of the table that `text` begins with, the shortest first. `token(place)` gives a
/// token's bytes. Takes O(log n) for each byte that some token shares.
template <class Token, class Found>
void each_prefix(std::uint32_t n, std::string_view text, const Token& token, const Found& found) {
  std::uint32_t low = 0, high = n;
  for (std::size_t depth = 0; depth < text.size() && low < high; ++depth) {
    // All tokens in [low, high) begin with the first `depth` bytes of the text.
    const auto byte = static_cast<std::uint8_t>(text[depth]);
    const auto first = [&](std::uint32_t from, auto&& reached) {
      std::uint32_t to = high;
      while (from < to) {
        const std::uint32_t middle = from + (to - from) / 2;
        const std::string_view each = token(middle);
        if (each.size() > depth && reached(static_cast<std::uint8_t>(each[depth]))) {
          to = middle;
        } else {
          from = middle + 1;
        }
      }
      return from;
    };
    low = first(low, [&](std::uint8_t b) { return b >= byte; });
    high = first(low, [&](std::uint8_t b) { return b > byte; });
    if (low < high && token(low).size() == depth + 1) found(low);
  }
}

}  // namespace qsf
