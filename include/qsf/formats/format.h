// The quantization formats, declared as data. Packing, tiling, dequantizing, kernels, tests and docs follow from a
// declaration in kFormats; a new format is one line there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace qsf {

/// The quantization type as the file stores it. 0-5 are the types of version 1's first files; 64 + n is GGML's type n,
/// stored unchanged.
enum class FormatId : std::uint8_t {
  mixed = 5,       // header only: every tensor states its own
  inherit = 0xff,  // tensor header only: the layer's type
  q4 = 3,
  f32 = 16,
  f16 = 17,
  bf16 = 18,
  q8 = 19,
};
/// Returns the identifier of GGML's type n.
constexpr FormatId ggml_type(std::uint8_t n) { return static_cast<FormatId>(64 + n); }
constexpr FormatId own_type(std::uint8_t n) { return static_cast<FormatId>(n); }

/// The order of a tensor's quantized rows in the file and in memory.
enum class Layout : std::uint8_t {
  rows = 0,   // block after block, row after row
  tiles = 1,  // strips of 16 rows; in a strip, tile after tile along the columns
};

inline constexpr std::uint32_t kTileRows = 16;
inline constexpr std::uint32_t kGroup = 32;      // activations that share one scale; divides every quantized block
inline constexpr std::uint32_t kMaxBlock = 256;  // weights in a block
inline constexpr std::uint32_t kMaxSubBlocks = 16;

enum class Scale : std::uint8_t { none, f16, f32, exponent };  // none: 1; exponent: 2^(byte - 128)

/// A number of each block, and its byte offset in a row-major block.
struct Field {
  Scale type = Scale::none;
  std::uint16_t at = 0;
};
constexpr Field f16_at(std::uint16_t at) { return {Scale::f16, at}; }
constexpr Field f32_at(std::uint16_t at) { return {Scale::f32, at}; }
constexpr Field exponent_at(std::uint16_t at) { return {Scale::exponent, at}; }

/// The packing of integer scales and minima of sub-blocks, which multiply the block's scale and minimum. The packings
/// are those of GGML's K-quants, for x4 of its IQ4_XS, and for e4m3 of its NVFP4 (8-bit floats); see sub_scales.h. The
/// scales of a grid belong to 16 weights and are decoded with its points.
enum class Sub : std::uint8_t { none, k2, k3, k4, k6, x4, e4m3, grid };
struct SubScales {
  Sub kind = Sub::none;
  std::uint16_t at = 0;  // in a row-major block
};

/// A run of bits of every code in a row-major block. `run` bytes contain run * 8 / width codes, code i of them in byte
/// i % run, the first `run` codes lowest (or, falling, highest). The first plane has the lowest bits of a code.
struct Plane {
  std::uint16_t at = 0;
  std::uint8_t width = 0;  // 0: no such plane
  std::uint8_t run = 1;
  bool falling = false;
};

/// The way from the planes' bits to a code.
enum class Packing : std::uint8_t {
  plain,
  int8,           // the stored byte is the code minus 128
  sign_and_zero,  // a sign bit of negatives and a mark of zeros: codes 0, 1, 2 are -1, 0, 1
  trits,          // GGML's tq1_0: five codes 0..2 in a byte, as ceil(256 * base-3 fraction)
  trellis,        // a level comes from its code and the following ones; see formats/trellis.h
};

/// The points that GGML's IQ types select levels from, 8 or 4 at a time; see formats/grids.inl. The blocks of such a
/// format have no planes: codes are levels.
enum class Grid : std::uint8_t { none, iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s };

/// The level of a code before scale and offset: the code itself, or an entry of a table (see kLevels).
enum class Levels : std::uint8_t { codes, signs, no_zero, iq4_nl, e2m1 };

/// The rule that rounds a block of weights to codes; see rounding.cpp.
enum class Rounding : std::uint8_t {
  none,             // float formats: half to even
  min_max,          // scale = (max - min) / top code; half to even against the rounded scale and minimum
  mirrored,         // the same for a range mirrored at zero: min = -max
  symmetric,        // scale = max |w| / 127; half to even against the rounded scale
  third_of_mean,    // ternary: scale = mean |w|, zero below 0.3 of it
  signs,            // scale = mean |w|
  nearest_level,    // scale fitted to the levels by least squares
  power_of_two,     // GGML's mxfp4: scale = the power of two two below that of max |w|, times 1/2
  fixed,            // no scale
  ggml_signed_max,  // GGML's q4_0 and q5_0: the weight of largest magnitude becomes code 0
  ggml_min_max,     // GGML's q4_1 and q5_1
  ggml_symmetric,   // GGML's q8_0: half away from zero against the scale before rounding
  ggml_ternary,     // GGML's tq1_0, tq2_0 and q2_0: scale = max |w|
  sub_min_max,      // sub-blocks' scales and minima, fitted by least squares
  sub_symmetric,    // sub-blocks' scales, fitted by least squares
  elsewhere,        // by a search that the converter has; here all weights become zero
  least_path,       // scale = root mean square over that of the levels; the path of codes with the least squared error
};

