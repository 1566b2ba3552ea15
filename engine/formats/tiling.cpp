// Strips of 16 rows as tiles, four rows at a time, because sources tile weights each time that they are read. A plane
// of a block has the same bits in a tile, in another order: words of four rows become neighbours, and then the bits of
// each word change places.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "formats/blocks.h"
#include "formats/tile.h"
#include "qsf/base/bytes.h"
#include "qsf/formats/format.h"

namespace qsf {
namespace {

typedef std::uint32_t Words __attribute__((vector_size(16)));
typedef std::uint8_t Bytes __attribute__((vector_size(sizeof(Words))));

constexpr std::uint32_t kFour = 4;           // rows whose words are moved together, and words of a row
constexpr std::uint32_t kWord = 4;           // bytes
constexpr std::uint32_t kEach = 0x01010101;  // one in each byte of a word
static_assert(kWord == kTileGroup && kTileRows % kFour == 0);

using Four = std::array<Words, kFour>;

Words load(const std::byte* from) {
  Words out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
void store(std::byte* to, Words words) { std::memcpy(to, &words, sizeof words); }

/// The rows of a strip. In place of missing ones there is the first.
using Rows = std::array<const std::byte*, kTileRows>;

/// Returns the words at a byte of four rows.
Words word_of(const std::byte* const* rows, std::size_t at) {
  return Words{load_le<std::uint32_t>(rows[0] + at), load_le<std::uint32_t>(rows[1] + at),
               load_le<std::uint32_t>(rows[2] + at), load_le<std::uint32_t>(rows[3] + at)};
}

/// Returns four neighbouring words of four rows, each of all rows.
Four words_of(const std::byte* const* rows, std::size_t at) {
  const Words r0 = load(rows[0] + at), r1 = load(rows[1] + at), r2 = load(rows[2] + at), r3 = load(rows[3] + at);
  const Words a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Words c = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  return {__builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
          __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
}

/// Exchanges the bits of a mask with those `by` places higher.
Words exchanged(Words words, std::uint32_t mask, std::uint32_t by) {
  const Words differ = (words >> by ^ words) & mask;
  return words ^ differ ^ differ << by;
}

/// Moves codes that follow each other in a word to their fields: code 4 k + j becomes field k of byte j. Each exchange
/// swaps two bits of a code's index.
Words to_fields(Words codes, std::uint32_t width) {
  if (width == 4) return exchanged(exchanged(codes, 0x0000ff00, 8), 0x00f000f0, 4);
  if (width == 2) return exchanged(exchanged(codes, 0x0000f0f0, 12), 0x00cc00cc, 6);
  codes = exchanged(exchanged(codes, 0x0000cccc, 14), 0x00aa00aa, 7);
  return exchanged(exchanged(codes, 0x0c0c0c0c, 2), 0x22222222, 1);
}

/// The strip that is made: its blocks along a row, and the first of its codes.
struct Strip {
  const Format& f;
  const Rows& rows;
  std::size_t n_blocks;
  std::byte* codes;
};

/// Tiles a plane in which codes that follow each other share bytes.
void tile_neighbours(const Strip& s, const Plane& plane, std::byte* to) {
  const std::uint32_t n = s.f.block * plane.width / 8 / kWord;
  for (std::size_t b = 0, at = plane.at; b < s.n_blocks; ++b, at += s.f.block_bytes, to += tile_bytes(s.f)) {
    for (std::uint32_t w = 0; w < n; ++w) {
      for (std::uint32_t row = 0; row < kTileRows; row += kFour) {
        const Words codes = word_of(s.rows.data() + row, at + w * kWord);
        store(to + w * kTileLoad + row * kTileGroup, to_fields(codes, plane.width));
      }
    }
  }
}

/// Tiles a plane in which each of some neighbouring codes has a byte of its own. Its width is a number or a constant.
template <class Width>
void tile_apart(const Strip& s, const Plane& plane, Width width, std::byte* to) {
  const std::uint32_t n_fields = 8 / width;  // and the words of a row that become words of a tile together
  const std::uint32_t at_once = std::max(n_fields, kFour), mask = ((1u << width) - 1) * kEach;
  const Words flip = Words{} + (s.f.packing == Packing::int8 ? 0x80 * kEach : 0);
  const std::uint32_t n = s.f.block * width / 8 / kWord;
  std::array<std::uint32_t, kMaxBlock / kWord> places{};  // of words in a tile: those of a field in n_fields words
  for (std::uint32_t w = 0; w < n; ++w) {
    const std::uint32_t field = w % n_fields, turn = plane.falling ? n_fields - 1 - field : field;
    const std::uint32_t byte = (w - field) * kWord, in_run = byte % plane.run;
    places[w] = ((byte - in_run) * n_fields + turn * plane.run + in_run) / (n_fields * kTileGroup) * kTileLoad;
  }
  for (std::size_t b = 0, at = plane.at; b < s.n_blocks; ++b, at += s.f.block_bytes, to += tile_bytes(s.f)) {
    for (std::uint32_t w = 0; w < n; w += at_once) {
      for (std::uint32_t row = 0; row < kTileRows; row += kFour) {
        std::array<Four, 2> all;  // as many words as a byte has bits
        for (std::uint32_t i = 0; i < at_once / kFour; ++i) {
          all[i] = words_of(s.rows.data() + row, at + (w + i * kFour) * kWord);
        }
        for (std::uint32_t out = 0; out < at_once; ++out) {
          const std::uint32_t field = out % n_fields;
          Words fields = width == 8 ? flip : Words{};
          for (std::uint32_t i = 0; i < n_fields; ++i) {
            const std::uint32_t from = out - field + i;
            fields ^= (all[from / kFour][from % kFour] >> (field * width) & mask) << (i * width);
          }
          store(to + places[w + out] + row * kTileGroup, fields);
        }
      }
    }
  }
}

void tile_plane(const Strip& s, const Plane& plane, std::byte* to) {
  if (plane.width == 0) return;
  if (plane.width != 8 && plane.run < kTileGroup) return tile_neighbours(s, plane, to);
#if defined(__wasm__)
  tile_apart(s, plane, std::uint32_t{plane.width}, to);  // a module is a KB smaller without a loop for each width
#else
  switch (plane.width) {
    case 8:
      return tile_apart(s, plane, std::integral_constant<std::uint32_t, 8>(), to);
    case 4:
      return tile_apart(s, plane, std::integral_constant<std::uint32_t, 4>(), to);
    case 2:
      return tile_apart(s, plane, std::integral_constant<std::uint32_t, 2>(), to);
    default:
      return tile_apart(s, plane, std::integral_constant<std::uint32_t, 1>(), to);
  }
#endif
}

/// Puts a zero bit before each of the low 16 bits.
Words spread(Words bits) {
  bits = (bits | bits << 8) & 0x00ff00ff;
  bits = (bits | bits << 4) & 0x0f0f0f0f;
  bits = (bits | bits << 2) & 0x33333333;
  return (bits | bits << 1) & 0x55555555;
}

/// Tiles the two planes of Packing::sign_and_zero as one of two bits.
void tile_signs_and_zeros(const Strip& s) {
  std::byte* to = s.codes;
  for (std::size_t b = 0, at = 0; b < s.n_blocks; ++b, at += s.f.block_bytes, to += tile_bytes(s.f)) {
    for (std::uint32_t i = 0; i < s.f.block / 32u * kTileRows; i += kFour) {
      const std::uint32_t word = i / kTileRows, row = i % kTileRows;
      const Words sign = word_of(s.rows.data() + row, at + s.f.planes[0].at + word * kWord);
      const Words zero = word_of(s.rows.data() + row, at + s.f.planes[1].at + word * kWord);
      const Words positive = ~(sign | zero);
      for (std::uint32_t half = 0; half < 2; ++half) {
        const Words codes = spread(zero >> 16 * half & 0xffff) | spread(positive >> 16 * half & 0xffff) << 1;
        store(to + (2 * word + half) * kTileLoad + row * kTileGroup, to_fields(codes, 2));
      }
    }
  }
}

/// Whether the planes of blocks are those of tiles.
constexpr bool same_planes(const Format& f) {
  if (f.packing == Packing::trits || f.packing == Packing::sign_and_zero) return true;  // not tiled by planes
  const auto planes = tile_planes(f.code_bits, f.block);
  for (std::size_t i = 0; i < f.planes.size(); ++i) {
    const Plane& plane = f.planes[i];
    if (plane.width != planes[i].width) return false;
    if (plane.width == 0 || plane.width == 8) continue;
    const std::uint32_t fields = 8u / plane.width, n = f.block / fields;  // bytes of the plane
    if (plane.run >= kTileGroup && (plane.run % (fields * kWord) != 0 || n % (std::max(fields, kFour) * kWord) != 0)) {
      return false;
    }
  }
  return true;
}
static_assert(std::ranges::all_of(kFormats, [](const Format& f) {
  return !f.quantized() || f.grid != Grid::none || same_planes(f);
}));

/// Copies the numbers at one place of all rows' blocks to the tile.
template <class T>
void tile_number(const Rows& rows, std::size_t at, std::byte* to) {
  for (std::uint32_t row = 0; row < kTileRows; ++row) store_le(to + row * sizeof(T), load_le<T>(rows[row] + at));
}

/// Copies four neighbouring bytes of all rows' blocks to the tile.
void tile_word(const Rows& rows, std::size_t at, std::byte* to) {
  std::array<Bytes, kFour> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::bit_cast<Bytes>(word_of(&rows[i * kFour], at));
  // Each turn interleaves the first half with the second one, so that after four a byte's row is its place in a vector.
  for (int turn = 0; turn < 4; ++turn) {
    const std::array<Bytes, kFour> b = bytes;
    for (std::size_t i = 0; i < 2; ++i) {
      bytes[2 * i] = __builtin_shufflevector(b[i], b[i + 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      bytes[2 * i + 1] =
          __builtin_shufflevector(b[i], b[i + 2], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  }
  std::memcpy(to, bytes.data(), sizeof bytes);
}

/// Copies numbers of all rows' blocks, of which the first is at a byte of the rows.
void tile_numbers(const Rows& rows, std::size_t at, const TileNumbers& numbers, std::byte* to) {
  switch (numbers.width) {
    case 4:
      return tile_number<std::uint32_t>(rows, at, to);
    case 2:
      return tile_number<std::uint16_t>(rows, at, to);
    default:
      break;
  }
  std::uint32_t i = 0;
  for (; i + kWord <= numbers.n; i += kWord) tile_word(rows, at + i, to + i * kTileRows);
  for (; i < numbers.n; ++i) tile_number<std::uint8_t>(rows, at + i, to + i * kTileRows);
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

void tile_trits(const Strip& s) {
  std::array<std::uint8_t, kMaxBlock> values;
  for (std::size_t b = 0; b < s.n_blocks; ++b) {
    for (std::uint32_t row = 0; row < kTileRows; ++row) {
      unpack_codes(s.f, s.rows[row] + b * s.f.block_bytes, values);
      put_trits(s.f, values, row, s.codes + b * tile_bytes(s.f));
    }
  }
}

/// Makes a row of the tile zeros.
void clear_row(const Format& f, std::uint32_t row, std::byte* tile) {
  for_each_number(f, [&](const TileNumbers& n) {
    for (std::uint32_t i = 0; i < n.n; ++i) {
      std::fill_n(tile + n.tile_at + (i * kTileRows + row) * n.width, n.width, std::byte{0});
    }
  });
  if (f.grid != Grid::none) return;
  for (std::uint32_t at = tile_codes_at(f); at < tile_bytes(f); at += kTileLoad) {
    std::fill_n(tile + at + row * kTileGroup, kTileGroup, std::byte{0});
  }
}

}  // namespace

void tile_rows(const Format& f, std::span<const std::byte* const> rows, std::uint32_t cols,
               std::span<std::byte> strip) {
  const std::size_t n_blocks = (static_cast<std::size_t>(cols) + f.block - 1) / f.block;
  Rows all{};
  for (std::size_t row = 0; row < kTileRows; ++row) all[row] = rows[row < rows.size() ? row : 0];
  for_each_number(f, [&](const TileNumbers& n) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
      tile_numbers(all, b * f.block_bytes + n.at, n, strip.data() + b * tile_bytes(f) + n.tile_at);
    }
  });
  const Strip made{f, all, n_blocks, strip.data() + tile_codes_at(f)};
  if (f.packing == Packing::trits) {
    tile_trits(made);
  } else if (f.packing == Packing::sign_and_zero) {
    tile_signs_and_zeros(made);
  } else {
    const auto planes = tile_planes(f.code_bits, f.block);
    for (std::size_t i = 0; i < f.planes.size(); ++i) tile_plane(made, f.planes[i], made.codes + planes[i].offset);
  }
  for (std::size_t row = rows.size(); row < kTileRows; ++row) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
      clear_row(f, static_cast<std::uint32_t>(row), strip.data() + b * tile_bytes(f));
    }
  }
}

void tile_strip(const Format& f, std::span<const std::byte> rows, std::uint32_t n_rows, std::uint32_t cols,
                std::span<std::byte> strip) {
  Rows all{};
  for (std::uint32_t row = 0; row < n_rows; ++row) all[row] = rows.data() + row * row_bytes(f, cols);
  tile_rows(f, std::span(all).first(n_rows), cols, strip);
}

}  // namespace qsf
