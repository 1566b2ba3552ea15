#include "model/pass.h"

namespace qsf {
namespace {

constexpr std::uint32_t kMinRows = 64;  // per task

void add_bias(Pass& pass, const Op& op) {
  const float* bias = pass.vector(op.bias);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().add(pass.at(op.out, t), bias, pass.width(op.out));
    }
  });
  pass.count(op_add.name, {}, pass.n());
}

/// The product of one segment, then of the next.
Advance step(Pass& pass, const Op& op) {
  const TensorEntry& tensor = pass.tensor(op.weight);
  const std::uint32_t segment = tensor.first_segment + pass.item();
  const std::byte* raw = pass.streamer().acquire(segment);
  if (raw == nullptr) return Advance::blocked;
  const auto format = static_cast<std::size_t>(format_index(tensor.format));
  const Weights::Rows rows = pass.weights().rows_in(tensor, segment);
  const std::uint64_t row = row_bytes(kFormats[format], tensor.cols);
  MatmulArgs whole;
  whole.weights = raw + rows.offset;
  whole.rows = rows.count;
  whole.cols = tensor.cols;
  whole.x = pass.at(op.in, 0);
  whole.x_stride = pass.width(op.in);
  if (kFormats[format].quantized()) whole.xq = pass.quantized(op.in);
  whole.n = pass.n();
  whole.y = pass.at(op.out, 0) + rows.begin;
  whole.y_stride = pass.width(op.out);

  const std::uint32_t tasks = pass.workers().count > 1 ? std::max(rows.count / kMinRows, 1u) : 1;
  const auto per_task = static_cast<std::uint32_t>(align_up((rows.count + tasks - 1) / tasks, kTileRows));
  parallel_for(pass.workers(), (rows.count + per_task - 1) / per_task, [&](std::uint32_t task) {
    const std::uint32_t begin = task * per_task;
    MatmulArgs args = whole;
    args.weights += begin * row;
    args.rows = std::min(per_task, rows.count - begin);
    args.y += begin;
    pass.kernels().matmul[format](args);
  });
  pass.streamer().release(segment);
  pass.count(op_product.name, kFormats[format].name, 1);
  if (++pass.item() < tensor.n_segments) return Advance::working;
  if (op.has_bias) add_bias(pass, op);
  return Advance::done;
}

}  // namespace

const OpRow op_product{"matmul", Work::matmul, step};

}  // namespace qsf
