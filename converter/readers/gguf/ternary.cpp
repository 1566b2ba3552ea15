#include "converter/readers/gguf/ternary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr FormatId kInline = own_type(22), kNoScale = own_type(23);
constexpr std::uint64_t kTail = 32;        // Microsoft's bytes after the codes: a float and padding
constexpr std::uint64_t kTolerance = 128;  // most bytes of padding after a tensor

/// A layout: the weights and bytes of its blocks.
struct LayoutLine {
  TernaryLayout layout;
  std::string_view name;
  std::uint32_t block, block_bytes;
  std::uint64_t tail;
  bool whole_blocks;  // rows end with blocks
};
/// If the layout is automatic, tensors with separate scales are split32, and only those. Among equals the first is
/// taken.
constexpr std::array kLayouts{
    LayoutLine{TernaryLayout::split32, "split32", 32, 8, 0, true},
    LayoutLine{TernaryLayout::microsoft, "microsoft", 128, 32, kTail, true},
    LayoutLine{TernaryLayout::qk256, "qk256", 256, 64, 0, false},
    LayoutLine{TernaryLayout::inline32, "inline32", 32, 10, 0, false},
};

struct Extents {
  std::uint64_t rows, cols;
  std::uint64_t bytes(const LayoutLine& line) const {
    return rows * ((cols + line.block - 1) / line.block) * line.block_bytes + line.tail;
  }
  bool fits(const LayoutLine& line, std::uint64_t room) const {
    return (!line.whole_blocks || cols % line.block == 0) && bytes(line) <= room;
  }
};

/// Codes of 128 weights in 32 bytes, with one scale for all.
struct OneScaleRows {
  Input file;
  std::uint64_t begin, codes;  // bytes of a row
  float scale;

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    const Format& format = *find_format(kScaledTernary);
    const std::uint64_t at_once = format.scale.at;
    QSF_LET(bytes, read_range(file, begin + first * codes, rows * codes));
    if (out.size() != bytes.size() / at_once * format.block_bytes) {
      return make_error(ErrorCode::internal, "{} rows of ternary codes were asked of {} bytes", rows, out.size());
    }
    std::byte* to = out.data();
    for (std::size_t from = 0; from < bytes.size(); from += at_once, to += format.block_bytes) {
      std::copy_n(&bytes[from], at_once, to);
      store_le(to + format.scale.at, scale);
    }
    return {};
  }
};

/// Codes of 32 weights in 8 bytes, and separate scales, one for each block. Rows with f16 scales become blocks; with
/// f32 scales they become floats.
struct ApartRows {
  Input file;
  std::uint64_t begin, scales_begin, blocks;  // of a row
  FormatId scales;

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    const Format &format = *find_format(kInline), &scale_format = *find_format(scales);
    const std::uint64_t codes = format.scale.at, width = scale_format.block_bytes, count = rows * blocks;
    const bool half = scales == FormatId::f16;
    if (out.size() != count * (half ? format.block_bytes : format.block * sizeof(float))) {
      return make_error(ErrorCode::internal, "{} rows of {} blocks were asked of {} bytes", rows, blocks, out.size());
    }
    QSF_LET(code_bytes, read_range(file, begin + first * blocks * codes, count * codes));
    QSF_LET(scale_bytes, read_range(file, scales_begin + first * blocks * width, count * width));
    for (std::uint64_t i = 0; i < count; ++i) {
      std::array<std::byte, kMaxBlockBytes> block{};
      std::copy_n(&code_bytes[i * codes], codes, block.data());
      if (half) {
        std::copy_n(&scale_bytes[i * width], width, block.data() + format.scale.at);
        std::copy_n(block.data(), format.block_bytes, &out[i * format.block_bytes]);
        continue;
      }
      BlockValues values;
      unpack_block(format, block.data(), values);
      const auto scale = load_le<float>(&scale_bytes[i * width]);
      for (std::size_t k = 0; k < format.block; ++k) {
        const auto weight = static_cast<float>(level(format, values.codes[k]) - format.offset);
        store_le(&out[(i * format.block + k) * sizeof(float)], scale * weight);
      }
    }
    return {};
  }
};

