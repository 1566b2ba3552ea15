// The quantization formats, declared as data. Packing, tiling, dequantizing, kernels, tests and docs follow from a
// declaration in kFormats; a new format is one line there (and its block functions in blocks.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace qsf {

/// The quantization type as the file stores it. 0-5 are the seed format's; 64 + n is GGML's type n, carried as it is.
enum class FormatId : std::uint8_t {
  q4 = 3,     // 64 weights: fp16 scale, fp16 minimum, 4-bit codes
  mixed = 5,  // header only: every tensor says its own
  f32 = 16,
  f16 = 17,
  bf16 = 18,
  q8 = 19,  // 64 weights: fp16 scale, int8 codes
  ggml_q4_0 = 64 + 2,
  ggml_q8_0 = 64 + 8,
  inherit = 0xff,  // tensor header only: the layer's type
};

/// How a tensor's quantized rows lie in the file and in memory.
enum class Layout : std::uint8_t {
  rows = 0,   // block after block, row after row
  tiles = 1,  // strips of 16 rows; in a strip, tile after tile along the columns
};

inline constexpr std::uint32_t kTileRows = 16;
inline constexpr std::uint32_t kGroup = 32;  // activations that share one scale; divides every quantized block

/// How a row-major block packs its codes, after its fp16 scale and (where there is one) its fp16 minimum.
enum class CodeOrder : std::uint8_t {
  none,      // float formats
  bytes,     // int8, the unsigned code less 128
  adjacent,  // element 2j in the low nibble of byte j, 2j + 1 in the high
  halves,    // element j in the low nibble of byte j, j + block / 2 in the high (GGML)
};

/// How a block of weights is rounded to codes.
enum class Rounding : std::uint8_t {
  none,             // float formats: half to even
  min_max,          // scale = (max - min) / top code; codes half to even against the rounded scale and minimum
  symmetric,        // scale = max |w| / 127; codes half to even against the rounded scale
  ggml_signed_max,  // GGML's reference for q4_0: the weight of largest magnitude becomes code 0
  ggml_symmetric,   // GGML's reference for q8_0: codes half away from zero against the scale before rounding
};

/// One weight is scale * (code - offset) + minimum. Float formats have code_bits 0 and block 1.
struct Format {
  FormatId id;
  std::string_view name;
  std::uint16_t block;        // weights that share one scale
  std::uint16_t block_bytes;  // of one row-major block
  std::uint8_t code_bits;     // 0: the weight itself, block_bytes wide
  std::uint8_t offset;        // taken from every unsigned code
  bool has_min;               // a float minimum is added to every weight
  CodeOrder order;
  Rounding rounding;

  constexpr bool quantized() const { return code_bits != 0; }
};

inline constexpr std::array kFormats{
    //     id                  name    block bytes bits offset min order of codes, rounding
    Format{FormatId::f32, "f32", 1, 4, 0, 0, false, CodeOrder::none, Rounding::none},
    Format{FormatId::f16, "f16", 1, 2, 0, 0, false, CodeOrder::none, Rounding::none},
    Format{FormatId::bf16, "bf16", 1, 2, 0, 0, false, CodeOrder::none, Rounding::none},
    Format{FormatId::q8, "8bit", 64, 66, 8, 128, false, CodeOrder::bytes, Rounding::symmetric},
    Format{FormatId::q4, "4bit", 64, 36, 4, 0, true, CodeOrder::adjacent, Rounding::min_max},
    Format{FormatId::ggml_q4_0, "q4_0", 32, 18, 4, 8, false, CodeOrder::halves, Rounding::ggml_signed_max},
    Format{FormatId::ggml_q8_0, "q8_0", 32, 34, 8, 128, false, CodeOrder::bytes, Rounding::ggml_symmetric},
};

/// Position in kFormats, or -1.
constexpr int format_index(FormatId id) {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].id == id) return static_cast<int>(i);
  }
  return -1;
}
/// nullptr when this build has no such format.
const Format* find_format(FormatId id);
const Format* find_format(std::string_view name);

/// Bytes of one row-major row of `cols` weights; a partial last block is stored whole.
constexpr std::uint64_t row_bytes(const Format& f, std::uint64_t cols) {
  return (cols + f.block - 1) / f.block * f.block_bytes;
}
/// Rows that lie together: a run of rows can only be cut between strips.
constexpr std::uint32_t strip_rows(Layout layout) { return layout == Layout::tiles ? kTileRows : 1; }
/// Bytes of a tensor [rows, cols]; tiles pad the rows to a multiple of 16.
constexpr std::uint64_t tensor_bytes(const Format& f, Layout layout, std::uint64_t rows, std::uint64_t cols) {
  const std::uint64_t strip = strip_rows(layout);
  return (rows + strip - 1) / strip * strip * row_bytes(f, cols);
}

/// One unpacked block: `block` codes, its scale and (0 without one) its minimum.
struct BlockValues {
  std::array<std::uint8_t, 256> codes;
  float scale;
  float minimum;
  std::uint16_t scale_f16;    // as stored
  std::uint16_t minimum_f16;  // as stored
};

/// Rounds one block of weights (a partial block comes padded with zeros) to row-major bytes. Weights must be finite;
/// a scale or minimum beyond fp16's range becomes the largest fp16.
void quantize_block(const Format& f, std::span<const float> weights, std::byte* out);
/// The inverse up to rounding: what a row-major quantized block holds.
void unpack_block(const Format& f, const std::byte* block, BlockValues& out);

/// A row of floats to row-major bytes, any format; f16 saturates at +-65504. out.size() == row_bytes(f,
/// weights.size()).
void quantize_row(const Format& f, std::span<const float> weights, std::span<std::byte> out);
/// A row-major row to floats, any format. in.size() == row_bytes(f, out.size()).
void dequantize_row(const Format& f, std::span<const std::byte> in, std::span<float> out);

/// Interleaves up to 16 row-major rows into one strip of tiles. `rows` holds n_rows rows; missing ones become zeros.
/// strip.size() == 16 * row_bytes(f, cols). Tile: 16 fp16 scales, 16 fp16 minima if any, then the codes in groups of
/// 4 columns (byte 4r + c of 64 is row r, column 4g + c); 4-bit codes put columns 8k..8k+3 in the low and 8k+4..8k+7 in
/// the high nibbles of 64 bytes.
void tile_strip(const Format& f, std::span<const std::byte> rows, std::uint32_t n_rows, std::uint32_t cols,
                std::span<std::byte> strip);
/// One row (0..15) of a strip of tiles to floats; equals dequantize_row of the row it was made from.
void dequantize_tile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<float> out);

}  // namespace qsf
