#include "model/ops/parts.h"

namespace qsf {
namespace {

constexpr std::uint32_t kMinRows = 64;  // a task has about as many rows, or more

void add_bias(Pass& pass, const Op& op) {
  const float* bias = pass.vector(op.bias);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().add(pass.at(op.out, t), bias, pass.width(op.out));
    }
  });
  pass.count(op_add.name, {}, pass.n());
}

/// Computes the product with one segment's rows in each call.
Advance step(Pass& pass, const Op& op) {
  const TensorEntry& tensor = pass.tensor(op.weight);
  const std::uint32_t segment = tensor.first_segment + pass.item();
  const std::byte* raw = pass.streamer().acquire(segment);
  if (raw == nullptr) return Advance::blocked;
  if (pass.item() == 0) pass.entered(op.weight, op.in, pass.n());
  MatmulArgs args;
  args.x = pass.at(op.in, 0);
  args.x_stride = pass.width(op.in);
  if (is_quantized(tensor)) args.xq = pass.quantized(op.in);
  args.n = pass.n();
  args.y = pass.at(op.out, 0);
  args.y_stride = pass.width(op.out);
  multiply_rows(pass, tensor, segment, raw, args, 0);
  pass.streamer().release(segment);
  if (++pass.item() < tensor.n_segments) return Advance::working;
  if (op.has_bias) add_bias(pass, op);
  return Advance::done;
}

}  // namespace

bool is_quantized(const TensorEntry& tensor) { return find_format(tensor.format)->quantized(); }

void multiply_rows(Pass& pass, const TensorEntry& tensor, std::uint32_t segment, const std::byte* raw, MatmulArgs args,
                   std::uint32_t first_row) {
  const Weights::Rows rows = pass.weights().rows_in(tensor, segment);
  args.weights = raw + rows.offset;
  args.rows = rows.count;
  args.cols = tensor.cols;
  args.y += rows.begin - first_row;
  multiply(pass, tensor, args);
}

void multiply(Pass& pass, const TensorEntry& tensor, const MatmulArgs& whole) {
  const auto format = static_cast<std::size_t>(format_index(tensor.format));
  const std::uint64_t row = row_bytes(kFormats[format], tensor.cols);
  const Kernels& kernels = pass.product_kernels(format, whole.n);
  const std::uint32_t tasks = pass.workers().count > 1 ? std::max(whole.rows / kMinRows, 1u) : 1;
  const auto per_task = static_cast<std::uint32_t>(align_up((whole.rows + tasks - 1) / tasks, kTileRows));
  parallel_for(pass.workers(), (whole.rows + per_task - 1) / per_task, [&](std::uint32_t task) {
    const std::uint32_t begin = task * per_task;
    MatmulArgs args = whole;
    args.weights += begin * row;
    args.rows = std::min(per_task, whole.rows - begin);
    args.y += begin;
    kernels.matmul[format](args);
  });
  pass.count(op_product.name, kFormats[format].name, 1);
}

const OpRow op_product{"matmul", Work::matmul, step};

}  // namespace qsf