Status place_apart(const Input& file, TensorBytes at, const LoadedTensor& scales, TensorBytes scales_at,
                   const Extents& extents, LoadedTensor& tensor) {
  const std::uint64_t blocks = extents.cols / kGroup;
  std::uint64_t count = 1;
  for (const std::uint64_t extent : scales.shape) count = extent > kMaxVocab ? 0 : std::min(count * extent, at.room);
  const bool half = scales.format == FormatId::f16;
  if ((!half && scales.format != FormatId::f32) || count != extents.rows * blocks) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} has {} blocks, but {:.80} is {:.20} of another size",
                      tensor.name, extents.rows * blocks, scales.name, scales.type);
  }
  tensor.format = half ? kInline : FormatId::f32;
  tensor.rows_of = ApartRows{file, at.begin, scales_at.begin, blocks, scales.format};
  return {};
}

}  // namespace

std::vector<std::string> ternary_scale_names(std::string_view of) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::string> names;
  for (const std::string_view stem : {of, of.substr(0, of.size() - (of.ends_with(kWeight) ? kWeight.size() : 0))}) {
    for (const char* ending : {".scale", ".scales", "_scale", "_scales"}) names.push_back(std::string(stem) + ending);
  }
  return names;
}

Result<std::uint64_t> place_ternary(const Input& file, TensorBytes at, const LoadedTensor* scales,
                                    TensorBytes scales_at, TernaryLayout layout, LoadedTensor& tensor) {
  const auto shape = matrix_shape(tensor.shape);
  if (!shape || (*shape)[0] > kMaxVocab || (*shape)[1] > kMaxVocab) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} of I2_S is no matrix", tensor.name);
  }
  const Extents extents{(*shape)[0], (*shape)[1]};
  // The layout that leaves the fewest bytes, because the size of a small tensor may fit several.
  const LayoutLine* line = nullptr;
  std::uint64_t least = layout == TernaryLayout::automatic ? kTolerance + 1 : ~std::uint64_t{0};
  for (const LayoutLine& each : kLayouts) {
    const bool meant = layout == TernaryLayout::automatic
                           ? (each.layout == TernaryLayout::split32) == (scales != nullptr)
                           : each.layout == layout;
    if (!meant || !extents.fits(each, at.room) || at.room - extents.bytes(each) >= least) continue;
    line = &each;
    least = at.room - extents.bytes(each);
  }
  if (!line || (line->layout == TernaryLayout::split32 && !scales)) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} of I2_S, {} x {} in {} bytes, {}", tensor.name,
                      extents.rows, extents.cols, at.room,
                      line                                 ? "has no tensor of scales"
                      : layout == TernaryLayout::automatic ? "has no known layout"
                                                           : "does not have the layout of --i2s");
  }
  const std::uint64_t size = extents.bytes(*line), row = (size - line->tail) / extents.rows;
  switch (line->layout) {
    case TernaryLayout::automatic:
      break;
    case TernaryLayout::split32:
      QSF_TRY(place_apart(file, at, *scales, scales_at, extents, tensor));
      break;
    case TernaryLayout::microsoft: {
      QSF_LET(tail, read_range(file, at.begin + size - line->tail, sizeof(float)));
      const auto scale = load_le<float>(tail.data());
      if (!std::isfinite(scale)) {
        return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} has the scale {}", tensor.name, scale);
      }
      tensor.format = kScaledTernary;
      tensor.rows_of = OneScaleRows{file, at.begin, row, scale};
      break;
    }
    case TernaryLayout::qk256:
    case TernaryLayout::inline32:
      tensor.format = line->layout == TernaryLayout::qk256 ? kNoScale : kInline;
      tensor.rows_of = rows_in(file, at.begin, size, row);
      break;
  }
  return size;
}

}  // namespace qsf::convert
