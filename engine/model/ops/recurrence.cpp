// The recurrence of a decaying state. Each position adds its value under its key, and its query then reads from the
// state. The gated delta rule (Yang et al. 2024) first subtracts the value that the key already reads; Mamba-2 (Dao and
// Gu 2024) does not. Positions are computed one by one, so that chunks do not change results.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/pass.h"
#include "model/state.h"
#include "qsf/base/exact.h"
#include "qsf/formats/kv.h"

namespace qsf {
namespace {

constexpr std::uint32_t kBlock = 64;  // columns of a state whose sums are computed together

/// One head at one position. state = decay * before + outer(key, change); change = rate * value, or with the delta rule
/// rate * (value - key (decay * before)). The query's product with the state replaces the value. Sums add rows in
/// order.
struct Head {
  const float* before;  // [key_dim, value_dim], may be `now`
  float* now;
  const float* q;
  const float* k;
  float* v;
  std::uint32_t key_dim, value_dim;
  float decay, rate, skip;  // skip: factor of the value, which is added to the output
  bool delta;
};

template <bool kWhole>
void recur(const Head& h, std::uint32_t begin, std::uint32_t width) {
  const std::uint32_t n = kWhole ? kBlock : width;
  std::array<float, kBlock> sum{}, change;
  float* const value = h.v + begin;
  for (std::uint32_t r = 0; h.delta && r < h.key_dim; ++r) {
    const float* const row = h.before + std::size_t{r} * h.value_dim + begin;
    const float key = h.k[r];
    for (std::uint32_t c = 0; c < n; ++c) sum[c] += (row[c] * h.decay) * key;
  }
  for (std::uint32_t c = 0; c < n; ++c) change[c] = (value[c] - sum[c]) * h.rate;
  sum = {};
  for (std::uint32_t r = 0; r < h.key_dim; ++r) {
    const float* const row = h.before + std::size_t{r} * h.value_dim + begin;
    float* const to = h.now + std::size_t{r} * h.value_dim + begin;
    const float key = h.k[r], query = h.q[r];
    std::array<float, kBlock> state;
    for (std::uint32_t c = 0; c < n; ++c) state[c] = row[c] * h.decay + key * change[c];
    for (std::uint32_t c = 0; c < n; ++c) {
      to[c] = state[c];
      sum[c] += state[c] * query;
    }
  }
  for (std::uint32_t c = 0; c < n; ++c) value[c] = sum[c] + h.skip * value[c];
}

void recur(const Head& h) {
  for (std::uint32_t begin = 0; begin < h.value_dim; begin += kBlock) {
    const std::uint32_t n = std::min(h.value_dim - begin, kBlock);
    n == kBlock ? recur<true>(h, begin, n) : recur<false>(h, begin, n);
  }
}

/// Computes up to kTogether positions of one sequence, every head by itself.
Advance recur_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t first = pass.item();
  const StateRun run = run_of_state(pass, first, kTogether);
  const std::uint64_t tail = state_tail(kind, pass.width(Buf::x));
  const float* const skip = op.has_weight ? pass.vector(op.weight) : nullptr;
  const StateBufs bufs = state_bufs(kind);
  parallel_for(pass.workers(), kind.state_heads, [&](std::uint32_t head) {
    const std::size_t size = std::size_t{kind.state_key_dim} * kind.state_value_dim;
    const std::uint32_t key_head = kind.state_tiled != 0 ? head % kind.state_key_heads : head / kind.heads_of_key();
    float* const now = run.now + tail + head * size;
    const float* before = run.before == nullptr ? now : run.before + tail + head * size;
    if (run.before == nullptr) std::fill_n(now, size, 0.0f);
    for (std::uint32_t t = first; t < first + run.n; ++t) {
      recur({before, now, pass.at(bufs.q, t) + std::size_t{key_head} * kind.state_key_dim,
             pass.at(bufs.k, t) + std::size_t{key_head} * kind.state_key_dim,
             pass.at(op.out, t) + std::size_t{head} * kind.state_value_dim, kind.state_key_dim, kind.state_value_dim,
             pass.at(Buf::decay, t)[head], pass.at(Buf::rate, t)[head], skip != nullptr ? skip[head] : 0.0f,
             kind.mixer == Mixer::delta_net});
      before = now;
    }
  });
  pass.count(op_recur.name, {}, std::uint64_t{run.n} * kind.state_heads);
  pass.item() += run.n;
  return pass.item() < pass.n() ? Advance::working : Advance::done;
}

/// log(1 + e^x)
double softplus(double x) { return x > 20 ? x : exact::log(1 + exact::exp(x)); }

/// Computes decay and rate, [n, state_heads], from the products' steps and rates: decay = e^(A softplus(step + bias)).
/// The rate is the sigmoid of its own product with the delta rule, and softplus(step + bias) in Mamba-2.
Advance decay_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const float* const decay = pass.vector(op.weight, 0);
  const float* const bias = pass.vector(op.bias, 1);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      float* const to = pass.at(Buf::decay, t);
      float* const rate = pass.at(Buf::rate, t);
      for (std::uint32_t head = 0; head < kind.state_heads; ++head) {
        const double step = softplus(double{to[head]} + double{bias[head]});
        to[head] = static_cast<float>(exact::exp(double{decay[head]} * step));
        rate[head] =
            static_cast<float>(kind.mixer == Mixer::delta_net ? 1 / (1 + exact::exp(-double{rate[head]})) : step);
      }
    }
  });
  pass.count(op_decay.name, {}, pass.n());
  return Advance::done;
}

