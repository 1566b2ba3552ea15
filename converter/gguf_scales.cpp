// Scales that GGUF keeps beside a whole tensor (blk.0.attn_q.scale), as its BitNet and NVFP4 models do.
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/gguf.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr FormatId kWithScale = own_type(21);

/// Rows times a factor: ternary ones with it as their scale, others as floats.
struct ScaledRows {
  RowsOf source;
  FormatId stored, target;
  std::uint32_t cols;
  float factor;
  std::string name;

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    const Format &from = *find_format(stored), &to = *find_format(target);
    const std::uint64_t from_size = row_bytes(from, cols), size = row_bytes(to, cols);
    if (out.size() != rows * size) {
      return make_error(ErrorCode::internal, "{} rows of {:.80} were asked of {} bytes", rows, name, out.size());
    }
    std::vector<std::byte> bytes(rows * from_size);
    QSF_TRY(source(first, rows, bytes));
    std::vector<float> row(cols), back(cols);
    for (std::uint32_t r = 0; r < rows; ++r) {
      const std::span<std::byte> scaled = out.subspan(r * size, size);
      dequantize_row(from, std::span<const std::byte>(bytes).subspan(r * from_size, from_size), row);
      for (float& w : row) w *= factor;
      quantize_row(to, row, scaled);
      dequantize_row(to, scaled, back);
      if (row == back) continue;
      return make_error(ErrorCode::bad_input, "tensor {:.100} has weights in row {} that are none of -1, 0 and 1", name,
                        first + r);
    }
    return {};
  }
};

bool is_ternary(const Format& format) { return format.rounding == Rounding::ggml_ternary; }

}  // namespace

Status fold_gguf_scales(std::vector<SourceTensor>& tensors) {
  constexpr std::string_view kScale = ".scale", kWeight = ".weight";
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  for (SourceTensor& scale : tensors) {
    const std::string_view name = scale.name;
    const auto weight = name.ends_with(kScale)
                            ? places.find(std::string(name.substr(0, name.size() - kScale.size())).append(kWeight))
                            : places.end();
    if (weight == places.end() || scale.format != FormatId::f32 || scale.shape != std::vector<std::uint64_t>{1}) {
      continue;
    }
    SourceTensor& tensor = tensors[weight->second];
    const auto shape = matrix_shape(tensor.shape);
    const Format* format = find_format(tensor.format);
    if (!shape || !format) continue;
    float factor = 0;
    QSF_TRY(scale.rows_of(0, 1, std::as_writable_bytes(std::span(&factor, 1))));
    if (!std::isfinite(factor)) {
      return make_error(ErrorCode::bad_input, "GGUF: tensor {:.100} is {}", scale.name, factor);
    }
    const FormatId target = is_ternary(*format) ? kWithScale : FormatId::f32;
    tensor.rows_of = ScaledRows{std::move(tensor.rows_of), tensor.format, target, (*shape)[1], factor, tensor.name};
    tensor.format = target;
    scale.rows_of = nullptr;  // it is used
  }
  std::erase_if(tensors, [&](const SourceTensor& tensor) {
    return tensor.format == FormatId::f32 && !tensor.rows_of && tensor.name.ends_with(kScale);
  });
  return {};
}

}  // namespace qsf::convert
