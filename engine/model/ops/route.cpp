// Mixtures of experts: the selection of a column's experts, their outputs, and the weighted sum. Experts are computed
// in any order, those in memory while others are read, and summed in ascending order. A column's sum therefore depends
// on neither memory nor the other columns of its pass.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/ops/parts.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf {

Status Routing::init(Arena& arena, std::uint32_t chunk, std::uint32_t experts, std::uint32_t used) {
  QSF_TRY(arena.take(choice, std::uint64_t{chunk} * used, Region::activations));
  QSF_TRY(arena.take(weight, std::uint64_t{chunk} * used, Region::activations));
  QSF_TRY(arena.take(picks, std::uint64_t{chunk} * used, Region::activations));
  QSF_TRY(arena.take(stands, experts, Region::activations));
  return arena.take(begins, experts == 0 ? 0 : experts + 1, Region::activations);
}

void Routing::sort(std::uint32_t n, std::uint32_t n_experts, std::uint32_t used) {
  const std::span<const std::uint32_t> chosen = choice.first(std::size_t{n} * used);
  std::ranges::fill(begins, 0u);
  for (const std::uint32_t e : chosen) ++begins[e];
  std::uint32_t end = 0;
  for (std::uint32_t e = 0; e < n_experts; ++e) begins[e] = end += begins[e];
  begins[n_experts] = end;
  for (std::size_t i = chosen.size(); i-- > 0;) {
    picks[--begins[chosen[i]]] = {static_cast<std::uint32_t>(i / used), weight[i]};
  }
}

void choose_experts(std::span<const float> keys, const float* bias, std::span<std::uint32_t> chosen) {
  const auto key = [&](std::uint32_t e) {
    const float value = bias != nullptr ? keys[e] + bias[e] : keys[e];
    return value == value ? value : -__builtin_inff();
  };
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    std::uint32_t best = kNoToken;
    for (std::uint32_t e = 0; e < keys.size(); ++e) {
      const bool taken = k > 0 && (key(e) > key(chosen[k - 1]) || (key(e) == key(chosen[k - 1]) && e <= chosen[k - 1]));
      if (!taken && (best == kNoToken || key(e) > key(best))) best = e;
    }
    chosen[k] = best;
  }
}

namespace {

/// x = 1 / (1 + e^-x)
void sigmoid(const Kernels& kernels, float* x, std::uint32_t n) {
  sigmoid_divisors(kernels, x, n);
  for (std::uint32_t i = 0; i < n; ++i) x[i] = 1.0f / x[i];
}

/// Selects experts one after the other. A weight is that of a softmax over the logits that are left and near the
/// largest of them.
void choose_near(const LayerKind& kind, std::span<const float> logits, std::span<std::uint32_t> chosen,
                 std::span<float> weights) {
  choose_experts(logits, nullptr, chosen);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const float most = logits[chosen[k]];
    double sum = 0;
    for (std::uint32_t e = 0; e < logits.size(); ++e) {
      const float far = 2 * kind.router_jitter * std::max(std::fabs(logits[e]), most);
      if (std::ranges::find(chosen.first(k), e) != chosen.first(k).end() || !(most - logits[e] <= far)) continue;
      sum += exact::exp(double{logits[e]} - double{most});
    }
    weights[k] = static_cast<float>(1 / sum);
  }
}

/// Makes the keys of experts outside the selected groups NaN. A group's score is the largest key of its experts, or
/// with a router of sigmoids the sum of the two largest; the bias counts.
void keep_groups(const LayerKind& kind, std::span<float> keys, const float* bias) {
  const std::uint32_t size = kind.n_experts / kind.router_groups;
  std::array<float, kMaxExperts> scores;
  for (std::uint32_t group = 0; group < kind.router_groups; ++group) {
    float first = -__builtin_inff(), second = first;
    for (std::uint32_t e = group * size; e < (group + 1) * size; ++e) {
      const float key = bias != nullptr ? keys[e] + bias[e] : keys[e];
      second = std::max(second, std::min(first, key));
      first = std::max(first, key);
    }
    scores[group] = kind.router == Router::sigmoid && size > 1 ? first + second : first;
  }
  const std::span<const float> of_groups(scores.data(), kind.router_groups);
  std::array<std::uint32_t, kMaxExperts> chosen;
  const std::span<std::uint32_t> kept(chosen.data(), kind.router_groups_used);
  choose_experts(of_groups, nullptr, kept);
  for (std::uint32_t e = 0; e < kind.n_experts; ++e) {
    if (std::ranges::find(kept, e / size) == kept.end()) keys[e] = __builtin_nanf("");
  }
}

