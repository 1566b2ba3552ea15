#include "converter/quantize/imatrix.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "converter/conversion/conversion.h"
#include "converter/readers/gguf/gguf.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

/// Returns all values of a matrix of f32, row by row.
Result<std::vector<float>> values_of(const LoadedTensor& tensor, std::uint32_t rows, std::uint32_t cols) {
  std::vector<float> values(std::size_t{rows} * cols);
  QSF_TRY(tensor.rows_of(0, rows, std::as_writable_bytes(std::span(values))));
  for (const float value : values) {
    if (std::isfinite(value) && value >= 0) continue;
    return make_error(ErrorCode::bad_input, "tensor {:.100} holds {}, which is no sum of squares", tensor.name, value);
  }
  return values;
}

/// A matrix of the model that the file may have data for.
struct Target {
  std::uint32_t cols = 0;
  std::uint32_t n_experts = 1;
  std::uint32_t n_heads = 1;  // of a matrix with heads, which each multiply their own part of the input
};
using Targets = std::map<std::pair<std::uint32_t, Role>, Target>;  // by stage and role

/// Whether the columns of a tensor are rows in GGUF, of which llama-imatrix knows nothing.
bool turned_in_gguf(const TensorName& line) {
  const TensorPart& part = line.part_in(Naming::gguf);
  return part.transposed || part.turned_groups;
}
bool turned_in_gguf(const Recipe& recipe, Role role) {
  return std::ranges::all_of(recipe.tensors,
                             [&](const TensorName& line) { return line.role != role || turned_in_gguf(line); });
}

/// Whether a file's rows and columns are those of a matrix. The sums of heads are rows in files of older versions, and
/// follow each other in one row in others.
bool fits(const Target& target, std::uint32_t rows, std::uint32_t cols) {
  if (cols == target.cols && rows == target.n_experts) return true;
  return target.n_heads > 1 && cols % target.cols == 0 &&
         std::uint64_t{rows} * cols == std::uint64_t{target.n_heads} * target.cols;
}

Result<Targets> targets_of(const LoadedModel& model) {
  Options exact;
  exact.matrices = FormatId::f32;
  QSF_LET(file, plan_file(model, exact));
  QSF_LET(layers, layers_of_file(model));
  const LayerTable table = layers.view();
  Targets out;
  for (const TensorSpec& tensor : file.tensors) {
    const RoleRule& rule = rule_of(tensor.role);
    if (!rule.matrix || is_router(tensor.role)) continue;
    if (tensor.stage == guess_stage(file.header, table.model)) continue;  // no program observes it
    if (turned_in_gguf(*model.recipe, tensor.role)) continue;
    const LayerKind& kind = kind_of_stage(file.header, table, tensor.stage);
    out[{tensor.stage, tensor.role}] = {tensor.cols, of_experts(rule) ? kind.n_experts : 1,
                                        of_heads(rule) ? kind.n_heads : 1};
  }
  return out;
}

std::uint32_t stage_of(const LoadedModel& model, const TensorUse& place) {
  const RoleScope where = rule_of(place.line->role).scope;
  return where == RoleScope::embedding ? 0
         : where == RoleScope::layer   ? place.layer + 1
                                       : model.config.all_layers() + 1;
}

/// Checks that all matrices of layers have data. llama-imatrix does not observe those of the embedding and the head.
Status check_whole(const Input& file, const LoadedModel& model, const Targets& targets, const Calibration& found) {
  std::size_t n = 0, n_missing = 0;
  std::string first;
  for (const auto& [key, target] : targets) {
    const auto& [stage, role] = key;
    if (rule_of(role).scope != RoleScope::layer) continue;
    ++n;
    const auto at = found.find(key);
    if (at != found.end() && at->second.n > 0) continue;
    if (n_missing++ == 0) first = name_of(*model.recipe, Naming::gguf, role, stage - 1);
  }
  if (n_missing == 0) return {};
  return make_error(ErrorCode::bad_input,
                    "{:.100} has no importance of {} of the model's {} matrices, such as {:.100}: it is of another "
                    "model, or no text was read",
                    file.name, n_missing, n, first);
}

}  // namespace

Result<Calibration> read_imatrix(const Input& file, const LoadedModel& model, std::vector<std::string>& warnings) {
  const Result<Gguf> gguf = read_gguf(file);
  if (!gguf) {
    return make_error(gguf.error().code, "{:.100}: {:.400}", file.name, std::string_view(gguf.error().sentence));
  }
  if (std::ranges::none_of(gguf->tensors, [](const LoadedTensor& tensor) { return tensor.name.ends_with(kSums); })) {
    return make_error(ErrorCode::bad_input, "{:.100} is no importance matrix of llama-imatrix, whose tensors end in {}",
                      file.name, kSums);
  }
  QSF_LET(targets, targets_of(model));
  std::map<std::string_view, const LoadedTensor*> by_name;
  for (const LoadedTensor& tensor : gguf->tensors) by_name.emplace(tensor.name, &tensor);
  Calibration out;
  std::size_t n_experts = 0, n_unreached = 0;
  for (const auto& [name, tensor] : by_name) {
    if (!name.ends_with(kSums)) continue;
    const std::string weight(name.substr(0, name.size() - kSums.size()));
    std::vector<TensorUse> places = places_of_name(*model.recipe, Naming::gguf, weight);
    std::erase_if(places, [&](const TensorUse& place) {
      return turned_in_gguf(*place.line) || !targets.contains({stage_of(model, place), place.line->role});
    });
    if (places.empty()) continue;
    const auto shape = matrix_shape(tensor->shape);
    if (!shape || tensor->format != FormatId::f32) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} is no matrix of F32", tensor->name);
    }
    const auto [rows, cols] = *shape;
    const Target& target = targets.at({stage_of(model, places.front()), places.front().line->role});
    if (!fits(target, rows, cols)) {
      return make_error(ErrorCode::bad_input,
                        "{:.100} has {} times {} columns of {:.100}, and the model {} times {}: it is of another model",
                        file.name, rows, cols, weight, target.n_experts, target.cols);
    }
    QSF_LET(sums, values_of(*tensor, rows, cols));
    Moments moments{target.cols, 1, 1, {}};
    const auto counts = by_name.find(weight + std::string(kCounts));
    if (counts != by_name.end() && counts->second->format == FormatId::f32) {
      const auto counted = matrix_shape(counts->second->shape);
      if (counted) {
        QSF_LET(numbers, values_of(*counts->second, (*counted)[0], (*counted)[1]));
        moments.n = 0;
        for (const float n : numbers) moments.n += double{n};
        if (target.n_experts > 1) {
          n_experts += numbers.size();
          n_unreached += static_cast<std::size_t>(std::ranges::count(numbers, 0.0f));
        }
      }
    }
    std::vector<double> all(target.cols);
    for (std::size_t i = 0; i < sums.size(); ++i) all[i % all.size()] += double{sums[i]};
    moments.sums = std::make_shared<const std::vector<float>>(all.begin(), all.end());
    for (const TensorUse& place : places) out.emplace(std::pair(stage_of(model, place), place.line->role), moments);
  }
  QSF_TRY(check_whole(file, model, targets, out));
  if (n_unreached != 0) {
    warnings.push_back(std::to_string(n_unreached) + " of " + std::to_string(n_experts) +
                       " matrices of experts were reached by no token of the importance matrix: their columns count as "
                       "those of the others");
  }
  return out;
}

}  // namespace qsf::convert
