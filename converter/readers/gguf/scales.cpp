// Scales of whole tensors that GGUF stores in separate tensors (blk.0.attn_q.scale), as in its BitNet and NVFP4 models.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/readers/gguf/gguf.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Weights times a factor. `target` must represent them exactly.
struct ScaledWeights {
  RowsOf source;
  FormatId stored, target;
  float factor;
  std::string name;

  Status operator()(std::uint32_t row, std::span<float> weights) const {
    const Format &from = *find_format(stored), &to = *find_format(target);
    const auto cols = static_cast<std::uint32_t>(weights.size());
    std::vector<std::byte> bytes(row_bytes(from, cols)), held(row_bytes(to, cols));
    QSF_TRY(source(row, 1, bytes));
    dequantize_row(from, bytes, weights);
    for (float& w : weights) w *= factor;
    std::vector<float> back(cols);
    quantize_row(to, weights, held);
    dequantize_row(to, held, back);
    return std::ranges::equal(weights, back) ? Status{} : not_ternary(name, row);
  }
};

bool is_ternary(const Format& format) { return format.rounding == Rounding::ggml_ternary; }

}  // namespace

Status fold_gguf_scales(std::vector<LoadedTensor>& tensors) {
  constexpr std::string_view kScale = ".scale", kWeight = ".weight";
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  for (LoadedTensor& scale : tensors) {
    const std::string_view name = scale.name;
    const auto weight = name.ends_with(kScale)
                            ? places.find(std::string(name.substr(0, name.size() - kScale.size())).append(kWeight))
                            : places.end();
    if (weight == places.end() || scale.format != FormatId::f32 || scale.shape != std::vector<std::uint64_t>{1}) {
      continue;
    }
    LoadedTensor& tensor = tensors[weight->second];
    const auto shape = matrix_shape(tensor.shape);
    const Format* format = find_format(tensor.format);
    if (!shape || !format) continue;
    float factor = 0;
    QSF_TRY(scale.rows_of(0, 1, std::as_writable_bytes(std::span(&factor, 1))));
    if (!std::isfinite(factor)) {
      return make_error(ErrorCode::bad_input, "GGUF: tensor {:.100} is {}", scale.name, factor);
    }
    const FormatId target = is_ternary(*format) ? kScaledTernary : FormatId::f32;
    RowsOf::Runs runs = same_runs(tensor.rows_of);
    tensor.rows_of = rows_made(target, (*shape)[1], tensor.name,
                               ScaledWeights{std::move(tensor.rows_of), tensor.format, target, factor, tensor.name},
                               std::move(runs));
    tensor.stored_rows = nullptr;
    tensor.format = target;
    scale.rows_of = nullptr;  // it is used
  }
  std::erase_if(tensors, [&](const LoadedTensor& tensor) {
    return tensor.format == FormatId::f32 && !tensor.rows_of && tensor.name.ends_with(kScale);
  });
  return {};
}

}  // namespace qsf::convert
