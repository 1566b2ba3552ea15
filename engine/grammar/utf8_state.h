// UTF-8 read byte by byte.
#pragma once

#include <array>
#include <cstdint>

namespace qsf::grammar {

/// The place inside of a character; 0: between two.
using Utf8State = std::uint8_t;
inline constexpr Utf8State kNoUtf8 = 255;  // not UTF-8

/// The bytes that may come next inside of a character, and the state after them.
struct Utf8Next {
  std::uint8_t low, high;
  Utf8State after;
};
inline constexpr std::array kUtf8Next{
    Utf8Next{0, 0, 0},       Utf8Next{0x80, 0xBF, 0},  // one more
    Utf8Next{0x80, 0xBF, 1}, Utf8Next{0x80, 0xBF, 2},  // two, three more
    Utf8Next{0xA0, 0xBF, 1}, Utf8Next{0x80, 0x9F, 1},  // after E0, ED
    Utf8Next{0x90, 0xBF, 2}, Utf8Next{0x80, 0x8F, 2},  // after F0, F4
};

constexpr Utf8State utf8_step(Utf8State at, std::uint8_t byte) {
  if (at != 0) return byte >= kUtf8Next[at].low && byte <= kUtf8Next[at].high ? kUtf8Next[at].after : kNoUtf8;
  if (byte < 0x80) return 0;
  if (byte < 0xC2 || byte > 0xF4) return kNoUtf8;
  if (byte < 0xE0) return 1;
  if (byte < 0xF0) return byte == 0xE0 ? 4 : byte == 0xED ? 5 : 2;
  return byte == 0xF0 ? 6 : byte == 0xF4 ? 7 : 3;
}

}  // namespace qsf::grammar
