// The input of the layer that guesses tokens.
#include "model/pass.h"

namespace qsf {
namespace {

/// Norms a token's embedding, `in`, and the hidden state before it, a row of `in2`, to the halves of `out`.
Advance join_step(Pass& pass, const Op& op) {
  const float* const of_token = pass.vector(op.weight, 0);
  const float* const of_state = pass.vector(op.bias, 1);
  const std::uint32_t dim = pass.width(op.in);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      const float* const state = pass.at(op.in2, pass.columns()[t].hidden_row);
      pass.kernels().rms_norm(pass.at(op.in, t), of_token, pass.at(op.out, t), dim, op.factor);
      pass.kernels().rms_norm(state, of_state, pass.at(op.out, t) + dim, dim, op.factor);
    }
  });
  pass.count(op_rms_norm.name, {}, std::uint64_t{2} * pass.n());
  return Advance::done;
}

}  // namespace

const OpRow op_join{"join", Work::norm, join_step};

/// Emits the input of the layer that guesses tokens: the product with the norms of a token's embedding and of the
/// hidden state before it (DeepSeek-AI 2024). The head multiplies the layer's output, normed by guess_norm.
void Builder::guess_input() {
  set_width(Buf::hidden, config_.dim);
  set_width(Buf::joined, 2 * config_.dim);
  Op op{.row = &op_join, .in = Buf::x, .in2 = Buf::hidden, .out = Buf::joined, .factor = kind().norm_epsilon};
  use(op, Role::guess_token_norm, Role::guess_state_norm);
  emit(op);
  product(Role::guess_join, Role::guess_join, Buf::joined, Buf::x);  // [dim, 2 * dim]
  uses(Role::guess_norm);
}

}  // namespace qsf
