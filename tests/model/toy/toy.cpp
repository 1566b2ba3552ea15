// A mixer that a test adds: a product of its own, then every column's values squared.
#include <cstring>

#include "model/pass.h"

namespace qsf {
namespace {

Advance square(Pass& pass, const Op& op) {
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    std::memcpy(pass.at(op.out, t), pass.at(op.in, t), pass.width(op.in) * sizeof(float));
    pass.kernels().mul(pass.at(op.out, t), pass.at(op.in, t), pass.width(op.in));
  }
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

const OpRow op_square{"toy square", Work::activate, square};

void emit(Builder& b, Buf in, Buf out) {
  b.product(static_cast<Role>(200), static_cast<Role>(200), in, Buf::q);
  b.set_width(out, b.width(Buf::q));
  b.emit({.row = &op_square, .in = Buf::q, .out = out});
}
MemoryNeed memory(const LayerKind&, std::uint32_t) { return {}; }

}  // namespace

const MixerRow mixer_toy{emit, memory};

}  // namespace qsf
