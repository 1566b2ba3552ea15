#include "converter/quantize/allocate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "converter/types/gguf_form.h"
#include "converter/types/written_type.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf::convert {
namespace {

// Types that are the best of their size for some tensor. The choice drops types that others beat.
constexpr std::array<std::string_view, 16> kCandidates{
    "tq1_0",    "trellis2", "q2_0-128", "q2_0", "bitnet-32", "q2_k", "trellis3", "q3_k",
    "trellis4", "iq4_xs",   "iq4_nl",   "q4_k", "q5_k",      "q6_k", "8bit",     "f16"};
// More types for GGUF files, which lack some of the above.
constexpr std::array<std::string_view, 9> kGgmlCandidates{"iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs",
                                                          "iq3_s", "q5_0",    "q5_1",   "q8_0"};
// The types whose losses are measured, coarsest first.
constexpr std::array<std::string_view, 3> kMeasured{"q2_k", "q3_k", "q4_k"};
// The power of errors that losses follow, at least and at most.
constexpr double kLeastSlope = 0.7, kMostSlope = 1.5;
constexpr std::uint32_t kSampledRows = 48;

/// Returns whether the role's type can be chosen. Routers are never rounded; see is_router().
bool has_choice(Role role) { return rule_of(role).matrix && !is_router(role); }

bool chosen_by_size(const TensorSpec& tensor, const Options& options) {
  return has_choice(tensor.role) && !options.types.contains({tensor.stage, tensor.role});
}

/// Returns the matrices whose types are chosen, each with every type and its bytes.
std::vector<TensorChoice> all_types(const FileSpec& file, const Options& options) {
  std::vector<std::string_view> candidates(kCandidates.begin(), kCandidates.end());
  if (options.gguf) candidates.insert(candidates.end(), kGgmlCandidates.begin(), kGgmlCandidates.end());
  std::vector<TensorChoice> out;
  for (const TensorSpec& tensor : file.tensors) {
    if (!chosen_by_size(tensor, options)) continue;
    TensorChoice choice{tensor.stage, tensor.role, std::uint64_t{tensor.rows} * tensor.cols, {}, 0};
    for (const std::string_view name : candidates) {
      const FormatId type = *written_id(name);
      const bool in_rows = options.gguf || !format_of(type).quantized();
      if (format_of(type).grid != Grid::none && *ggml_form(type, tensor.cols) != type) continue;  // whole blocks only
      TensorSpec as = tensor;
      as.format = type;
      as.layout = in_rows ? Layout::rows : Layout::tiles;
      choice.types.push_back({type, written_bytes(as), 0});
    }
    out.push_back(std::move(choice));
  }
  return out;
}

/// Removes the types that a GGUF file cannot have, after the measurement, which uses some of them.
void leave_out_others(TensorChoice& choice, std::uint32_t cols, const Options& options) {
  std::erase_if(choice.types, [&](const TypeChoice& type) {
    const Result<FormatId> form = options.gguf ? ggml_form(type.format, cols) : type.format;
    return !form || *form != type.format;
  });
}

Error too_small(std::uint64_t least, std::uint64_t bytes) {
  return make_error(ErrorCode::bad_argument, "the matrices need at least {} bytes, and {} are left for them", least,
                    bytes);
}

double price(const TypeChoice& type, double per_byte) { return type.loss + per_byte * static_cast<double>(type.bytes); }

std::uint64_t choose_at(std::span<TensorChoice> tensors, double per_byte) {
  std::uint64_t bytes = 0;
  for (TensorChoice& tensor : tensors) {
    const auto best =
        std::ranges::min_element(tensor.types, {}, [&](const TypeChoice& t) { return price(t, per_byte); });
    tensor.chosen = static_cast<std::size_t>(best - tensor.types.begin());
    bytes += best->bytes;
  }
  return bytes;
}

/// Returns the power of errors that losses follow between two points; 1 if there is none.
double slope_of(const LossPoint& rough, const LossPoint& fine) {
  if (!(rough.error > fine.error) || !(rough.loss > 0)) return 1;
  const double slope = std::log(rough.loss / fine.loss) / std::log(rough.error / fine.error);
  return std::clamp(slope, kLeastSlope, kMostSlope);
}

/// Returns the cost of a row's errors in a type.
double cost_in(const Format& type, const RowCost& cost, std::span<const float> weights) {
  std::vector<std::byte> bytes(row_bytes(type, weights.size()));
  std::vector<float> back(weights.size());
  if (type.quantized()) {
    cost.quantize(type, weights, bytes);
  } else {
    quantize_row(type, weights, bytes);
  }
  dequantize_row(type, bytes, back);
  for (std::size_t c = 0; c < back.size(); ++c) back[c] = weights[c] - back[c];
  return cost(back);
}

/// Returns the cost of some rows' errors in every type, relative to that of the rows themselves.
Result<std::vector<double>> relative_errors(const TensorSpec& tensor, const RowCost& cost,
                                            std::span<const TypeChoice> types, const Workers& workers) {
  const std::uint32_t step = std::max(1u, tensor.rows / kSampledRows);
  std::vector<double> errors(types.size()), of_row(types.size());
  double whole = 0;
  std::vector<float> weights(tensor.cols);
  for (std::uint32_t row = step / 2; row < tensor.rows; row += step) {
    QSF_TRY(tensor.rows_of(row, 1, std::as_writable_bytes(std::span(weights))));
    whole += cost(weights);
    parallel_for(workers, static_cast<std::uint32_t>(types.size()),
                 [&](std::uint32_t i) { of_row[i] = cost_in(format_of(types[i].format), cost, weights); });
    for (std::size_t i = 0; i < types.size(); ++i) errors[i] += of_row[i];
  }
  for (double& error : errors) error = whole > 0 ? error / whole : 0;
  return errors;
}

}  // namespace