/// Selects a column's experts and computes their weights from its logits, which are overwritten. The bias changes only
/// the selection, and the factors of experts only the weights; either may be null.
void choose(const Kernels& kernels, const LayerKind& kind, float* logits, const float* bias, const float* factors,
            std::span<std::uint32_t> chosen, std::span<float> weights) {
  const std::span<const float> keys(logits, kind.n_experts);
  if (kind.router == Router::softmax_near) {
    choose_near(kind, keys, chosen, weights);
    for (float& weight : weights) weight *= kind.router_scale;
    return;
  }
  if (kind.router == Router::sigmoid) sigmoid(kernels, logits, kind.n_experts);
  // Without a bias, logits have the order of their softmax, and rounding does not make them equal.
  const bool late = kind.router == Router::softmax && bias == nullptr && kind.router_groups == 0;
  if (kind.router == Router::softmax && !late) kernels.softmax(logits, kind.n_experts, 1);
  if (kind.router_groups != 0) keep_groups(kind, {logits, kind.n_experts}, bias);
  choose_experts(keys, bias, chosen);
  if (late) kernels.softmax(logits, kind.n_experts, 1);
  float sum = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) sum += weights[i] = keys[chosen[i]];
  if (kind.router == Router::softmax_chosen) kernels.softmax(weights.data(), kind.experts_used, 1);
  const float by = kind.router_norm != 0 && sum != 0 ? 1.0f / sum : 1.0f;
  for (float& weight : weights) weight = weight * by * kind.router_scale;
  for (std::size_t i = 0; i < chosen.size() && factors != nullptr; ++i) weights[i] *= factors[chosen[i]];
}

Advance route_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const float* bias = op.has_weight ? pass.vector(op.weight) : nullptr;
  const bool has_factors = pass.weights().has(pass.stage(), Role::router_expert_scale);
  const float* factors = has_factors ? pass.vector(Role::router_expert_scale, 1) : nullptr;
  Routing& routing = pass.routing();
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      const std::size_t first = std::size_t{t} * kind.experts_used;
      choose(pass.kernels(), kind, pass.at(op.out, t), bias, factors, routing.choice.subspan(first, kind.experts_used),
             routing.weight.subspan(first, kind.experts_used));
    }
  });
  routing.sort(pass.n(), kind.n_experts, kind.experts_used);
  pass.count(op_route.name, {}, pass.n());
  return Advance::done;
}

Weights::Segments segments_of(Pass& pass, Role role, std::uint32_t expert) {
  return pass.weights().segments_of_expert(pass.tensor(role), pass.program().kind->n_experts, expert);
}

/// Returns the matrices of an expert of the stage.
std::span<const Role> matrices_of(const Pass& pass) { return expert_matrices(*pass.program().kind); }

/// Names the segments that the selected experts need.
void begin_experts(Pass& pass) {
  using Residency = Streamer::Residency;
  const std::uint32_t n_experts = pass.program().kind->n_experts;
  Routing& routing = pass.routing();
  routing.matrix = routing.segment = routing.left = 0;
  pass.streamer().begin_choice(pass.chosen_range().begin);
  for (std::uint32_t e = 0; e < n_experts; ++e) {
    routing.stands[e] = Routing::Stand::done;
    if (routing.of(e).empty()) continue;
    bool found = true, kept = true;
    for (const Role role : matrices_of(pass)) {
      const Weights::Segments run = segments_of(pass, role, e);
      for (std::uint32_t i = 0; i < run.n; ++i) {
        const Residency residency = pass.streamer().choose(run.first + i);
        found &= residency != Residency::absent;
        kept &= residency == Residency::resident;
      }
    }
    routing.stands[e] = kept ? Routing::Stand::there : Routing::Stand::awaited;
    ++routing.left;
    ++routing.n_chosen;
    routing.n_found += found ? 1 : 0;
  }
  pass.streamer().end_choice();
}