/// One weight is scale * (level(code) - offset) + minimum. Float formats have code_bits 0 and block 1.
struct Format {
  FormatId id;
  std::string_view name;
  std::uint16_t block;        // weights that share one scale
  std::uint16_t block_bytes;  // of one row-major block
  std::uint8_t code_bits;     // 0: the weight itself, block_bytes wide
  std::uint8_t offset;        // subtracted from every level
  Field scale;
  Field minimum;  // Scale::none: no minimum
  SubScales sub;
  std::array<Plane, 2> planes;
  Rounding rounding;
  Packing packing = Packing::plain;
  Levels levels = Levels::codes;
  Grid grid = Grid::none;

  constexpr bool quantized() const { return code_bits != 0; }
  constexpr bool has_min() const { return minimum.type != Scale::none; }
};

// clang-format off
inline constexpr std::array kFormats{
    //     id             name            block bytes bits off  scale        minimum    sub-scales       planes                          rounding, packing, levels, grid
    Format{FormatId::f32,  "f32",              1,   4, 0,   0, {},          {},        {},              {},                             Rounding::none},
    Format{FormatId::f16,  "f16",              1,   2, 0,   0, {},          {},        {},              {},                             Rounding::none},
    Format{FormatId::bf16, "bf16",             1,   2, 0,   0, {},          {},        {},              {},                             Rounding::none},
    Format{FormatId::q8,   "8bit",            64,  66, 8, 128, f16_at(0),   {},        {},              {{{2, 8}}},                     Rounding::symmetric, Packing::int8},
    Format{FormatId::q4,   "4bit",            64,  36, 4,   0, f16_at(0),   f16_at(2), {},              {{{4, 4}}},                     Rounding::min_max},
    Format{own_type(2),    "3bit",            64,  28, 3,   0, f16_at(0),   f16_at(2), {},              {{{4, 2}, {20, 1}}},            Rounding::min_max},
    Format{own_type(1),    "2bit",            64,  20, 2,   0, f16_at(0),   f16_at(2), {},              {{{4, 2}}},                     Rounding::min_max},
    Format{own_type(0),    "2bit-symmetric",  64,  20, 2,   0, f16_at(0),   f16_at(2), {},              {{{4, 2}}},                     Rounding::mirrored},
    Format{own_type(4),    "ternary",         64,  18, 2,   1, f16_at(0),   {},        {},              {{{2, 1}, {10, 1}}},            Rounding::third_of_mean, Packing::sign_and_zero},
    Format{own_type(24),   "ternary-32",      32,  10, 2,   1, f16_at(0),   {},        {},              {{{2, 1}, {6, 1}}},             Rounding::third_of_mean, Packing::sign_and_zero},
    Format{own_type(25),   "ternary-128",    128,  34, 2,   1, f16_at(0),   {},        {},              {{{2, 1}, {18, 1}}},            Rounding::third_of_mean, Packing::sign_and_zero},
    Format{own_type(26),   "ternary-256",    256,  66, 2,   1, f16_at(0),   {},        {},              {{{2, 1}, {34, 1}}},            Rounding::third_of_mean, Packing::sign_and_zero},
    Format{ggml_type(2),   "q4_0",            32,  18, 4,   8, f16_at(0),   {},        {},              {{{2, 4, 16}}},                 Rounding::ggml_signed_max},
    Format{ggml_type(3),   "q4_1",            32,  20, 4,   0, f16_at(0),   f16_at(2), {},              {{{4, 4, 16}}},                 Rounding::ggml_min_max},
    Format{ggml_type(6),   "q5_0",            32,  22, 5,  16, f16_at(0),   {},        {},              {{{6, 4, 16}, {2, 1}}},         Rounding::ggml_signed_max},
    Format{ggml_type(7),   "q5_1",            32,  24, 5,   0, f16_at(0),   f16_at(2), {},              {{{8, 4, 16}, {4, 1}}},         Rounding::ggml_min_max},
    Format{ggml_type(8),   "q8_0",            32,  34, 8, 128, f16_at(0),   {},        {},              {{{2, 8}}},                     Rounding::ggml_symmetric, Packing::int8},
    Format{ggml_type(10),  "q2_k",           256,  84, 2,   0, f16_at(80),  f16_at(82), {Sub::k2, 0},    {{{16, 2, 32}}},                Rounding::sub_min_max},
    Format{ggml_type(11),  "q3_k",           256, 110, 3,   4, f16_at(108), {},        {Sub::k3, 96},   {{{32, 2, 32}, {0, 1, 32}}},    Rounding::sub_symmetric},
    Format{ggml_type(12),  "q4_k",           256, 144, 4,   0, f16_at(0),   f16_at(2), {Sub::k4, 4},    {{{16, 4, 32}}},                Rounding::sub_min_max},
    Format{ggml_type(13),  "q5_k",           256, 176, 5,   0, f16_at(0),   f16_at(2), {Sub::k4, 4},    {{{48, 4, 32}, {16, 1, 32}}},   Rounding::sub_min_max},
    Format{ggml_type(14),  "q6_k",           256, 210, 6,  32, f16_at(208), {},        {Sub::k6, 192},  {{{0, 4, 64}, {128, 2, 32}}},   Rounding::sub_symmetric},
    Format{ggml_type(16),  "iq2_xxs",      256,  66, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq2_xxs},
    Format{ggml_type(17),  "iq2_xs",       256,  74, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq2_xs},
    Format{ggml_type(18),  "iq3_xxs",      256,  98, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq3_xxs},
    Format{ggml_type(19),  "iq1_s",        256,  50, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq1_s},
    Format{ggml_type(20),  "iq4_nl",          32,  18, 4, 128, f16_at(0),   {},        {},              {{{2, 4, 16}}},                 Rounding::nearest_level, Packing::plain, Levels::iq4_nl},
    Format{ggml_type(21),  "iq3_s",        256, 110, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq3_s},
    Format{ggml_type(22),  "iq2_s",        256,  82, 7,  64, f16_at(0),  {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq2_s},
    Format{ggml_type(23),  "iq4_xs",         256, 136, 4, 128, f16_at(0),   {},        {Sub::x4, 2},    {{{8, 4, 16}}},                 Rounding::sub_symmetric, Packing::plain, Levels::iq4_nl},
    Format{ggml_type(29),  "iq1_m",        256,  56, 7,  64, {},         {},        {Sub::grid, 0},  {},                             Rounding::elsewhere, Packing::plain, Levels::codes, Grid::iq1_m},
    Format{ggml_type(34),  "tq1_0",          256,  54, 2,   1, f16_at(52),  {},        {},              {},                             Rounding::ggml_ternary, Packing::trits},
    Format{ggml_type(35),  "tq2_0",          256,  66, 2,   1, f16_at(64),  {},        {},              {{{0, 2, 32}}},                 Rounding::ggml_ternary},
    Format{ggml_type(39),  "mxfp4",           32,  17, 4,  12, exponent_at(0), {},     {},              {{{1, 4, 16}}},                 Rounding::power_of_two, Packing::plain, Levels::e2m1},
    Format{ggml_type(40),  "nvfp4",           64,  36, 4,  12, {},          {},        {Sub::e4m3, 0},  {{{4, 4, 8}}},                  Rounding::elsewhere, Packing::plain, Levels::e2m1},
    Format{ggml_type(41),  "q1_0",           128,  18, 1,   1, f16_at(0),   {},        {},              {{{2, 1}}},                     Rounding::signs, Packing::plain, Levels::signs},
    Format{ggml_type(42),  "q2_0",            64,  18, 2,   1, f16_at(0),   {},        {},              {{{2, 2}}},                     Rounding::ggml_ternary},
    Format{own_type(27),   "q2_0-128",       128,  34, 2,   1, f16_at(0),   {},        {},              {{{2, 2}}},                     Rounding::ggml_ternary},
    Format{own_type(20),   "q8_f32",          64,  68, 8, 128, f32_at(0),   {},        {},              {{{4, 8}}},                     Rounding::symmetric, Packing::int8},
    Format{own_type(21),   "i2_s",           128,  36, 2,   1, f32_at(32),  {},        {},              {{{0, 2, 32, true}}},           Rounding::ggml_ternary},
    Format{own_type(22),   "bitnet-32",       32,  10, 2,   2, f16_at(8),   {},        {},              {{{0, 2}}},                     Rounding::nearest_level, Packing::plain, Levels::no_zero},
    Format{own_type(28),   "trellis2",       256,  66, 2,  64, f16_at(0),   {},        {},              {{{2, 2}}},                     Rounding::least_path, Packing::trellis},
    Format{own_type(29),   "trellis3",       256,  98, 3,  64, f16_at(0),   {},        {},              {{{2, 2}, {66, 1}}},            Rounding::least_path, Packing::trellis},
    Format{own_type(30),   "trellis4",       256, 130, 4,  64, f16_at(0),   {},        {},              {{{2, 4}}},                     Rounding::least_path, Packing::trellis},
    Format{own_type(31),   "nvfp4_f32",       64,  40, 4,  12, f32_at(0),   {},        {Sub::e4m3, 4},  {{{8, 4, 8}}},                  Rounding::elsewhere, Packing::plain, Levels::e2m1},
    Format{own_type(23),   "qk256",          256,  64, 2,   2, {},          {},        {},              {{{0, 2}}},                     Rounding::fixed, Packing::plain, Levels::no_zero},
};
// clang-format on

inline constexpr std::size_t kMaxBlockBytes = [] {
  std::size_t most = 0;
  for (const Format& f : kFormats) most = f.block_bytes > most ? f.block_bytes : most;
  return most;
}();

/// Returns the position in kFormats, or -1.
constexpr int format_index(FormatId id) {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].id == id) return static_cast<int>(i);
  }
  return -1;
}
/// Returns the format, or null if this build does not have it.
const Format* find_format(FormatId id);
const Format* find_format(std::string_view name);

