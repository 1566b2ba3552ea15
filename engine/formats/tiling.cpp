// Strips of 16 rows as tiles. Four codes are moved at a time, as the bytes of a word, because sources tile weights each
// time that they are read.
#include <algorithm>
#include <array>
#include <bit>

#include "formats/blocks.h"
#include "formats/tile.h"
#include "qsf/base/bytes.h"
#include "qsf/formats/format.h"

namespace qsf {
namespace {

constexpr std::uint32_t kEach = 0x01010101;  // one in each byte of a word

/// The bits of four neighbouring codes in one plane of a row-major block.
struct PlaneWord {
  std::uint32_t at = 0;     // of the first byte
  std::uint32_t shift = 0;  // of the first code in it
  std::uint32_t mask = 0;   // of the codes as bytes
};

/// A plane's codes, four at a time.
class PlaneWords {
 public:
  explicit PlaneWords(const Plane& plane) : plane_(plane), in_byte_(8u / plane.width), low_((1u << plane.width) - 1) {}

  /// Whether each code has a byte of its own in memory. Otherwise neighbours share bytes, from the lowest bits on.
  bool apart() const { return plane_.run >= kTileGroup || plane_.width == 8; }
  /// Returns the place of codes i to i + 3; i is a multiple of 4.
  PlaneWord operator[](std::uint32_t i) const {
    const std::uint32_t run = plane_.run, turn = i / run % in_byte_;
    const std::uint32_t byte = i / (run * in_byte_) * run + i % run;
    const std::uint32_t place = plane_.falling ? in_byte_ - 1 - turn : turn;
    return {plane_.at + byte, place * plane_.width, low_ * kEach};
  }

