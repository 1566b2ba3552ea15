// Where the parts of a layer's state lie: the convolution's tail, [taps - 1, channels], then the heads' states,
// [heads, key_dim, value_dim].
#pragma once

#include <cstdint>
#include <span>

#include "model/op.h"
#include "model/pass.h"

namespace qsf {

/// Columns from `first` on that follow each other in one sequence, `most` at most.
inline std::uint32_t run_of_sequence(std::span<const Column> columns, std::uint32_t first, std::uint32_t most) {
  std::uint32_t n = 1;
  while (n < most && first + n < columns.size() && columns[first + n].sequence == columns[first].sequence) ++n;
  return n;
}

/// Floats of the tail.
inline std::uint64_t state_tail(const LayerKind& kind, std::uint32_t dim) {
  return std::uint64_t{kind.conv_taps - 1} * kind.conv_channels(dim);
}

/// Floats of both.
inline std::uint64_t state_floats(const LayerKind& kind, std::uint32_t dim) {
  return state_tail(kind, dim) + std::uint64_t{kind.state_values()} * kind.state_key_dim;
}

/// A buffer's channels within the convolution's: those of queries, keys and values, for Mamba-2 the other way round.
inline std::uint32_t first_conv_channel(const LayerKind& kind, Buf buf) {
  if (kind.mixer == Mixer::delta_net) return buf == Buf::q ? 0 : kind.state_keys() * (buf == Buf::k ? 1 : 2);
  if (kind.mixer == Mixer::mamba2 && buf != Buf::v) {
    return kind.state_values() + (buf == Buf::k ? 0 : kind.state_keys());
  }
  return 0;
}

}  // namespace qsf