/// Makes the products' steps, [n, state_heads], softplus(step + bias).
Advance steps_step(Pass& pass, const Op& op) {
  const float* const bias = pass.vector(op.weight);
  const std::uint32_t width = pass.width(op.out);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      float* const step = pass.at(op.out, t);
      for (std::uint32_t c = 0; c < width; ++c)
        step[c] = static_cast<float>(softplus(double{step[c]} + double{bias[c]}));
    }
  });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// The selective scan of Mamba (Gu and Dao 2023), channel by channel: state = e^(decays * step) * before + key * step *
/// value, [state_key_dim]. The query's product with the state, and the value times the skip, replace the value.
Advance scan_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t first = pass.item(), keys = kind.state_key_dim;
  const StateRun run = run_of_state(pass, first, kTogether);
  const std::uint64_t tail = state_tail(kind, pass.width(Buf::x));
  const float* const decays = pass.vector(op.weight, 0);
  const float* const skip = pass.vector(op.bias, 1);
  const std::uint32_t blocks = (kind.state_heads + kBlock - 1) / kBlock;
  parallel_for(pass.workers(), blocks, [&](std::uint32_t block) {
    std::array<float, kMaxHeadDim> decay;
    for (std::uint32_t c = block * kBlock; c < std::min((block + 1) * kBlock, kind.state_heads); ++c) {
      float* const now = run.now + tail + std::size_t{c} * keys;
      const float* before = run.before == nullptr ? now : run.before + tail + std::size_t{c} * keys;
      if (run.before == nullptr) std::fill_n(now, keys, 0.0f);
      for (std::uint32_t t = first; t < first + run.n; ++t, before = now) {
        float& value = pass.at(op.out, t)[c];
        const float step = pass.at(Buf::rate, t)[c], added = step * value;
        const float* const key = pass.at(Buf::k, t);
        const float* const query = pass.at(Buf::q, t);
        for (std::uint32_t i = 0; i < keys; ++i) decay[i] = decays[std::size_t{c} * keys + i] * step;
        pass.kernels().exp(decay.data(), keys);
        float sum = 0;
        for (std::uint32_t i = 0; i < keys; ++i) {
          now[i] = before[i] * decay[i] + key[i] * added;
          sum += now[i] * query[i];
        }
        value = sum + skip[c] * value;
      }
    }
  });
  pass.count(op_scan.name, {}, std::uint64_t{run.n} * kind.state_heads);
  pass.item() += run.n;
  return pass.item() < pass.n() ? Advance::working : Advance::done;
}

void project(Builder& b, Buf in) {
  const StateBufs bufs = state_bufs(b.kind());
  b.product(Role::state_q, Role::state_q, in, bufs.q);      // [state_keys, dim]
  b.product(Role::state_k, Role::state_k, in, bufs.k);      // [state_keys, dim]
  b.product(Role::state_v, Role::state_v, in, bufs.v);      // [state_values, dim]
  b.product(Role::state_z, Role::state_z, in, Buf::z);      // [state_values, dim]
  b.product(Role::state_a, Role::state_a, in, Buf::decay);  // [state_heads, dim]
}

/// Emits the convolutions of the products, and the decays.
void prepare(Builder& b) {
  const StateBufs bufs = state_bufs(b.kind());
  b.with_weights(op_conv, Role::conv_weight, Role::conv_bias, bufs.v);  // [taps, channels], [channels]
  for (const Buf buf : {bufs.q, bufs.k, bufs.v}) b.emit({.row = &op_silu, .out = buf});
  b.with_weights(op_decay, Role::state_decay, Role::state_dt_bias, Buf::decay);  // [state_heads] each
}

