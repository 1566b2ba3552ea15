#include <algorithm>
#include <cmath>

#include "model/pass.h"

namespace qsf {
namespace {

Advance rms_step(Pass& pass, const Op& op) {
  const float* weight = pass.vector(op.weight);
  const std::uint32_t n = pass.width(op.in);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().rms_norm(pass.at(op.in, t), weight, pass.at(op.out, t), n, op.factor);
    }
  });
  pass.count(op_rms_norm.name, {}, pass.n());
  return Advance::done;
}

Advance layer_step(Pass& pass, const Op& op) {
  const float* weight = pass.vector(op.weight, 0);
  const float* bias = op.has_bias ? pass.vector(op.bias, 1) : nullptr;
  const std::uint32_t n = pass.width(op.in);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().layer_norm(pass.at(op.in, t), weight, bias, pass.at(op.out, t), n, op.factor);
    }
  });
  pass.count(op_layer_norm.name, {}, pass.n());
  return Advance::done;
}

/// Normalizes every head of `out`, [n, n_heads, head_dim], in place.
Advance heads_step(Pass& pass, const Op& op, std::uint32_t head_dim, const float* weight, float epsilon) {
  const std::uint32_t n_heads = pass.width(op.out) / head_dim;
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::size_t i = 0; i < std::size_t{count} * n_heads; ++i) {
      float* const head = pass.at(op.out, begin) + i * head_dim;
      pass.kernels().rms_norm(head, weight, head, head_dim, epsilon);
    }
  });
  pass.count(op.row->name, {}, std::uint64_t{pass.n()} * n_heads);
  return Advance::done;
}

Advance head_norm_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  return heads_step(pass, op, kind.state_value_dim, pass.vector(op.weight), kind.norm_epsilon);
}

/// Normalizes the values of each key head of a state, which have weights of their own.
Advance group_norm_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const float* const weight = pass.vector(op.weight);
  const std::uint32_t size = kind.heads_of_key() * kind.state_value_dim;
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count * kind.state_key_heads; ++i) {
      float* const group = pass.at(op.out, begin) + std::size_t{i} * size;
      pass.kernels().rms_norm(group, weight + std::size_t{i % kind.state_key_heads} * size, group, size,
                              kind.norm_epsilon);
    }
  });
  pass.count(op.row->name, {}, std::uint64_t{pass.n()} * kind.state_key_heads);
  return Advance::done;
}

/// Normalizes the heads of the values without weights.
Advance value_norm_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  return heads_step(pass, op, kind.head_dim, nullptr, kind.norm_epsilon);
}

/// Scales the keys or queries of a state to the op's factor as their length: factor * x / sqrt(sum of x^2 + 1e-6). This
/// is the RMS norm with this weight and epsilon.
Advance unit_step(Pass& pass, const Op& op) {
  const std::uint32_t n = pass.program().kind->state_key_dim;
  const double root = std::sqrt(static_cast<double>(n));
  float* const weight = pass.row();
  std::fill_n(weight, n, static_cast<float>(double{op.factor} / root));
  return heads_step(pass, op, n, weight, 1e-6f / static_cast<float>(n));
}

}  // namespace

const OpRow op_rms_norm{"rms_norm", Work::norm, rms_step};
const OpRow op_layer_norm{"layer_norm", Work::norm, layer_step};
const OpRow op_value_norm{"rms_norm", Work::norm, value_norm_step};
const OpRow op_group_norm{"head_norm", Work::norm, group_norm_step};
const OpRow op_head_norm{"head_norm", Work::norm, head_norm_step};
const OpRow op_unit_heads{"unit_heads", Work::norm, unit_step};

}  // namespace qsf
