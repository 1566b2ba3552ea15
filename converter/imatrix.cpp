#include "converter/imatrix.h"

#include <cmath>
#include <string_view>

#include "converter/gguf.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

/// All values of a matrix of f32, as one row each.
Result<std::vector<float>> values_of(const SourceTensor& tensor, std::uint32_t rows, std::uint32_t cols) {
  std::vector<float> values(std::size_t{rows} * cols);
  QSF_TRY(tensor.rows_of(0, rows, std::as_writable_bytes(std::span(values))));
  for (const float value : values) {
    if (std::isfinite(value) && value >= 0) continue;
    return make_error(ErrorCode::bad_input, "tensor {:.100} holds {}, which is no sum of squares", tensor.name, value);
  }
  return values;
}

std::uint32_t section_of(const ModelSource& model, const TensorPlace& place) {
  const Place where = rule_of(place.line->role).place;
  return where == Place::embedding ? 0 : where == Place::layer ? place.layer + 1 : model.config.n_layers + 1;
}

}  // namespace

Result<Calibration> read_imatrix(const Input& file, const ModelSource& model) {
  QSF_LET(gguf, read_gguf(file));
  std::map<std::string_view, const SourceTensor*> by_name;
  for (const SourceTensor& tensor : gguf.tensors) by_name.emplace(tensor.name, &tensor);
  Calibration out;
  for (const auto& [name, tensor] : by_name) {
    if (!name.ends_with(kSums)) continue;
    const std::string weight(name.substr(0, name.size() - kSums.size()));
    const std::vector<TensorPlace> places = places_of_name(*model.recipe, Naming::gguf, weight);
    if (places.empty()) continue;
    const auto shape = matrix_shape(tensor->shape);
    if (!shape || tensor->format != FormatId::f32) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} is no matrix of F32", tensor->name);
    }
    const auto [rows, cols] = *shape;
    QSF_LET(sums, values_of(*tensor, rows, cols));
    Moments moments{cols, 1, 1, {}};
    const auto counts = by_name.find(weight + std::string(kCounts));
    if (counts != by_name.end() && counts->second->format == FormatId::f32) {
      const auto counted = matrix_shape(counts->second->shape);
      if (counted) {
        QSF_LET(numbers, values_of(*counts->second, (*counted)[0], (*counted)[1]));
        moments.n = 0;
        for (const float n : numbers) moments.n += double{n};
      }
    }
    std::vector<double> all(cols);
    for (std::size_t i = 0; i < sums.size(); ++i) all[i % cols] += double{sums[i]};
    moments.sums = std::make_shared<const std::vector<float>>(all.begin(), all.end());
    for (const TensorPlace& place : places) out.emplace(std::pair(section_of(model, place), place.line->role), moments);
  }
  if (out.empty()) {
    return make_error(ErrorCode::bad_input, "{:.140} has no importance of any of the model's matrices", file.name);
  }
  return out;
}

}  // namespace qsf::convert
