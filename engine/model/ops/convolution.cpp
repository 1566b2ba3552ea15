// A causal convolution over positions, for each channel by itself, and the mixer that has it between two gates (LFM2).
#include <array>
#include <cstring>

#include "model/pass.h"
#include "model/state.h"

namespace qsf {
namespace {

constexpr std::uint32_t kBlock = 64;  // channels whose sums are computed together
constexpr std::array<float, kBlock> kZeros{};

/// A range of channels at consecutive positions of one sequence, and at the positions before them.
struct Channels {
  float* x;             // [n, stride]
  std::size_t stride;   // of a position
  std::uint32_t n;      // positions
  const float* before;  // [taps - 1, channels]: the positions before x, the last one last; null: zeros
  float* tail;          // [taps - 1, channels]: written for the next run
  const float* weight;  // [taps, channels]
  const float* bias;    // [channels] or null
  std::size_t channels;
  std::uint32_t taps;

  /// Returns position t, which may be as low as 1 - taps.
  const float* row(std::int64_t t) const {
    if (t >= 0) return x + static_cast<std::size_t>(t) * stride;
    return before != nullptr ? before + static_cast<std::size_t>(t + taps - 1) * channels : kZeros.data();
  }
};

/// Convolves in place, so later positions come first. Sums begin with the oldest position and end with the bias.
template <bool kWhole>
void convolve(const Channels& a, std::uint32_t width) {
  const std::uint32_t n = kWhole ? kBlock : width;
  for (std::uint32_t j = 0; j + 1 < a.taps; ++j) {
    std::memcpy(a.tail + j * a.channels, a.row(std::int64_t{a.n} + j + 1 - a.taps), n * sizeof(float));
  }
  for (std::int64_t t = std::int64_t{a.n} - 1; t >= 0; --t) {
    std::array<float, kBlock> sum{};
    for (std::uint32_t tap = 0; tap < a.taps; ++tap) {
      const float* const x = a.row(t + tap + 1 - a.taps);
      const float* const weight = a.weight + tap * a.channels;
      for (std::uint32_t c = 0; c < n; ++c) sum[c] += weight[c] * x[c];
    }
    if (a.bias != nullptr) {
      for (std::uint32_t c = 0; c < n; ++c) sum[c] += a.bias[c];
    }
    std::memcpy(a.x + static_cast<std::size_t>(t) * a.stride, sum.data(), n * sizeof(float));
  }
}

/// Convolves the channels of one buffer in a run of columns.
void convolve(Pass& pass, Buf buf, std::uint32_t first, Channels all, const StateRun& run) {
  const std::uint32_t width = pass.width(buf), blocks = (width + kBlock - 1) / kBlock;
  const std::size_t first_channel = first_conv_channel(*pass.program().kind, buf);
  all.stride = width;
  parallel_for(pass.workers(), blocks, [&](std::uint32_t block) {
    const std::uint32_t begin = block * kBlock, n = std::min(width - begin, kBlock);
    const std::size_t channel = first_channel + begin;
    Channels part = all;
    part.x = pass.at(buf, first) + begin;
    part.before = run.before != nullptr ? run.before + channel : nullptr;
    part.tail = run.now + channel;
    part.weight += channel;
    if (part.bias != nullptr) part.bias += channel;
    n == kBlock ? convolve<true>(part, n) : convolve<false>(part, n);
  });
}

/// Convolves the values, and in a layer with a recurrent state also the queries and keys.
Advance conv_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  Channels all{};
  all.channels = kind.conv_channels(pass.width(Buf::x));
  all.taps = kind.conv_taps;
  all.weight = pass.vector(op.weight, 0);
  all.bias = op.has_bias ? pass.vector(op.bias, 1) : nullptr;
  for (std::uint32_t first = 0; first < pass.n(); first += all.n) {
    const StateRun run = run_of_state(pass, first, pass.n());
    all.n = run.n;
    convolve(pass, op.out, first, all, run);
    if (!kind.has_state() || kind.mixer == Mixer::mamba) continue;
    for (const Buf buf : {state_bufs(kind).q, state_bufs(kind).k}) convolve(pass, buf, first, all, run);
  }
  pass.count(op_conv.name, {}, pass.n());
  return Advance::done;
}

void emit(Builder& b, Buf in, Buf out) {
  b.product(Role::conv_b, Role::conv_b, in, Buf::q);  // [dim, dim], as all products here
  b.product(Role::conv_c, Role::conv_c, in, Buf::k);
  b.product(Role::conv_x, Role::conv_x, in, Buf::v);
  b.emit({.row = &op_mul, .in = Buf::q, .out = Buf::v});
  b.with_weights(op_conv, Role::conv_weight, Role::conv_bias, Buf::v);  // [taps, dim]
  b.emit({.row = &op_mul, .in = Buf::k, .out = Buf::v});
  b.product(Role::conv_out, Role::conv_out, Buf::v, out);
}

MemoryNeed memory(const LayerKind& kind, std::uint32_t dim) { return {.state_floats = state_tail(kind, dim)}; }

}  // namespace

const OpRow op_conv{"convolve", Work::attention, conv_step};
const MixerRow mixer_short_conv{emit, memory};

}  // namespace qsf
