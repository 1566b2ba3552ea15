// A type for every matrix, so that a file of a given size loses least.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converter/convert.h"
#include "converter/measure.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// A type that a tensor could have.
struct TypeChoice {
  FormatId format = FormatId::inherit;
  std::uint64_t bytes = 0;
  double loss = 0;  // nats per token that it costs the model
};

struct TensorChoice {
  std::uint32_t section = 0;
  Role role{};
  std::uint64_t weights = 0;
  std::vector<TypeChoice> types;
  std::size_t chosen = 0;
};

/// The least sum of losses whose bytes are at most `bytes`: the types that are best at one price of a byte, then
/// what is left is spent where it gains most. bad_argument, naming the least size, when nothing is small enough.
Status choose_types(std::span<TensorChoice> tensors, std::uint64_t bytes);

/// What a matrix's errors, in relation to its weights, cost the model.
struct LossPoint {
  double error = 0, loss = 0;
};
/// The loss of other errors than those that were measured, the rougher first: a power of them between each two, below
/// the finest in proportion.
double loss_at(double error, std::span<const LossPoint> points);

/// The divergence in nats per token from the source of a model whose tensor has this type and all others are exact.
/// `done` of `total` such measurements are behind it.
using MeasureLoss = std::function<Result<double>(std::pair<std::uint32_t, Role> tensor, FormatId type,
                                                 std::uint64_t done, std::uint64_t total)>;

/// Every matrix that can be rounded and has no type in `options`, with what each type would cost: the errors of some of
/// its rows by the calibration, in the measure of what some types cost the whole model. Of a GGUF file only types that
/// it can have.
Result<std::vector<TensorChoice>> type_choices(const ModelSource& model, const Options& options,
                                               const Calibration& calibration, const MeasureLoss& measure);

/// Gives every matrix of a role a type, as "ROLE=TYPE" says with names of kRoleRules and kFormats. bad_argument for
/// names that are none, roles that are no matrix, routers, and roles that the model does not have.
Status fix_types(const ModelSource& model, std::span<const std::string> wishes, Options& options);

/// Bytes of tensors that are no choice.
Result<std::uint64_t> other_bytes(const ModelSource& model, const Options& options);

/// How many weights a file has, norms and biases included.
Result<std::uint64_t> weights_of(const ModelSource& model, const Options& options);

}  // namespace qsf::convert
