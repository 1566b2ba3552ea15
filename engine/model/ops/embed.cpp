#include "model/pass.h"

namespace qsf {
namespace {

/// Widens a row of a table, [cols], from the bytes of its segment.
void widen_row(Pass& pass, const TensorEntry& table, std::uint32_t segment, const std::byte* raw, std::uint32_t index,
               float* to) {
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
  pass.count(op_embed.name, {}, 1);
}

/// Reads a row of a table through its segment. Returns false while the segment is being read.
bool read_row(Pass& pass, const TensorEntry& table, std::uint32_t index, float* to) {
  const std::uint32_t segment = pass.weights().segment_of_row(table, index);
  const std::byte* raw = pass.streamer().acquire(segment, Streamer::Use::lookup);
  if (raw == nullptr) return false;
  widen_row(pass, table, segment, raw, index, to);
  pass.streamer().release(segment);
  return true;
}

/// Reads a token's row, from the cached rows if it is one of them.
bool look_up(Pass& pass, const TensorEntry& table, std::uint32_t token, float* to) {
  if (pass.embedding_rows().get(token, to)) return true;
  if (!read_row(pass, table, token, to)) return false;
  pass.embedding_rows().put(token, to);
  return true;
}

/// Calls use(column, row) with each column's row of a table, which has the index index_of(column). Rows are read by
/// `read`, column by column, or, if tables are swept, segment by segment.
template <class Read, class IndexOf, class Use>
Advance for_rows(Pass& pass, const TensorEntry& table, Read read, IndexOf index_of, Use use) {
  float* const row = pass.row();
  std::uint32_t& i = pass.item();
  for (; !pass.sweeps() && i < pass.n(); ++i) {
    if (!read(pass, table, index_of(pass.columns()[i]), row)) return Advance::blocked;
    use(i, row);
  }
  for (; pass.sweeps() && i < table.n_segments; ++i) {
    const std::uint32_t segment = table.first_segment + i;
    const std::byte* raw = pass.streamer().acquire(segment);
    if (raw == nullptr) return Advance::blocked;
    const Weights::Rows rows = pass.weights().rows_in(table, segment);
    for (std::uint32_t t = 0; t < pass.n(); ++t) {
      const std::uint32_t index = index_of(pass.columns()[t]);
      if (index - rows.begin >= rows.count) continue;
      widen_row(pass, table, segment, raw, index, row);
      use(t, row);
    }
    pass.streamer().release(segment);
  }
  return Advance::done;
}

std::uint32_t token_of(const Column& column) { return column.token; }
std::uint32_t position_of(const Column& column) { return column.position; }

Advance step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  return for_rows(pass, table, look_up, token_of,
                  [&](std::uint32_t i, const float* row) { std::copy_n(row, table.cols, pass.at(op.out, i)); });
}

/// Adds the row of each column's position.
Advance position_step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  return for_rows(pass, table, read_row, position_of,
                  [&](std::uint32_t i, const float* row) { pass.kernels().add(pass.at(op.out, i), row, table.cols); });
}

/// Computes the inputs of all layers, [n, n_layers * layer_input], in `out`: normalizes each layer's part, adds the
/// token's row, and scales the sum. Tokens that the table does not have use its first row.
Advance layer_inputs_step(Pass& pass, const Op& op) {
  const TensorEntry& table = pass.tensor(op.weight);
  const LayerKind& kind = *pass.program().kind;
  const ModelKind& model = pass.config().table.model;
  const Kernels& kernels = pass.kernels();
  const std::uint32_t width = kind.layer_input;
  const auto row_of = [&](const Column& column) { return column.token < table.rows ? column.token : 0; };
  return for_rows(pass, table, read_row, row_of, [&](std::uint32_t i, float* row) {
    kernels.scale(row, model.layer_embd_scale, table.cols);
    float* const inputs = pass.at(op.out, i);
    const float* const weight = pass.vector(op.bias, 1);
    for (std::uint32_t at = 0; at < table.cols; at += width) {
      kernels.rms_norm(inputs + at, weight, inputs + at, width, kind.norm_epsilon);
    }
    kernels.add(inputs, row, table.cols);
    kernels.scale(inputs, model.layer_input_scale, table.cols);
  });
}

/// Copies the layer's part of them, [n, layer_input].
Advance layer_input_step(Pass& pass, const Op& op) {
  const std::uint32_t n = pass.width(op.out), from = (pass.stage() - 1) * n;
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    std::copy_n(pass.at(op.in, t) + from, n, pass.at(op.out, t));
  }
  return Advance::done;
}

}  // namespace

const OpRow op_layer_inputs{"layer_inputs", Work::embed, layer_inputs_step, false, true};
const OpRow op_layer_input{"layer_input", Work::embed, layer_input_step};
const OpRow op_embed{"embed", Work::embed, step, false, true};
const OpRow op_embed_position{"embed_position", Work::embed, position_step, false, true};

}  // namespace qsf
