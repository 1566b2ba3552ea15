// Ops that compute each value of a column by itself.
#include <algorithm>
#include <array>

#include "model/ops/parts.h"
#include "qsf/base/exact.h"

namespace qsf {
namespace {

/// Calls body(begin, n) with neighbouring columns as one vector of n values.
template <class Body>
Advance pointwise(Pass& pass, const Op& op, Body body) {
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) { body(begin, count * pass.width(op.out)); });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

template <auto kActivation>
Advance activate(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    (pass.kernels().*kActivation)(pass.at(op.out, begin), op.in == Buf::none ? nullptr : pass.at(op.in, begin), n);
  });
}

Advance add(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    pass.kernels().add(pass.at(op.out, begin), pass.at(op.in, begin), n);
  });
}

Advance add_vector(Pass& pass, const Op& op) {
  const float* vector = pass.vector(op.weight);
  const std::uint32_t n = pass.width(op.out);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) pass.kernels().add(pass.at(op.out, t), vector, n);
  });
  pass.count(op_add.name, {}, pass.n());
  return Advance::done;
}

/// Removes the columns that want no logits from the rest of the stage.
Advance hidden(Pass& pass, const Op&) {
  pass.keep_logits();
  return Advance::done;
}

Advance scale(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    pass.kernels().scale(pass.at(op.out, begin), op.factor, n);
  });
}

/// `in` has the factors of the gates in `out`.
Advance limit(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    limit_gates(*pass.program().kind, pass.at(op.out, begin), pass.at(op.in, begin), n);
  });
}

Advance copy(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    std::copy_n(pass.at(op.in, begin), n, pass.at(op.out, begin));
  });
}

/// Multiplies by a weight of one value.
Advance scale_by(Pass& pass, const Op& op) {
  const float factor = *pass.vector(op.weight);
  return pointwise(
      pass, op, [&](std::uint32_t begin, std::uint32_t n) { pass.kernels().scale(pass.at(op.out, begin), factor, n); });
}

Advance soft_cap(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    pass.kernels().soft_cap(pass.at(op.out, begin), n, op.factor);
  });
}

Advance mul(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    pass.kernels().mul(pass.at(op.out, begin), pass.at(op.in, begin), n);
  });
}

/// out = in / (1 + e^-out)
Advance sigmoid_gate(Pass& pass, const Op& op) {
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    float* const gate = pass.at(op.out, begin);
    const float* const x = pass.at(op.in, begin);
    sigmoid_divisors(pass.kernels(), gate, n);
    for (std::uint32_t i = 0; i < n; ++i) gate[i] = x[i] / gate[i];
  });
}

}  // namespace

void sigmoid_divisors(const Kernels& kernels, float* x, std::uint32_t n) {
  kernels.scale(x, -1, n);
  kernels.exp(x, n);
  for (std::uint32_t i = 0; i < n; ++i) x[i] = 1 + x[i];
}

/// Applies the slope b before the activation f, which follows: f(b g) / b * u is f(b g) * (u / b).
void limit_gates(const LayerKind& kind, float* gate, float* up, std::uint32_t n) {
  const float most = kind.gate_limit != 0 ? kind.gate_limit : __builtin_inff();
  const float slope = kind.gate_slope, inverse = 1.0f / slope;
  for (std::uint32_t i = 0; i < n; ++i) {
    const float g = gate[i] > most ? most : gate[i];
    const float u = up[i] > most ? most : up[i] < -most ? -most : up[i];
    gate[i] = g * slope;
    up[i] = (u + kind.up_offset) * inverse;
  }
}

const OpRow op_silu{"silu", Work::activate, activate<&Kernels::silu>};
const OpRow op_gelu{"gelu", Work::activate, activate<&Kernels::gelu>};
const OpRow op_gelu_erf{"gelu_erf", Work::activate, activate<&Kernels::gelu_erf>};
const OpRow op_relu{"relu", Work::activate, activate<&Kernels::relu>};
const OpRow op_relu2{"relu2", Work::activate, activate<&Kernels::relu2>};

namespace {

struct ActivationLine {
  Activation activation;
  const OpRow* row;
  Activate* Kernels::* kernel;
};
constexpr std::array kActivations{ActivationLine{Activation::silu, &op_silu, &Kernels::silu},
                                  ActivationLine{Activation::gelu, &op_gelu, &Kernels::gelu},
                                  ActivationLine{Activation::relu, &op_relu, &Kernels::relu},
                                  ActivationLine{Activation::gelu_erf, &op_gelu_erf, &Kernels::gelu_erf},
                                  ActivationLine{Activation::relu2, &op_relu2, &Kernels::relu2}};

const ActivationLine& line_of(Activation activation) {
  const auto* const line = std::ranges::find(kActivations, activation, &ActivationLine::activation);
  return line != kActivations.end() ? *line : kActivations.front();
}

/// xIELU (Huang and Schlag 2024): a x^2 + beta x above 0, else b (e^min(x, eps) - 1 - x) + beta x, where a is
/// softplus(xielu_p) and b is beta + softplus(xielu_n). The result is multiplied by `in`, if the op has it.
Advance xielu(Pass& pass, const Op& op) {
  const auto number = [&](Role role) { return *pass.vector(role); };
  const auto softplus = [](float x) { return static_cast<float>(exact::log(1 + exact::exp(double{x}))); };
  const float beta = number(Role::xielu_beta), eps = number(Role::xielu_eps);
  const float above = softplus(number(op.weight)), below = beta + softplus(number(Role::xielu_n));
  return pointwise(pass, op, [&](std::uint32_t begin, std::uint32_t n) {
    float* const x = pass.at(op.out, begin);
    const float* const up = op.in == Buf::none ? nullptr : pass.at(op.in, begin);
    constexpr std::uint32_t kBlock = 64;
    for (std::uint32_t at = 0; at < n; at += kBlock) {
      std::array<float, kBlock> power{};
      const std::uint32_t block = std::min(n - at, kBlock);
      for (std::uint32_t i = 0; i < block; ++i) power[i] = std::min(x[at + i], eps);
      pass.kernels().exp(power.data(), block);
      for (std::uint32_t i = 0; i < block; ++i) {
        const float v = x[at + i], curve = v > 0 ? above * v * v : below * (power[i] - 1 - v);
        x[at + i] = (curve + beta * v) * (up != nullptr ? up[at + i] : 1.0f);
      }
    }
  });
}

}  // namespace

const OpRow op_xielu{"xielu", Work::activate, xielu};
const OpRow& activation_row(Activation activation) { return *line_of(activation).row; }
Activate* activation_of(const Kernels& kernels, Activation activation) { return kernels.*line_of(activation).kernel; }

const OpRow op_limit{"limit", Work::activate, limit};
const OpRow op_add{"add", Work::add, add};
const OpRow op_add_vector{"add", Work::add, add_vector};
const OpRow op_hidden{"hidden", Work::add, hidden};
const OpRow op_scale{"scale", Work::scale, scale};
const OpRow op_mul{"mul", Work::activate, mul};
const OpRow op_sigmoid_gate{"sigmoid_gate", Work::activate, sigmoid_gate};
const OpRow op_copy{"copy", Work::scale, copy};
const OpRow op_scale_by{"scale", Work::scale, scale_by};
const OpRow op_soft_cap{"soft_cap", Work::activate, soft_cap};

}  // namespace qsf