double loss_at(double error, std::span<const LossPoint> points) {
  const auto proportion = [&](const LossPoint& to) { return to.error > 0 ? to.loss * error / to.error : 0; };
  LossPoint fine = points.back();
  if (!(fine.error > 0) || !(fine.loss > 0)) return proportion(points.front());
  if (error <= fine.error) return proportion(fine);
  for (std::size_t i = points.size() - 1; i-- > 0;) {
    const LossPoint& rough = points[i];
    if (!(rough.error > fine.error)) continue;
    const double slope = slope_of(rough, fine);
    if (error <= rough.error) return fine.loss * std::pow(error / fine.error, slope);
    fine = {rough.error, fine.loss * std::pow(rough.error / fine.error, slope)};
  }
  return fine.loss * std::pow(error / fine.error, slope_of(points.front(), points.back()));
}

Status choose_types(std::span<TensorChoice> tensors, std::uint64_t bytes) {
  double low = 0, high = 1;
  if (choose_at(tensors, low) <= bytes) return {};
  while (choose_at(tensors, high) > bytes && high < 1e30) high *= 4;
  if (const std::uint64_t least = choose_at(tensors, high); least > bytes) return too_small(least, bytes);
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (choose_at(tensors, middle) <= bytes ? high : low) = middle;
  }
  std::uint64_t left = bytes - choose_at(tensors, high);
  while (true) {
    TensorChoice* best = nullptr;
    std::size_t to = 0;
    double most = 0;
    for (TensorChoice& tensor : tensors) {
      const TypeChoice& now = tensor.types[tensor.chosen];
      for (std::size_t i = 0; i < tensor.types.size(); ++i) {
        const TypeChoice& type = tensor.types[i];
        if (type.loss >= now.loss || type.bytes > now.bytes + left) continue;
        const double more = type.bytes > now.bytes ? static_cast<double>(type.bytes - now.bytes) : 1.0;
        const double gain = (now.loss - type.loss) / more;
        if (gain <= most) continue;
        most = gain;
        best = &tensor;
        to = i;
      }
    }
    if (best == nullptr) return {};
    left = left + best->types[best->chosen].bytes - best->types[to].bytes;
    best->chosen = to;
  }
}

Result<std::vector<TensorChoice>> type_choices(const LoadedModel& model, const Options& options,
                                               const Calibration& calibration, const MeasureLoss& measure) {
  Options exact;
  exact.matrices = FormatId::f32;
  QSF_LET(file, plan_file(model, exact));
  std::erase_if(file.tensors, [&](const TensorSpec& tensor) { return !chosen_by_size(tensor, options); });
  std::vector<TensorChoice> out = all_types(file, options);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const TensorSpec& tensor = file.tensors[k];
    TensorChoice& choice = out[k];
    const std::pair key{tensor.stage, tensor.role};
    const auto at = calibration.find(key);
    const RowCost cost = at != calibration.end() && at->second.cols == tensor.cols ? RowCost::of(at->second)
                                                                                   : RowCost::plain(tensor.cols);
    QSF_LET(errors, relative_errors(tensor, cost, choice.types, options.workers));
    std::array<LossPoint, kMeasured.size()> points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const FormatId type = find_format(kMeasured[i])->id;
      const auto which = std::ranges::find(choice.types, type, &TypeChoice::format) - choice.types.begin();
      QSF_LET(loss, measure(key, type, k, out.size()));
      points[i] = {errors[static_cast<std::size_t>(which)], loss};
    }
    for (std::size_t i = 0; i < errors.size(); ++i) choice.types[i].loss = loss_at(errors[i], points);
    leave_out_others(choice, tensor.cols, options);
  }
  return out;
}

