// A search for the tokens that a text begins with, in a table of ids that ascend by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qsf {

/// Calls found(place) for every token of the table that `text` begins with, shortest first. token(place) must return a
/// token's bytes. Returns the number of bytes searched, which is at most one more than the longest common prefix with a
/// token; each takes O(log n).
template <class Token, class Found>
std::size_t each_prefix(std::uint32_t n, std::string_view text, const Token& token, const Found& found) {
  std::uint32_t low = 0, high = n;
  std::size_t depth = 0;
  for (; depth < text.size() && low < high; ++depth) {
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
  return depth;
}

}  // namespace qsf