void emit_delta_net(Builder& b, Buf in, Buf out) {
  project(b, in);
  b.product(Role::state_b, Role::state_b, in, Buf::rate);  // [state_heads, dim]
  prepare(b);
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(b.kind().state_key_dim)));
  b.emit({.row = &op_unit_heads, .out = Buf::q, .factor = factor});
  b.emit({.row = &op_unit_heads, .out = Buf::k});
  b.emit({.row = &op_recur, .out = Buf::v});
  b.with_weights(op_head_norm, Role::state_norm, Role::state_norm, Buf::v);  // [state_value_dim]
  b.emit({.row = &op_silu, .in = Buf::v, .out = Buf::z});
  b.product(Role::state_out, Role::state_out, Buf::z, out);  // [dim, state_values]
}

void emit_mamba2(Builder& b, Buf in, Buf out) {
  const Buf values = state_bufs(b.kind()).v;
  project(b, in);
  b.set_width(Buf::rate, b.width(Buf::decay));
  prepare(b);
  b.in_place(op_recur, Role::state_skip, values);  // [state_heads]
  const bool first = b.kind().state_norm_first != 0;
  const Buf normed = first ? values : Buf::z;
  if (!first) b.emit({.row = &op_silu, .in = values, .out = Buf::z});
  if (b.has(Role::state_norm_all) && b.kind().state_group_norm != 0) {
    b.in_place(op_group_norm, Role::state_norm_all, normed);  // [state_values]
  } else if (b.has(Role::state_norm_all)) {
    b.norm(Role::state_norm_all, Role::state_norm_all, normed, normed);  // [state_values]
  }
  if (first) b.emit({.row = &op_silu, .in = values, .out = Buf::z});
  b.product(Role::state_out, Role::state_out, Buf::z, out);  // [dim, state_values]
}

void emit_both(Builder& b, Buf in, Buf out) {
  emit_mamba2(b, in, Buf::mixed);
  mixer_attention.emit(b, in, out);
  b.add(Buf::mixed, out);
}

void emit_mamba(Builder& b, Buf in, Buf out) {
  b.product(Role::state_v, Role::state_v, in, Buf::v);                  // [state_values, dim]
  b.product(Role::state_z, Role::state_z, in, Buf::z);                  // [state_values, dim]
  b.with_weights(op_conv, Role::conv_weight, Role::conv_bias, Buf::v);  // [taps, state_values], [state_values]
  b.emit({.row = &op_silu, .out = Buf::v});
  b.product(Role::state_in_rank, Role::state_in_rank, Buf::v, Buf::decay);  // [state_rank, state_values]
  b.product(Role::state_in_k, Role::state_in_k, Buf::v, Buf::k);            // [state_key_dim, state_values]
  b.product(Role::state_in_q, Role::state_in_q, Buf::v, Buf::q);            // [state_key_dim, state_values]
  for (const auto& [role, buf] : {std::pair(Role::state_rank_norm, Buf::decay), std::pair(Role::state_k_norm, Buf::k),
                                  std::pair(Role::state_q_norm, Buf::q)}) {
    if (b.has(role)) b.norm(role, role, buf, buf);
  }
  b.product(Role::state_step, Role::state_step, Buf::decay, Buf::rate);  // [state_values, state_rank]
  b.in_place(op_steps, Role::state_dt_bias, Buf::rate);                  // [state_values]
  b.with_weights(op_scan, Role::state_decays, Role::state_skip,
                 Buf::v);  // [state_values, state_key_dim], [state_values]
  b.emit({.row = &op_silu, .in = Buf::v, .out = Buf::z});
  b.product(Role::state_out, Role::state_out, Buf::z, out);  // [dim, state_values]
}

MemoryNeed memory(const LayerKind& kind, std::uint32_t dim) { return {.state_floats = state_floats(kind, dim)}; }
MemoryNeed memory_of_both(const LayerKind& kind, std::uint32_t dim) {
  MemoryNeed need = mixer_attention.memory(kind, dim);
  need.state_floats = state_floats(kind, dim);
  return need;
}

}  // namespace

const OpRow op_decay{"decay", Work::activate, decay_step};
const OpRow op_recur{"recur", Work::attention, recur_step};
const MixerRow mixer_delta_net{emit_delta_net, memory};
const OpRow op_steps{"steps", Work::activate, steps_step};
const OpRow op_scan{"scan", Work::attention, scan_step};
const MixerRow mixer_mamba2{emit_mamba2, memory};
const MixerRow mixer_attention_and_mamba2{emit_both, memory_of_both};
const MixerRow mixer_mamba{emit_mamba, memory};

}  // namespace qsf