/// Returns the bytes of one row-major row of `cols` weights. A partial last block is stored whole.
constexpr std::uint64_t row_bytes(const Format& f, std::uint64_t cols) {
  return (cols + f.block - 1) / f.block * f.block_bytes;
}
/// Returns the number of rows in a strip. A run of rows can only be cut between strips.
constexpr std::uint32_t strip_rows(Layout layout) { return layout == Layout::tiles ? kTileRows : 1; }
/// Returns the bytes of a tensor [rows, cols]. Tiles pad the rows to a multiple of 16.
constexpr std::uint64_t tensor_bytes(const Format& f, Layout layout, std::uint64_t rows, std::uint64_t cols) {
  const std::uint64_t strip = strip_rows(layout);
  return (rows + strip - 1) / strip * strip * row_bytes(f, cols);
}

/// The tables of Levels, as unsigned numbers. A format's offset is subtracted from them.
inline constexpr std::array<std::array<std::uint8_t, 16>, 5> kLevels{{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {0, 2},
    {0, 1, 3, 4},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},  // twice 4-bit floats
}};
constexpr int level(const Format& f, std::uint8_t code) {
  return f.levels == Levels::codes ? code : kLevels[static_cast<std::size_t>(f.levels)][code];
}

/// Returns the weights that share a sub-scale, which is the block without sub-scales.
constexpr std::uint32_t sub_block(const Format& f) {
  switch (f.sub.kind) {
    case Sub::none:
      return f.block;
    case Sub::k4:
    case Sub::x4:
      return 32;
    default:
      return 16;
  }
}