Status check_bytes(const LoadedModel& model, const Options& options, std::uint64_t bytes) {
  QSF_LET(file, plan_file(model, options));
  std::erase_if(file.tensors, [&](const TensorSpec& tensor) { return !chosen_by_size(tensor, options); });
  std::vector<TensorChoice> choices = all_types(file, options);
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    leave_out_others(choices[i], file.tensors[i].cols, options);
    least += std::ranges::min(choices[i].types, {}, &TypeChoice::bytes).bytes;
  }
  return least <= bytes ? Status() : too_small(least, bytes);
}

Status mix_types(const LoadedModel& model, const Mixture& mixture, Options& options) {
  options.matrices = written_id(mixture.type);
  options.gguf_file_type = mixture.file;
  QSF_LET(file, plan_file(model, options));
  QSF_LET(layers, layers_of_file(model));
  MixedModel facts{file.header.n_heads / std::max(1u, file.header.n_kv_heads), 0};
  for (const LayerKind& kind : layers.kinds) facts.n_experts = std::max<std::uint32_t>(facts.n_experts, kind.n_experts);
  std::map<Role, std::uint32_t> count, index;
  for (const TensorSpec& tensor : file.tensors) ++count[tensor.role];
  const bool tied = !count.contains(Role::head);
  for (const TensorSpec& tensor : file.tensors) {
    const Role role = tied && tensor.role == Role::token_embd ? Role::head : tensor.role;
    if (!has_choice(tensor.role)) continue;
    const auto type = type_in(mixture, facts, role, index[tensor.role]++, count[tensor.role]);
    if (type) options.types[{tensor.stage, tensor.role}] = *type;
  }
  return {};
}

Status fix_types(const LoadedModel& model, std::span<const std::string> wishes, Options& options) {
  if (wishes.empty()) return {};
  QSF_LET(file, plan_file(model, options));
  for (const std::string& wish : wishes) {
    const std::size_t equals = std::min(wish.find('='), wish.size());
    const std::string_view name = std::string_view(wish).substr(0, equals);
    const std::string_view type = std::string_view(wish).substr(std::min(equals + 1, wish.size()));
    const auto rule = std::ranges::find(kRoleRules, name, &RoleRule::name);
    if (rule == kRoleRules.end() || !has_choice(rule->role)) {
      return make_error(ErrorCode::bad_argument, "{:.60} is no matrix whose type can be chosen", name);
    }
    const std::optional<FormatId> format = written_id(type);
    if (const std::string hint = mixture_hint(type); !hint.empty()) {
      return make_error(ErrorCode::bad_argument, "{}", hint);
    }
    if (!format) return make_error(ErrorCode::bad_argument, "{:.60} is no type of {:.60}", type, name);
    bool found = false;
    for (const TensorSpec& tensor : file.tensors) {
      if (tensor.role != rule->role) continue;
      options.types[{tensor.stage, tensor.role}] = *format;
      found = true;
    }
    if (!found) return make_error(ErrorCode::bad_argument, "the model has no {:.60}", name);
  }
  return {};
}

Result<std::uint64_t> other_bytes(const LoadedModel& model, const Options& options) {
  QSF_LET(file, plan_file(model, options));
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : file.tensors) {
    if (chosen_by_size(tensor, options)) continue;
    bytes += written_bytes(tensor);
  }
  return bytes;
}

Result<std::uint64_t> weights_of(const LoadedModel& model, const Options& options) {
  QSF_LET(file, plan_file(model, options));
  std::uint64_t weights = 0;
  for (const TensorSpec& tensor : file.tensors) weights += std::uint64_t{tensor.rows} * tensor.cols;
  return weights;
}

}  // namespace qsf::convert
