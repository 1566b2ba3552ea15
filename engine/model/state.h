// The layout of a layer's state: the convolution's tail, [taps - 1, channels], then the heads' states, [heads, key_dim,
// value_dim].
#pragma once

#include <cstdint>
#include <span>

#include "model/op.h"
#include "model/pass.h"

namespace qsf {

/// Returns the number of columns from `first` on that are neighbours in one sequence, at most `most`.
inline std::uint32_t run_of_sequence(std::span<const Column> columns, std::uint32_t first, std::uint32_t most) {
  std::uint32_t n = 1;
  while (n < most && first + n < columns.size() && columns[first + n].sequence == columns[first].sequence) ++n;
  return n;
}

/// Columns of one sequence that change the stage's state one after the other. Guesses change other memory than known
/// tokens.
struct StateRun {
  std::uint32_t n;      // columns
  const float* before;  // [state_floats], `now` if the run goes on from the one before it; null at position 0
  float* now;
};

/// Returns the run of columns from `first` on, at most `most`.
StateRun run_of_state(const Pass& pass, std::uint32_t first, std::uint32_t most);

/// Returns the floats of the tail.
inline std::uint64_t state_tail(const LayerKind& kind, std::uint32_t dim) {
  if (!kind.convolves()) return 0;
  return std::uint64_t{kind.conv_taps - 1} * kind.conv_channels(dim);
}

/// Returns the floats of tail and heads' states.
inline std::uint64_t state_floats(const LayerKind& kind, std::uint32_t dim) {
  return state_tail(kind, dim) + std::uint64_t{kind.state_values()} * kind.state_key_dim;
}

/// The buffers of a recurrent state's queries, keys and values.
struct StateBufs {
  Buf q = Buf::q, k = Buf::k, v = Buf::v;
};
constexpr StateBufs state_bufs(const LayerKind& kind) {
  return kind.mixer == Mixer::attention_and_mamba2 ? StateBufs{Buf::q2, Buf::k2, Buf::v2} : StateBufs{};
}

/// Returns a buffer's first channel in the convolution. The order is queries, keys, values; in Mamba-2 it is values,
/// keys, queries.
inline std::uint32_t first_conv_channel(const LayerKind& kind, Buf buf) {
  const StateBufs bufs = state_bufs(kind);
  if (kind.mixer == Mixer::delta_net) return buf == bufs.q ? 0 : kind.state_keys() * (buf == bufs.k ? 1 : 2);
  if (kind.has_mamba2() && buf != bufs.v) return kind.state_values() + (buf == bufs.k ? 0 : kind.state_keys());
  return 0;
}

}  // namespace qsf
