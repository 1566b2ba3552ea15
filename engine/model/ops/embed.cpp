#include "model/pass.h"

namespace qsf {
namespace {

/// A row of a table, from its segment; false while that is on its way.
bool read_row(Pass& pass, const TensorEntry& table, std::uint32_t index, float* to) {
  const std::uint32_t segment = pass.weights().segment_of_row(table, index);
  const std::byte* raw = pass.streamer().acquire(segment, Streamer::Use::lookup);
  if (raw == nullptr) return false;
  const Weights::Rows rows = pass.weights().rows_in(table, segment);
  const Format& format = *find_format(table.format);
  const auto row = static_cast<std::size_t>(row_bytes(format, table.cols));
  const std::uint32_t within = index - rows.begin;
  const std::byte* data = raw + rows.offset;
  if (format.quantized()) {
    const std::uint32_t strip = within / kTileRows;
    dequantize_tile_row(format, {data + strip * kTileRows * row, kTileRows * row}, within % kTileRows,
                        {to, table.cols});
  } else {
    dequantize_row(format, {data + within * row, row}, {to, table.cols});
  }
  pass.streamer().release(segment);
  pass.count(op_embed.name, {}, 1);
  return true;
}

/// A token's row, from the rows at hand where it is one of them.
bool look_up(Pass& pass, const TensorEntry& table, std::uint32_t token, float* to) {
  if (pass.embedding_rows().get(token, to)) return true;
  if (!read_row(pass, table, token, to)) return false;
  pass.embedding_rows().put(token, to);
  return true;
}

Advance step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  for (std::uint32_t& i = pass.item(); i < pass.n(); ++i) {
    if (!look_up(pass, table, pass.columns()[i].token, pass.at(op.out, i))) return Advance::blocked;
  }
  return Advance::done;
}

/// Adds each column's position's row.
Advance position_step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  for (std::uint32_t& i = pass.item(); i < pass.n(); ++i) {
    float* const row = pass.row();
    if (!read_row(pass, table, pass.columns()[i].position, row)) return Advance::blocked;
    pass.kernels().add(pass.at(op.out, i), row, table.cols);
  }
  return Advance::done;
}

/// What every layer has of its own, [layer_inputs] of each column: each layer's part of `out` is normalized, the
/// token's row is added, and the sum scaled.
Advance layer_inputs_step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  const LayerKind& kind = *pass.program().kind;
  const ModelKind& model = pass.config().table.model;
  const Kernels& kernels = pass.kernels();
  const std::uint32_t width = kind.layer_input;
  for (std::uint32_t& i = pass.item(); i < pass.n(); ++i) {
    float* const row = pass.row();
    if (!read_row(pass, table, pass.columns()[i].token, row)) return Advance::blocked;
    kernels.scale(row, model.layer_embd_scale, table.cols);
    float* const inputs = pass.at(op.out, i);
    const float* const weight = pass.vector(op.bias, 1);
    for (std::uint32_t at = 0; at < table.cols; at += width) {
      kernels.rms_norm(inputs + at, weight, inputs + at, width, kind.norm_epsilon);
    }
    kernels.add(inputs, row, table.cols);
    kernels.scale(inputs, model.layer_input_scale, table.cols);
  }
  return Advance::done;
}

/// The layer's part of them.
Advance layer_input_step(Pass& pass, const Op& op) {
  const std::uint32_t n = pass.width(op.out), from = (pass.section() - 1) * n;
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    std::copy_n(pass.at(op.in, t) + from, n, pass.at(op.out, t));
  }
  return Advance::done;
}

}  // namespace

const OpRow op_layer_inputs{"layer_inputs", Work::embed, layer_inputs_step};
const OpRow op_layer_input{"layer_input", Work::embed, layer_input_step};
const OpRow op_embed{"embed", Work::embed, step};
const OpRow op_embed_position{"embed_position", Work::embed, position_step};

}  // namespace qsf
