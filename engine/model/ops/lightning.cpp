// Lightning attention (Qin et al. 2024): a recurrence whose decays depend on the head and the layer alone.
#include <algorithm>

#include "model/pass.h"
#include "model/state.h"
#include "qsf/base/exact.h"

namespace qsf {
namespace {

/// Sets the decays and a rate of 1, [n, state_heads]. Head h of n in layer l of m decays by e^(-s), where
/// s = 2^(-8 (h + 1) / n) (1 - l / (m - 1 + 1e-5) + 1e-5).
Advance decay_by_depth_step(Pass& pass, const Op& op) {
  const std::uint32_t heads = pass.program().kind->state_heads, layer = pass.stage() - 1;
  const double depth = 1 - layer / (pass.config().n_layers - 1 + 1e-5) + 1e-5;
  float* const first = pass.at(op.out, 0);
  for (std::uint32_t head = 0; head < heads; ++head) {
    first[head] = static_cast<float>(exact::exp(-exact::pow(2, -8.0 * (head + 1) / heads) * depth));
  }
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    if (t > 0) std::copy_n(first, heads, pass.at(op.out, t));
    std::fill_n(pass.at(Buf::rate, t), heads, 1.0f);
  }
  pass.wrote(Buf::rate);
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

constexpr float kLightningEpsilon = 1e-6f;  // of its norm, whatever the layer's is

void emit(Builder& b, Buf in, Buf out) {
  b.product(Role::state_q, Role::state_q, in, Buf::q);  // [state_keys, dim]
  b.product(Role::state_k, Role::state_k, in, Buf::k);  // [state_keys, dim]
  b.product(Role::state_v, Role::state_v, in, Buf::v);  // [state_values, dim]
  b.product(Role::state_z, Role::state_z, in, Buf::z);  // [state_values, dim]
  for (const Buf buf : {Buf::q, Buf::k, Buf::v}) b.emit({.row = &op_silu, .out = buf});
  for (const Buf buf : {Buf::decay, Buf::rate}) b.set_width(buf, b.kind().state_heads);
  b.emit({.row = &op_decay_by_depth, .out = Buf::decay});
  b.emit({.row = &op_recur, .out = Buf::v});
  b.norm(Role::state_norm_all, Role::state_norm_all, Buf::v, Buf::v, kLightningEpsilon);  // [state_values]
  b.emit({.row = &op_sigmoid_gate, .in = Buf::v, .out = Buf::z});
  b.product(Role::state_out, Role::state_out, Buf::z, out);  // [dim, state_values]
}

MemoryNeed memory(const LayerKind& kind, std::uint32_t dim) { return {.state_floats = state_floats(kind, dim)}; }

}  // namespace

const OpRow op_decay_by_depth{"decay", Work::activate, decay_by_depth_step};
const MixerRow mixer_lightning{emit, memory};

}  // namespace qsf
