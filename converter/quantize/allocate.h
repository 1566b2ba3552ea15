// A type for each matrix, such that a file of a given size has the smallest loss.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converter/conversion/conversion.h"
#include "converter/rounding/measure.h"
#include "converter/types/mixture.h"
#include "qsf/base/result.h"

namespace qsf::convert {

struct TypeChoice {
  FormatId format = FormatId::inherit;
  std::uint64_t bytes = 0;
  double loss = 0;  // nats per token that it costs the model
};

struct TensorChoice {
  std::uint32_t stage = 0;
  Role role{};
  std::uint64_t weights = 0;
  std::vector<TypeChoice> types;
  std::size_t chosen = 0;
};

/// Minimizes the sum of losses within `bytes`. First takes the types that are best at one price of a byte, then spends
/// the remaining bytes on the largest gains. Returns bad_argument, with the smallest size, if nothing is small enough.
Status choose_types(std::span<TensorChoice> tensors, std::uint64_t bytes);

/// The loss of the model for an error of a matrix relative to its weights.
struct LossPoint {
  double error = 0, loss = 0;
};
/// Returns the loss for an error that was not measured. `points` start with the coarsest. Between two points the loss
/// is a power of the error; below the finest it is proportional.
double loss_at(double error, std::span<const LossPoint> points);

/// Returns the divergence in nats per token of the model with one tensor in this type and all others exact. `done` of
/// `total` measurements are finished.
using MeasureLoss = std::function<Result<double>(std::pair<std::uint32_t, Role> tensor, FormatId type,
                                                 std::uint64_t done, std::uint64_t total)>;

/// Returns every matrix that can be rounded and has no type in `options`, with the cost of each type: the errors of
/// some of its rows by the calibration, scaled by the loss that some types cause in the whole model. For a GGUF file,
/// only types that it can have.
Result<std::vector<TensorChoice>> type_choices(const LoadedModel& model, const Options& options,
                                               const Calibration& calibration, const MeasureLoss& measure);

/// Gives every matrix its type of a mixture.
Status mix_types(const LoadedModel& model, const Mixture& mixture, Options& options);

/// Gives every matrix of a role a type. A wish is "ROLE=TYPE" with names of kRoleRules and kFormats. Returns
/// bad_argument for unknown names, roles that are not matrices, routers, and roles that the model does not have.
Status fix_types(const LoadedModel& model, std::span<const std::string> wishes, Options& options);

/// Returns the bytes of the tensors that have no choice.
Result<std::uint64_t> other_bytes(const LoadedModel& model, const Options& options);

/// Returns bad_argument, with the smallest size as in choose_types, if the matrices cannot fit in these bytes. Measures
/// nothing.
Status check_bytes(const LoadedModel& model, const Options& options, std::uint64_t bytes);

/// Returns the number of weights of the file, norms and biases included.
Result<std::uint64_t> weights_of(const LoadedModel& model, const Options& options);

}  // namespace qsf::convert
