#include "model/observer.h"

#include <algorithm>
#include <cmath>

#include "model/routing.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

/// Calls body(stage, role, same) for the products of a program in their order. `same` means that the input is the
/// previous product's.
template <class Body>
void for_each_product(const Program& program, Body body) {
  for (std::uint32_t stage = 0; stage <= program.head_stage(); ++stage) {
    if (stage != 0 && stage == program.guess_stage()) continue;  // of no text
    Buf last = Buf::none;
    for (const Op& op : program.of_stage(stage).ops) {
      if (op.row->chooses) {
        const LayerKind& kind = *program.of_stage(stage).kind;
        for (const Role role : expert_matrices(kind)) {
          body(stage, role, role == Role::expert_up && kind.plain_experts == 0);
        }
        last = Buf::none;
      } else if (op.row == &op_product) {
        body(program.stage_of(op.weight, stage), op.weight, op.in == last);
        last = op.in;
      }
      if (op.out == last) last = Buf::none;
    }
  }
}

}  // namespace

Status Observer::init(Arena& arena, Observe what, const Program& program, const Weights& weights, const Sizes& sizes,
                      const ObservedRoom& room) {
  if (what == Observe::nothing) return {};
  dim_ = sizes.dim;
  QSF_TRY(arena.take(layers_, sizes.layers, Region::activations));
  QSF_TRY(arena.take(before_, std::uint64_t{sizes.chunk} * dim_, Region::activations));
  streams_width_ = program.widths()[static_cast<std::size_t>(Buf::streams)];
  QSF_TRY(arena.take(before_streams_, std::uint64_t{sizes.chunk} * streams_width_, Region::activations));
  return what == Observe::products ? init_products(arena, program, weights, room) : Status();
}

Status Observer::init_products(Arena& arena, const Program& program, const Weights& weights, const ObservedRoom& room) {
  if (room.take == nullptr) return make_error(ErrorCode::bad_argument, "there is no room for sums of products");
  std::uint32_t tensors = 0, inputs = 0;
  for_each_product(program, [&](std::uint32_t, Role, bool same) {
    ++tensors;
    inputs += same ? 0 : 1;
  });
  QSF_TRY(arena.take(seen_, tensors, Region::activations));
  QSF_TRY(arena.take(inputs_, inputs, Region::activations));
  QSF_TRY(arena.take(of_, tensors, Region::activations));
  Status status;
  std::uint32_t at = 0, input = 0;
  for_each_product(program, [&](std::uint32_t stage, Role role, bool same) {
    if (!status) return;
    const std::uint32_t cols = weights.find(stage, role)->cols, width = observed_width(cols);
    input += same ? 0 : 1;
    if (arena.is_dry()) return;
    if (!same) {
      const std::uint64_t n = observed_sums(cols, width);
      float* const sums = room.take(room.owner, n);
      if (sums == nullptr) {
        status = make_error(ErrorCode::out_of_memory, "there is no memory for {} sums of products", n);
        return;
      }
      inputs_[input - 1] = {{sums, static_cast<std::size_t>(n)}, at};
    }
    of_[at] = input - 1;
    seen_[at++] = {stage, role, cols, 0, inputs_[input - 1].sums};
  });
  return status;
}

void Observer::enter(std::uint32_t stage, const float* x, const float* streams, std::uint32_t n) {
  if (!sees(stage)) return;
  std::copy_n(x, std::size_t{n} * dim_, before_.begin());
  std::copy_n(streams, std::size_t{n} * streams_width_, before_streams_.begin());
}

void Observer::leave(std::uint32_t stage, float* x, float* streams, std::uint32_t n) {
  if (!sees(stage)) return;
  ObservedLayer& layer = layers_[stage - 1];
  for (std::uint32_t t = 0; t < n; ++t) {
    double together = 0, before = 0, after = 0;
    for (std::size_t i = std::size_t{t} * dim_; i < (std::size_t{t} + 1) * dim_; ++i) {
      const double a = double{before_[i]}, b = double{x[i]};
      together += a * b;
      before += a * a;
      after += b * b;
    }
    if (before > 0 && after > 0) layer.cosines += together / std::sqrt(before * after);
  }
  layer.n += n;
  if (skipped_ != stage - 1) return;
  std::copy_n(before_.begin(), std::size_t{n} * dim_, x);
  std::copy_n(before_streams_.begin(), std::size_t{n} * streams_width_, streams);
}

void Observer::add(std::uint32_t stage, Role role, const float* x, std::size_t stride, std::uint32_t n,
                   const Workers& workers) {
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    Observed& seen = seen_[i];
    if (seen.stage != stage || seen.role != role) continue;
    seen.n += n;
    const Input& input = inputs_[of_[i]];
    if (input.first != i) return;
    const std::uint32_t cols = seen.cols, width = observed_width(cols);
    parallel_for(workers, cols, [&](std::uint32_t row) {
      const std::uint32_t begin = row / width * width;
      float* const to = &input.sums[observed_row(row, width)];
      for (std::uint32_t t = 0; t < n; ++t) {
        const float* const column = x + t * stride;
        const float by = column[row];
        for (std::uint32_t j = begin; j <= row; ++j) to[j - begin] += by * column[j];
      }
    });
    return;
  }
}

}  // namespace qsf
