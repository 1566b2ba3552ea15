#include "model/pass.h"

namespace qsf {
namespace {

Advance rms_step(Pass& pass, const Op& op) {
  const float* weight = pass.vector(op.weight);
  const std::uint32_t n = pass.width(op.in);
  const float epsilon = pass.program().kind->norm_epsilon;
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().rms_norm(pass.at(op.in, t), weight, pass.at(op.out, t), n, epsilon);
    }
  });
  pass.count(op_rms_norm.name, {}, pass.n());
  return Advance::done;
}

Advance layer_step(Pass& pass, const Op& op) {
  const float* weight = pass.vector(op.weight, 0);
  const float* bias = op.has_bias ? pass.vector(op.bias, 1) : nullptr;
  const std::uint32_t n = pass.width(op.in);
  const float epsilon = pass.program().kind->norm_epsilon;
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().layer_norm(pass.at(op.in, t), weight, bias, pass.at(op.out, t), n, epsilon);
    }
  });
  pass.count(op_layer_norm.name, {}, pass.n());
  return Advance::done;
}

}  // namespace

const OpRow op_rms_norm{"rms_norm", Work::norm, rms_step};
const OpRow op_layer_norm{"layer_norm", Work::norm, layer_step};

}  // namespace qsf