/// Whether all segments of an expert are in memory, at least one of them in the ring.
bool passes(Pass& pass, std::uint32_t expert) {
  using Residency = Streamer::Residency;
  bool in_ring = false;
  for (const Role role : matrices_of(pass)) {
    const Weights::Segments run = segments_of(pass, role, expert);
    for (std::uint32_t i = 0; i < run.n; ++i) {
      const Residency residency = pass.streamer().residency(run.first + i);
      if (residency == Residency::absent) return false;
      in_ring |= residency == Residency::in_ring;
    }
  }
  if (!in_ring) pass.routing().stands[expert] = Routing::Stand::there;
  return in_ring;
}

/// Returns one of the experts that are left: one that frees room in the ring for the next reads, else one that stays,
/// else the first, which must be awaited. With an observer it is always the first, so that sums have one order.
std::uint32_t next_expert(Pass& pass) {
  using Stand = Routing::Stand;
  const std::span<const Stand> stands = pass.routing().stands.first(pass.program().kind->n_experts);
  const auto first = static_cast<std::uint32_t>(std::ranges::find_if(stands, [](Stand s) { return s != Stand::done; }) -
                                                stands.begin());
  if (pass.observes()) return first;
  for (std::uint32_t e = first; e < stands.size(); ++e) {
    if (stands[e] == Stand::awaited && passes(pass, e)) return e;
  }
  const auto there = std::ranges::find(stands, Stand::there);
  return there == stands.end() ? first : static_cast<std::uint32_t>(there - stands.begin());
}

/// Copies the columns that selected an expert to Buf::picked, [picks, dim], times their weights if these multiply
/// inputs.
void gather(Pass& pass, Buf from, std::span<const Pick> picks) {
  const std::uint32_t n = static_cast<std::uint32_t>(picks.size()), width = pass.width(Buf::picked);
  const bool weighted = pass.program().kind->weighted_inputs != 0;
  pass.for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t i = begin; i < begin + count; ++i) {
      std::memcpy(pass.at(Buf::picked, i), pass.at(from, picks[i].column), width * sizeof(float));
      if (weighted) pass.kernels().scale(pass.at(Buf::picked, i), picks[i].weight, width);
    }
  });
  pass.wrote(Buf::picked);
}

struct Stage {
  Role matrix;
  Buf in, out;
  Role bias;
  bool activates;  // the activation follows
};
/// The stages of expert_matrices().
constexpr std::array kGated{Stage{Role::expert_gate, Buf::picked, Buf::expert_gate, Role::expert_gate_bias, false},
                            Stage{Role::expert_up, Buf::picked, Buf::expert_up, Role::expert_up_bias, true},
                            Stage{Role::expert_down, Buf::expert_gate, Buf::expert_out, Role::expert_down_bias, false}};
constexpr std::array kPlain{Stage{Role::expert_up, Buf::picked, Buf::expert_gate, Role::expert_up_bias, true},
                            kGated[2]};

std::span<const Stage> stages_of(const LayerKind& kind) {
  return kind.plain_experts != 0 ? std::span<const Stage>(kPlain) : std::span<const Stage>(kGated);
}

/// Finishes a product of an expert: adds its bias, and applies the activation if it follows.
void finish_stage(Pass& pass, const Stage& stage, const MatmulArgs& args, std::uint32_t expert, std::uint32_t rows) {
  const LayerKind& kind = *pass.program().kind;
  const Kernels& kernels = pass.kernels();
  const bool has_bias = pass.weights().has(pass.stage(), stage.bias);
  const float* bias = has_bias ? pass.vector(stage.bias, 0, expert * rows, rows) : nullptr;
  pass.for_columns(args.n, [&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t i = begin; i < begin + count && bias != nullptr; ++i) {
      kernels.add(args.y + i * args.y_stride, bias, rows);
    }
    if (stage.activates) {
      float* const gate = pass.at(Buf::expert_gate, begin);
      float* const up = kind.plain_experts != 0 ? nullptr : pass.at(Buf::expert_up, begin);
      if (up != nullptr && kind.limits_gates()) limit_gates(kind, gate, up, count * rows);
      activation_of(kernels, kind.activation)(gate, up, count * rows);
    }
  });
  pass.wrote(stage.out);
  if (stage.activates) pass.wrote(Buf::expert_gate);
}