/// One unpacked block: codes (levels of a trellis), and the scale and minimum of every sub-block. The minimum is 0 if
/// the format has none.
struct BlockValues {
  std::array<std::uint8_t, kMaxBlock> codes;
  std::array<float, kMaxSubBlocks> scales;
  std::array<float, kMaxSubBlocks> minima;
};

/// Rounds one block of weights to row-major bytes. A partial block must be padded with zeros, and weights must be
/// finite. A scale or minimum beyond fp16's range becomes the largest fp16.
void quantize_block(const Format& f, std::span<const float> weights, std::byte* out);
/// Unpacks a row-major quantized block; the inverse of quantize_block up to rounding.
void unpack_block(const Format& f, const std::byte* block, BlockValues& out);

/// Rounds a row of floats to row-major bytes of any format; f16 saturates at +-65504. out.size() must be row_bytes(f,
/// weights.size()).
void quantize_row(const Format& f, std::span<const float> weights, std::span<std::byte> out);
/// Widens a row-major row of any format to floats. in.size() must be row_bytes(f, out.size()).
void dequantize_row(const Format& f, std::span<const std::byte> in, std::span<float> out);

/// Interleaves 1 to 16 row-major rows, which may be anywhere but in the strip, into one strip of tiles (see tile.h).
/// Missing rows become zeros. strip.size() must be 16 * row_bytes(f, cols).
void tile_rows(const Format& f, std::span<const std::byte* const> rows, std::uint32_t cols, std::span<std::byte> strip);
/// Does the same with the first n_rows rows of `rows`.
void tile_strip(const Format& f, std::span<const std::byte> rows, std::uint32_t n_rows, std::uint32_t cols,
                std::span<std::byte> strip);
/// Returns one row (0..15) of a strip of tiles to row-major blocks. out.size() must be row_bytes(f, cols). The blocks
/// have the values of those that were tiled; bits that make no value, such as the sign of a ternary zero, are 0.
void untile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<std::byte> out);
/// Widens one row (0..15) of a strip of tiles to floats, equal to dequantize_row of the same row.
void dequantize_tile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<float> out);

}  // namespace qsf
