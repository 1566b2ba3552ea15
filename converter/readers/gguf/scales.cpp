// Scales of whole tensors, or of each expert, that GGUF stores in separate tensors (blk.0.attn_q.scale), as in its
// BitNet and NVFP4 models.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/readers/gguf/gguf.h"
#include "converter/tensors/scaled.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Weights times factors, one for each `rows_each` rows. `target` must represent them exactly.
struct ScaledWeights {
  RowsOf source;
  FormatId stored, target;
  std::vector<float> factors;
  std::uint64_t rows_each;
  std::string name;

  Status operator()(std::uint32_t row, std::span<float> weights) const {
    const Format &from = *find_format(stored), &to = *find_format(target);
    const auto cols = static_cast<std::uint32_t>(weights.size());
    std::vector<std::byte> bytes(row_bytes(from, cols)), held(row_bytes(to, cols));
    QSF_TRY(source(row, 1, bytes));
    dequantize_row(from, bytes, weights);
    for (float& w : weights) w *= factors[row / rows_each];
    std::vector<float> back(cols);
    quantize_row(to, weights, held);
    dequantize_row(to, held, back);
    return std::ranges::equal(weights, back) ? Status{} : not_ternary(name, row);
  }
};

bool is_ternary(const Format& format) { return format.rounding == Rounding::ggml_ternary; }

/// Returns the rows that share a factor, of a matrix with one factor or of experts with one each; 0 if the number of
/// factors fits neither.
std::uint64_t rows_of_factor(const std::vector<std::uint64_t>& matrix, const std::vector<std::uint64_t>& factors) {
  if (factors.size() != 1) return 0;
  const auto shape = matrix_shape(matrix);
  if (shape && factors[0] == 1) return (*shape)[0];
  return matrix.size() == 3 && factors[0] == matrix[0] ? matrix[1] : 0;
}

}  // namespace

Status fold_gguf_scales(std::vector<LoadedTensor>& tensors, const Recipe& recipe) {
  // The scales of inputs only say how a device rounds activations to 4 bits.
  constexpr std::string_view kScale = ".scale", kInputScale = ".input_scale", kWeight = ".weight";
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  const auto weight_of = [&](std::string_view name, std::string_view ending) {
    const bool ends = name.ends_with(ending);
    const auto found =
        ends ? places.find(std::string(name.substr(0, name.size() - ending.size())).append(kWeight)) : places.end();
    return found == places.end() ? nullptr : &tensors[found->second];
  };
  for (LoadedTensor& scale : tensors) {
    if (scale.format != FormatId::f32 || !places_of_name(recipe, Naming::gguf, scale.name).empty()) continue;
    if (weight_of(scale.name, kInputScale) != nullptr) scale.rows_of = nullptr;
    LoadedTensor* const tensor = weight_of(scale.name, kScale);
    const Format* const format = tensor != nullptr ? find_format(tensor->format) : nullptr;
    if (format == nullptr) continue;
    const std::uint64_t rows_each = rows_of_factor(tensor->shape, scale.shape);
    if (rows_each == 0) continue;
    std::vector<float> factors(scale.shape[0]);
    QSF_TRY(scale.rows_of(0, 1, std::as_writable_bytes(std::span(factors))));
    for (const float factor : factors) {
      if (!std::isfinite(factor)) {
        return make_error(ErrorCode::bad_input, "GGUF: tensor {:.100} is {}", scale.name, factor);
      }
    }
    if (tensor->format == kNvfp4) {
      scale_nvfp4(*tensor, std::move(factors), rows_each);
      scale.rows_of = nullptr;  // it is used
      continue;
    }
    const FormatId target = is_ternary(*format) ? kScaledTernary : FormatId::f32;
    const auto cols = static_cast<std::uint32_t>(tensor->shape.back());
    RowsOf::Runs runs = same_runs(tensor->rows_of);
    tensor->rows_of = rows_made(
        target, cols, tensor->name,
        ScaledWeights{std::move(tensor->rows_of), tensor->format, target, std::move(factors), rows_each, tensor->name},
        std::move(runs));
    tensor->stored_rows = nullptr;
    tensor->format = target;
    scale.rows_of = nullptr;
  }
  std::erase_if(tensors, [&](const LoadedTensor& tensor) {
    return tensor.format == FormatId::f32 && !tensor.rows_of &&
           (tensor.name.ends_with(kScale) || tensor.name.ends_with(kInputScale));
  });
  return {};
}

}  // namespace qsf::convert