/// Returns the output of an expert for the pick with index `pick`: [dim].
float* made(Pass& pass, std::size_t pick) { return pass.at(Buf::expert_out, 0) + pick * pass.width(Buf::experts); }

void add_up(Pass& pass, const Op& op) {
  const Routing& routing = pass.routing();
  const std::uint32_t width = pass.width(op.out);
  const bool weighs = pass.program().kind->weighted_inputs == 0;
  const std::span<const Pick> picks = routing.picks.first(std::size_t{pass.n()} * pass.program().kind->experts_used);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    std::memset(pass.at(op.out, begin), 0, std::size_t{count} * width * sizeof(float));
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (picks[i].column - begin >= count) continue;
      if (weighs) pass.kernels().scale(made(pass, i), picks[i].weight, width);
      pass.kernels().add(pass.at(op.out, picks[i].column), made(pass, i), width);
    }
  });
}

/// Multiplies one segment of an expert; continues with the next segment, then with another expert.
Advance experts_step(Pass& pass, const Op& op) {
  Routing& routing = pass.routing();
  if (pass.item() == 0) begin_experts(pass);
  pass.item() = 1;
  const bool begins = routing.matrix == 0 && routing.segment == 0;
  if (begins) routing.expert = next_expert(pass);

  const std::uint32_t expert = routing.expert;
  const std::span<const Stage> stages = stages_of(*pass.program().kind);
  const Stage& stage = stages[routing.matrix];
  const TensorEntry& tensor = pass.tensor(stage.matrix);
  const Weights::Segments run = segments_of(pass, stage.matrix, expert);
  const std::uint32_t segment = run.first + routing.segment, rows = tensor.rows / pass.program().kind->n_experts;
  const std::byte* raw = pass.streamer().acquire(segment);
  if (raw == nullptr) return Advance::blocked;
  const std::span<const Pick> picks = routing.of(expert);
  const bool last = stage.out == Buf::expert_out;
  MatmulArgs args;
  args.n = static_cast<std::uint32_t>(picks.size());
  if (begins) gather(pass, op.in, picks);
  if (routing.segment == 0) pass.entered(stage.matrix, stage.in, args.n);
  args.x = pass.at(stage.in, 0);
  args.x_stride = pass.width(stage.in);
  if (is_quantized(tensor)) args.xq = pass.quantized(stage.in, args.n);
  args.y = last ? made(pass, routing.begins[expert]) : pass.at(stage.out, 0);
  args.y_stride = last ? pass.width(op.out) : pass.width(stage.out);
  multiply_rows(pass, tensor, segment, raw, args, expert * rows);
  pass.streamer().release(segment);
  if (++routing.segment < run.n) return Advance::working;
  finish_stage(pass, stage, args, expert, rows);
  routing.segment = 0;
  if (++routing.matrix < stages.size()) return Advance::working;
  routing.matrix = 0;
  routing.stands[expert] = Routing::Stand::done;
  if (--routing.left > 0) return Advance::working;
  add_up(pass, op);
  return Advance::done;
}

/// Scales the shared expert's output, [n, dim], by the sigmoid of each column's logit.
Advance shared_step(Pass& pass, const Op& op) {
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    sigmoid(pass.kernels(), pass.at(op.in, begin), count);
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      pass.kernels().scale(pass.at(op.out, t), *pass.at(op.in, t), pass.width(op.out));
    }
  });
  pass.count(op_shared_expert.name, {}, pass.n());
  return Advance::done;
}

}  // namespace

const OpRow op_route{"route", Work::route, route_step};
const OpRow op_experts{"experts", Work::matmul, experts_step, true};
const OpRow op_shared_expert{"shared_expert", Work::scale, shared_step};

}  // namespace qsf
