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

}  // namespace

const OpRow op_embed{"embed", Work::embed, step};
const OpRow op_embed_position{"embed_position", Work::embed, position_step};

}  // namespace qsf