 private:
  Plane plane_;
  std::uint32_t in_byte_, low_;
};

/// Spreads four codes of `width` bits, which follow each other, to the bytes of a word.
std::uint32_t spread(std::uint32_t codes, std::uint32_t width) {
  switch (width) {
    case 4:
      codes = (codes | codes << 8) & 0x00ff00ff;
      return (codes | codes << 4) & 0x0f0f0f0f;
    case 2:
      codes = (codes | codes << 12) & 0x000f000f;
      return (codes | codes << 6) & 0x03030303;
    default:
      codes = (codes | codes << 14) & 0x00030003;
      return (codes | codes << 7) & kEach;
  }
}

/// Returns the codes of the planes' bits.
std::uint32_t recoded(Packing packing, std::uint32_t bits) {
  if (packing == Packing::int8) return bits ^ (0x80 * kEach);
  if (packing != Packing::sign_and_zero) return bits;
  const std::uint32_t sign = bits & kEach, zero = bits >> 1 & kEach;
  return zero | (~(sign | zero) & kEach) << 1;
}

/// The rows of a strip: the addresses of their current blocks.
struct Rows {
  const std::byte* first;
  std::size_t stride;
  std::uint32_t n;
};

/// Adds a plane's bits of four neighbouring codes to words[row], `to` bits up.
void add_plane(const Plane& plane, std::uint32_t code, std::uint32_t to, const Rows& rows,
               std::array<std::uint32_t, kTileRows>& words) {
  const PlaneWords all(plane);
  const PlaneWord place = all[code];
  const std::byte* at = rows.first + place.at;
  if (all.apart()) {
    for (std::uint32_t row = 0; row < rows.n; ++row, at += rows.stride) {
      words[row] |= (load_le<std::uint32_t>(at) >> place.shift & place.mask) << to;
    }
    return;
  }
  const std::uint32_t width = plane.width, mask = (1u << (kTileGroup * width)) - 1;
  for (std::uint32_t row = 0; row < rows.n; ++row, at += rows.stride) {
    const std::uint32_t bits = width == 4 ? load_le<std::uint16_t>(at) : std::to_integer<std::uint32_t>(*at);
    words[row] |= spread(bits >> place.shift & mask, width) << to;
  }
}

/// Returns four neighbouring codes of each row, as the bytes of words: their bits in the planes from `first` on.
std::array<std::uint32_t, kTileRows> codes_of(const Format& f, std::size_t first, std::uint32_t code,
                                              const Rows& rows) {
  std::array<std::uint32_t, kTileRows> words{};
  std::uint32_t to = 0;
  for (std::size_t i = 0; i < f.planes.size(); ++i) {
    const Plane& plane = f.planes[i];
    if (i >= first && plane.width != 0) add_plane(plane, code, to, rows, words);
    to += plane.width;
  }
  for (std::uint32_t row = 0; row < rows.n; ++row) words[row] = recoded(f.packing, words[row]);
  return words;
}

/// Whether four bits of the codes are the first plane of both blocks and tiles, and eight bytes of a block have the
/// bits of neighbouring codes alone.
bool has_nibbles(const Format& f) {
  const Plane& plane = f.planes[0];
  return f.packing == Packing::plain && plane.width == 4 && plane.run % (2 * kTileGroup) == 0 && !plane.falling;
}

/// Tiles the first plane of a format that has_nibbles(). Eight bytes have the low bits of eight codes, and the high
/// ones of those `run` further on. A tile's byte has those of a code and of the fourth one after it.
void tile_nibbles(const Format& f, const Rows& rows, std::byte* codes) {
  constexpr std::uint64_t kLow = 0x0f0f0f0f0f0f0f0f;
  const Plane& plane = f.planes[0];
  for (std::uint32_t code = 0; code < f.block; code += 2 * kTileGroup) {
    if (code / plane.run % 2 != 0) continue;
    const std::byte* from = rows.first + plane.at + code / (2 * plane.run) * plane.run + code % plane.run;
    std::byte* const low = codes + code / (2 * kTileGroup) * kTileLoad;
    std::byte* const high = codes + (code + plane.run) / (2 * kTileGroup) * kTileLoad;
    for (std::uint32_t row = 0; row < rows.n; ++row, from += rows.stride) {
      const auto both = load_le<std::uint64_t>(from);
      const std::uint64_t a = both & kLow, b = both >> 4 & kLow;
      store_le(low + row * kTileGroup, static_cast<std::uint32_t>(a | a >> 28));
      store_le(high + row * kTileGroup, static_cast<std::uint32_t>(b | b >> 28));
    }
  }
}

void tile_codes(const Format& f, const Rows& rows, std::byte* codes) {
  const auto planes = tile_planes(f.code_bits, f.block);
  const std::size_t first = has_nibbles(f) ? 1 : 0;
  if (first != 0) {
    tile_nibbles(f, rows, codes);
    if (f.code_bits == 4) return;
  }
  for (std::uint32_t code = 0; code < f.block; code += kTileGroup) {
    const std::array<std::uint32_t, kTileRows> words = codes_of(f, first, code, rows);
    for (const TilePlane& plane : std::span(planes).subspan(first)) {
      if (plane.width == 0) break;
      const std::uint32_t mask = ((1u << plane.width) - 1) * kEach;
      const TileField field = tile_field(plane, 0, code);
      std::byte* at = codes + plane.offset + field.byte;
      for (std::uint32_t row = 0; row < rows.n; ++row, at += kTileGroup) {
        const std::uint32_t bits = (words[row] >> plane.shift & mask) << field.shift;
        store_le(at, field.shift == 0 ? bits : load_le<std::uint32_t>(at) | bits);
      }
    }
  }
}

/// Copies a number of each row's block to the tile.
template <class T>
void tile_numbers(const Rows& rows, const TileNumber& number, std::byte* tile) {
  const std::byte* from = rows.first + number.at;
  std::byte* to = tile + number.tile_at;
  for (std::uint32_t row = 0; row < rows.n; ++row, from += rows.stride, to += sizeof(T)) {
    store_le(to, load_le<T>(from));
  }
}

void put_trits(const Format& f, std::span<const std::uint8_t> values, std::uint32_t row, std::byte* codes) {
  for (std::uint32_t k = 0; k < f.block; k += kTileGroup * kTrits) {
    for (std::uint32_t column = 0; column < kTileGroup; ++column) {
      unsigned number = 0;
      for (std::uint32_t n = 0; n < kTrits; ++n) {
        const std::uint32_t i = k + n * kTileGroup + column;
        number = number * 3 + (i < f.block ? values[i] : 0u);
      }
      codes[tile_trit(row, k + column).byte] = trit_byte(number);
    }
  }
}

void tile_trits(const Format& f, const Rows& rows, std::byte* codes) {
  std::array<std::uint8_t, kMaxBlock> values;
  for (std::uint32_t row = 0; row < rows.n; ++row) {
    unpack_codes(f, rows.first + row * rows.stride, values);
    put_trits(f, values, row, codes);
  }
}

}  // namespace

void tile_strip(const Format& f, std::span<const std::byte> rows, std::uint32_t n_rows, std::uint32_t cols,
                std::span<std::byte> strip) {
  if (n_rows < kTileRows) std::ranges::fill(strip, std::byte{0});
  const std::size_t n_blocks = (static_cast<std::size_t>(cols) + f.block - 1) / f.block;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    std::byte* const tile = strip.data() + b * tile_bytes(f);
    const Rows blocks{rows.data() + b * f.block_bytes, n_blocks * f.block_bytes, n_rows};
    for_each_number(f, [&](const TileNumber& n) {
      switch (n.width) {
        case 1:
          return tile_numbers<std::uint8_t>(blocks, n, tile);
        case 2:
          return tile_numbers<std::uint16_t>(blocks, n, tile);
        default:
          return tile_numbers<std::uint32_t>(blocks, n, tile);
      }
    });
    if (f.grid != Grid::none) continue;
    std::byte* const codes = tile + tile_codes_at(f);
    f.packing == Packing::trits ? tile_trits(f, blocks, codes) : tile_codes(f, blocks, codes);
  }
}

}  // namespace qsf
