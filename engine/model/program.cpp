#include "model/program.h"

#include <algorithm>
#include <array>

#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::size_t kMostOps = 48;  // in one stage

std::size_t index_of(Buf buf) { return static_cast<std::size_t>(buf); }

std::bitset<kRoles> tensors_of(const Weights& weights, std::uint32_t stage) {
  std::bitset<kRoles> has;
  for (std::size_t i = 0; i < kRoles; ++i) has[i] = weights.has(stage, kRoleRules[i].role);
  return has;
}

}  // namespace

const MixerRow& mixer_row(Mixer mixer) {
  switch (mixer) {
#define QSF_MIXER(number, name, meaning) \
  case Mixer::name:                      \
    return mixer_##name;
#include "qsf/file/layers.def"
  }
  return mixer_none;
}

void Builder::use(Op& op, Role weight, Role bias) {
  op.has_weight = true;
  op.weight = weight;
  used_.set(role_index(weight));
  if (!has(bias) || bias == weight) return;
  op.has_bias = true;
  op.bias = bias;
  used_.set(role_index(bias));
}

void Builder::emit(const Op& op) {
  if (n_ < room_.size()) room_[n_] = op;
  ++n_;
}

void Builder::set_width(Buf buf, std::uint32_t width) { program_.widths[index_of(buf)] = width; }

void Builder::norm(Role weight, Role bias, Buf in, Buf out, float epsilon) {
  const float of_head = stage_ == config_.head_stage() ? config_.table.model.final_epsilon : 0;
  Op op{.row = kind().norm == Norm::rms_norm ? &op_rms_norm : &op_layer_norm,
        .in = in,
        .out = out,
        .factor = of_head != 0   ? of_head
                  : epsilon != 0 ? epsilon
                                 : kind().norm_epsilon};
  use(op, weight, bias);
  set_width(out, width(in));
  emit(op);
}

void Builder::product(Role weight, Role bias, Buf in, Buf out) {
  Op op{.row = &op_product, .in = in, .out = out};
  use(op, weight, bias);
  set_width(out, weights_.find(stage_of(weight), weight)->rows);
  emit(op);
}

void Builder::by_head(Role weight, Buf in, Buf out) {
  Op op{.row = &op_by_head, .in = in, .out = out};
  use(op, weight, weight);
  emit(op);
}

void Builder::in_place(const OpRow& row, Role weight, Buf buf) {
  Op op{.row = &row, .in = buf, .out = buf};
  if (has(weight)) use(op, weight, weight);
  emit(op);
}

void Builder::with_weights(const OpRow& row, Role weight, Role bias, Buf buf) {
  Op op{.row = &row, .in = buf, .out = buf};
  use(op, weight, bias);
  emit(op);
}

void Builder::copy(Buf in, Buf out) {
  set_width(out, width(in));
  emit({.row = &op_copy, .in = in, .out = out});
}

void Builder::scale(Buf buf, float factor) {
  if (factor != 1) emit({.row = &op_scale, .in = buf, .out = buf, .factor = factor});
}

void Builder::embedding() {
  Op op{.row = &op_embed, .out = Buf::x};
  use(op, Role::token_embd, Role::token_embd);  // [vocab_size, dim]
  set_width(Buf::x, config_.dim);
  emit(op);
  scale(Buf::x, config_.table.model.embedding_scale);
  if (has(Role::pos_embd)) {
    Op position{.row = &op_embed_position, .out = Buf::x};
    use(position, Role::pos_embd, Role::pos_embd);  // [positions, dim]
    emit(position);
  }
  if (kind().layer_input != 0) layer_inputs();
  if (kind().streams == 0) return;
  product(Role::streams_in, Role::streams_in, Buf::x, Buf::streams);  // [(streams - 1) * dim, dim]
  emit({.row = &op_level_streams, .out = Buf::streams});
}

/// Emits the inputs of all layers, from the stream at its start and the token's row of a second embedding.
void Builder::layer_inputs() {
  product(Role::layer_inputs_proj, Role::layer_inputs_proj, Buf::x, Buf::layer_inputs);
  scale(Buf::layer_inputs, config_.table.model.layer_proj_scale);
  Op op{.row = &op_layer_inputs, .in = Buf::layer_inputs, .out = Buf::layer_inputs};
  use(op, Role::layer_embd, Role::layer_inputs_norm);  // [vocab_size, n_layers * layer_input], [layer_input]
  emit(op);
}

/// Adds the layer's own input to the stream, through a gate that is computed from the stream. With several streams, it
/// is added to those that the layer does not compute.
void Builder::layer_input() {
  const std::uint32_t width = kind().layer_input;
  Buf seen = Buf::x;
  if (has(Role::stream_scale)) {
    seen = Buf::mixed;
    copy(Buf::x, seen);
    in_place(op_scale_by_vector, Role::stream_scale, seen);  // [dim]
  }
  set_width(Buf::layer_inputs, config_.n_layers * width);
  set_width(Buf::layer_input, width);
  product(Role::layer_input_gate, Role::layer_input_gate, seen, Buf::layer_gate);  // [layer_input, dim]
  emit({.row = &op_layer_input, .in = Buf::layer_inputs, .out = Buf::layer_input});
  emit({.row = &activation_row(kind().activation), .in = Buf::layer_input, .out = Buf::layer_gate});
  product(Role::layer_input_proj, Role::layer_input_proj, Buf::layer_gate, Buf::normed);  // [dim, layer_input]
  norm(Role::layer_input_post_norm, Role::layer_input_post_norm, Buf::normed, Buf::normed);
  if (kind().streams != 0) {
    emit({.row = &op_add_to_streams, .in = Buf::normed, .out = Buf::streams});
  } else {
    add(Buf::normed, Buf::x);
  }
}

/// Emits the router of the streams, which sees x, and an op on all streams, whose factors it makes.
void Builder::streams(const OpRow& row, Role factors) {
  set_width(Buf::streams, kind().other_streams() * config_.dim);
  set_width(Buf::predicted, config_.dim);
  set_width(Buf::router, kind().streams);
  norm(Role::stream_router_norm, Role::stream_router_norm, Buf::x, Buf::normed);
  Op route{.row = &op_route_streams, .in = Buf::normed, .out = Buf::router};
  use(route, Role::stream_router, Role::stream_router);  // [streams * dim]
  emit(route);
  Op op{.row = &row, .in = Buf::router, .out = Buf::x};
  use(op, factors, factors);  // [streams * streams], for a prediction times streams
  emit(op);
}

/// Emits the sum of the mixer's input and its product with a matrix of low rank (LAuReL, Menghani et al. 2024).
void Builder::laurel(Buf in, Buf out) {
  product(Role::laurel_left, Role::laurel_left, in, Buf::q2);     // [laurel_rank, dim]
  product(Role::laurel_right, Role::laurel_right, Buf::q2, out);  // [dim, laurel_rank]
  norm(Role::laurel_norm, Role::laurel_norm, out, out);
  add(in, out);
}

void Builder::uses(Role role) {
  if (has(role)) used_.set(role_index(role));
}

void Builder::activate(Buf gate, Buf up) {
  if (up != Buf::none && kind().limits_gates()) emit({.row = &op_limit, .in = up, .out = gate});
  Op op{.row = &activation_row(kind().activation), .in = up, .out = gate};
  if (kind().activation == Activation::xielu) {
    op.row = &op_xielu;
    use(op, Role::xielu_p, Role::xielu_p);
    for (const Role role : {Role::xielu_n, Role::xielu_beta, Role::xielu_eps}) uses(role);
  }
  emit(op);
}

/// Emits the network on `in` and returns the buffer of its output, [dim], which may be `in`.
Buf Builder::network(Buf in) {
  if (kind().ffn == Ffn::mixture) {
    route(in);
    return mixture(in);
  }
  return kind().has_experts() ? side_by_side(in) : dense(in);
}

Buf Builder::dense(Buf in) {
  if (kind().ffn != Ffn::plain) {
    product(Role::ffn_gate, Role::ffn_gate_bias, in, Buf::gate);  // [ffn_dim, dim]
    product(Role::ffn_up, Role::ffn_up_bias, in, Buf::up);        // [ffn_dim, dim]
    if (kind().gate_cut != 0) emit({.row = &op_cut_gates, .out = Buf::gate});
    activate(Buf::gate, Buf::up);
  } else {
    product(Role::ffn_up, Role::ffn_up_bias, in, Buf::gate);  // [ffn_dim, dim]
    activate(Buf::gate, Buf::none);
  }
  if (has(Role::ffn_sub_norm)) norm(Role::ffn_sub_norm, Role::ffn_sub_norm, Buf::gate, Buf::gate);
  product(Role::ffn_down, Role::ffn_bias, Buf::gate, Buf::normed);  // [dim, ffn_dim]
  return Buf::normed;
}

/// Emits a dense network and a mixture. Router and experts each have their own norm of the stream.
Buf Builder::side_by_side(Buf in) {
  norm(Role::router_norm, Role::router_norm, Buf::x, Buf::expert_in);
  route(Buf::expert_in);
  norm(Role::expert_norm, Role::expert_norm, Buf::x, Buf::expert_in);
  const Buf sum = mixture(Buf::expert_in), made = dense(in);
  norm(Role::expert_post_norm, Role::expert_post_norm, sum, sum);
  norm(Role::dense_post_norm, Role::dense_post_norm, made, made);
  add(made, sum);
  return sum;
}

/// Emits the selection of experts by a router that sees `in`.
void Builder::route(Buf in) {
  product(Role::router, Role::router_bias, in, Buf::router);  // [n_experts, dim]
  scale(Buf::router, kind().router_logit_scale);
  in_place(op_route, Role::router_choice_bias, Buf::router);
  uses(Role::router_expert_scale);
}

/// Emits the experts that the router selected, then the shared expert, which every token uses.
Buf Builder::mixture(Buf in) {
  const LayerKind& k = kind();
  set_width(Buf::picked, config_.dim);
  set_width(Buf::expert_gate, k.expert_dim);
  set_width(Buf::expert_up, k.expert_dim);
  set_width(Buf::expert_out, k.experts_used * config_.dim);
  set_width(Buf::experts, config_.dim);
  for (const Role role : {Role::expert_gate, Role::expert_up, Role::expert_down, Role::expert_gate_bias,
                          Role::expert_up_bias, Role::expert_down_bias}) {
    uses(role);
  }
  emit({.row = &op_experts, .in = in, .out = Buf::experts});
  if (k.shared_dim == 0) return Buf::experts;
  const bool gated = k.plain_experts == 0;
  if (gated) product(Role::shared_gate, Role::shared_gate, in, Buf::gate);     // [shared_dim, dim]
  product(Role::shared_up, Role::shared_up, in, gated ? Buf::up : Buf::gate);  // [shared_dim, dim]
  if (has(Role::shared_router)) product(Role::shared_router, Role::shared_router, in, Buf::share);
  activate(Buf::gate, gated ? Buf::up : Buf::none);
  product(Role::shared_down, Role::shared_down, Buf::gate, Buf::picked);  // [dim, shared_dim]
  if (has(Role::shared_router)) emit({.row = &op_shared_expert, .in = Buf::share, .out = Buf::picked});
  add(Buf::picked, Buf::experts);
  return Buf::experts;
}

/// Emits the scaled addition of a mixer's or network's output to the stream, with the kind's norms of output or sum.
void Builder::post(Role norm_role, Role bias, Buf made, float stream_scale) {
  const NormPosition place = kind().norm_place;
  if (place == NormPosition::after || place == NormPosition::both) norm(norm_role, norm_role, made, made);
  scale(made, kind().residual_scale);
  scale(Buf::x, stream_scale);
  add(made, Buf::x);
  if (place == NormPosition::sum) norm(norm_role, bias, Buf::x, Buf::x);
}

void Builder::layer() {
  set_width(Buf::x, config_.dim);
  if (stage_ == config_.guess_stage) guess_input();
  if (kind().streams != 0) streams(op_predict, Role::stream_predict);
  blocks();
  if (kind().streams != 0) streams(op_correct, Role::stream_correct);
  if (kind().layer_input != 0) layer_input();
  if (has(Role::layer_scale)) in_place(op_scale_by, Role::layer_scale, Buf::x);
}

void Builder::blocks() {
  const NormPosition place = kind().norm_place;
  const bool on_stream = place == NormPosition::stream;
  const bool before = place == NormPosition::before || place == NormPosition::both || on_stream;
  const Buf normed = before && !on_stream ? Buf::normed : Buf::x;  // the input of mixer and network
  const bool mixes = kind().mixer != Mixer::none, feeds = kind().ffn != Ffn::none;
  const bool parallel = kind().residual == Residual::parallel && mixes && feeds;
  if (has(Role::second_bias)) {
    with_weights(op_add_by_text, Role::stream_bias, Role::second_bias, Buf::x);
  } else if (has(Role::stream_bias)) {
    in_place(op_add_vector, Role::stream_bias, Buf::x);
  }
  if (kind().stream_norm != 0) norm(Role::stream_norm, Role::stream_norm_bias, Buf::x, Buf::x);
  if (mixes) {
    const Buf in = kind().bare_mixer == 0 ? normed : Buf::x;
    if (before && kind().bare_mixer == 0) norm(Role::attn_norm, Role::attn_norm_bias, Buf::x, in);
    if (kind().laurel_rank != 0) laurel(in, Buf::mixed);
    mixer_row(kind().mixer).emit(*this, in, parallel ? Buf::mixed : Buf::normed);
    if (!parallel) post(Role::attn_post_norm, Role::attn_post_norm_bias, Buf::normed, kind().stream_scale);
    if (kind().laurel_rank != 0) {
      add(Buf::mixed, Buf::x);
      scale(Buf::x, 0.70710678f);  // 1 / sqrt(2)
    }
  }
  if (!feeds) return;
  const bool own_norm = before && (!parallel || has(Role::ffn_norm));
  if (own_norm) norm(Role::ffn_norm, Role::ffn_norm_bias, Buf::x, normed);
  const Buf made = network(normed);
  if (parallel) post(Role::attn_post_norm, Role::attn_post_norm_bias, Buf::mixed, 1);
  post(Role::ffn_post_norm, Role::ffn_post_norm_bias, made, kind().network_stream_scale);
}

/// Emits the score of the pooled hidden states in `last`. The mean comes first, because the rest is not linear.
void Builder::score(Buf last) {
  const ModelKind& model = config_.table.model;
  if (model.pooling == Pooling::mean) {
    set_width(Buf::mixed, config_.dim);
    emit({.row = &op_mean, .in = last, .out = Buf::mixed});
    last = Buf::mixed;
  }
  if (has(Role::dense)) {
    product(Role::dense, Role::dense_bias, last, Buf::pooled);  // [dim, dim]
    constexpr std::array kActivations{&op_soft_cap, &op_gelu_erf, &op_relu, &op_silu};
    emit({.row = kActivations[model.score_activation], .out = Buf::pooled});  // c tanh(x / c) with c = 1
    if (has(Role::score_norm)) norm(Role::score_norm, Role::score_norm, Buf::pooled, Buf::pooled);
    last = Buf::pooled;
  }
  Op op{.row = &op_score, .in = last, .out = Buf::score};
  use(op, Role::score, Role::score_bias);
  set_width(Buf::score, 1);
  emit(op);
}

void Builder::head() {
  set_width(Buf::x, config_.dim);
  for (const Role of_others : {Role::layer_inputs_norm, Role::distance_bias}) uses(of_others);
  if (kind().streams != 0) {
    for (const Buf buf : {Buf::streams, Buf::gate}) set_width(buf, kind().other_streams() * config_.dim);
    by_head(Role::streams_out, Buf::streams, Buf::gate);  // [(streams - 1) * dim, dim]
    emit({.row = &op_level_streams, .out = Buf::gate});
    emit({.row = &op_join_streams, .in = Buf::gate, .out = Buf::x});
  }
  if (config_.guess_stage != 0) set_width(Buf::hidden, config_.dim);
  if (has(Role::final_norm)) norm(Role::final_norm, Role::final_norm_bias, Buf::x, Buf::normed);
  if (config_.table.model.headless != 0) {
    const Buf last = has(Role::final_norm) ? Buf::normed : Buf::x;
    if (config_.table.model.score != 0) {
      score(last);
    } else if (has(Role::dense)) {
      product(Role::dense, Role::dense, last, Buf::pooled);  // [dim, dim]
    }
    return;
  }
  emit({.row = &op_hidden});
  const Role weight = config_.tied ? Role::token_embd : Role::head;
  product(weight, Role::head_bias, Buf::normed, Buf::logits);  // [vocab_size, dim]
  const ModelKind& model = config_.table.model;
  scale(Buf::logits, model.logit_scale);
  if (model.logit_cap != 0) {
    emit({.row = &op_soft_cap, .in = Buf::logits, .out = Buf::logits, .factor = model.logit_cap});
  }
}

Status Program::build(StageProgram& program, std::uint32_t stage, std::span<Op> ops) {
  const Header& header = weights_->tables().header;
  program = {};
  program.kind = &kind_of_stage(header, config_->table, stage);
  program.has = tensors_of(*weights_, stage);
  Builder builder(*config_, *weights_, stage, program, ops);
  switch (scope_of(header, stage)) {
    case RoleScope::embedding:
      builder.embedding();
      break;
    case RoleScope::layer:
      builder.layer();
      break;
    case RoleScope::final:
      builder.head();
      break;
  }
  if (builder.size() > ops.size()) {
    return make_error(ErrorCode::internal, "stage {} takes {} instructions", stage, builder.size());
  }
  for (std::size_t i = 0; i < kRoles; ++i) {
    if (program.has[i] && !builder.used()[i]) {
      return make_error(ErrorCode::bad_tensor, "stage {} has {}, which nothing in it uses", stage, kRoleRules[i].name);
    }
  }
  program.ops = ops.first(builder.size());
  for (std::size_t i = 0; i < kBufs; ++i) widths_[i] = std::max(widths_[i], program.widths[i]);
  for (const Op& op : program.ops) {
    if (op.row == &op_product && op.in == op.out) {
      return make_error(ErrorCode::internal, "a product in stage {} writes the buffer that it reads", stage);
    }
    if (op.row == &op_product) widest_input_ = std::max(widest_input_, program.widths[index_of(op.in)]);
    if (op.row == &op_by_head) widest_input_ = std::max(widest_input_, weights_->find(stage, op.weight)->cols);
    if (!op.row->chooses) continue;
    widest_input_ = std::max({widest_input_, program.widths[index_of(Buf::picked)], program.kind->expert_dim});
    most_experts_ = std::max(most_experts_, program.kind->n_experts);
    most_used_ = std::max(most_used_, program.kind->experts_used);
  }
  return {};
}

Status Program::init(Arena& arena, const Config& config, const Weights& weights, bool sweeps) {
  config_ = &config;
  weights_ = &weights;
  sweeps_ = sweeps;
  const std::uint32_t n_stages = n_weight_stages(weights.tables().header);
  const auto same = [&](std::uint32_t a, std::uint32_t b) {
    const Header& header = weights.tables().header;
    return scope_of(header, a) == scope_of(header, b) &&
           &kind_of_stage(header, config.table, a) == &kind_of_stage(header, config.table, b) &&
           tensors_of(weights, a) == tensors_of(weights, b);
  };
  QSF_TRY(arena.take(of_stage_, n_stages, Region::tables));
  std::uint32_t n_programs = 0;
  for (std::uint32_t s = 0; s < n_stages; ++s) {
    std::uint32_t first = 0;
    while (!same(first, s)) ++first;
    of_stage_[s] = static_cast<std::uint16_t>(first == s ? n_programs++ : of_stage_[first]);
  }
  QSF_TRY(arena.take(programs_, n_programs, Region::tables));
  std::uint32_t made = 0;
  for (std::uint32_t s = 0; s < n_stages; ++s) {
    if (of_stage_[s] != made) continue;
    std::array<Op, kMostOps> ops;
    QSF_TRY(build(programs_[made], s, ops));
    std::span<Op> kept;
    QSF_TRY(arena.take(kept, programs_[made].ops.size(), Region::tables));
    std::ranges::copy(programs_[made].ops, kept.begin());
    programs_[made++].ops = kept;
  }
  for (const TensorEntry& t : weights.tables().tensors) {
    const RoleRule& rule = rule_of(t.role);
    if (rule.matrix && rule.scope != RoleScope::embedding)
      continue;  // the embedding's matrices are read as single rows
    const Header& header = weights.tables().header;
    const std::uint32_t share = expert_share(header, kind_of_stage(header, config.table, t.stage), rule);
    longest_vector_ = std::max(longest_vector_, share != 0 ? share : t.cols);
  }
  QSF_TRY(init_ropes(arena));
  QSF_TRY(init_slopes(arena));
  QSF_TRY(init_buckets(arena));
  return init_schedule(arena);
}

Status Program::init_schedule(Arena& arena) {
  const auto n_stages = static_cast<std::uint32_t>(of_stage_.size());
  std::size_t n_choices = 0;
  for (std::uint32_t s = 1; s < n_stages; ++s) n_choices += of_stage(s).chooses() ? 1 : 0;
  QSF_TRY(arena.take(chosen_, n_choices, Region::tables));
  const auto each = [&](auto visit) {
    n_choices = n_swept_ = 0;
    for (std::uint32_t s = 0; s < n_stages; ++s) {
      starts_[s] = visit(kNoRole, 0u);
      for (const Op& op : of_stage(s).ops) {
        if (op.row->chooses) {
          const std::uint32_t begin = visit(kNoRole, 0u), n_experts = of_stage(s).kind->n_experts;
          for (std::uint32_t expert = 0; expert < n_experts; ++expert) {
            for (const Role role : expert_matrices(*of_stage(s).kind)) {
              const auto run = weights_->segments_of_expert(*weights_->find(s, role), n_experts, expert);
              for (std::uint32_t i = 0; i < run.n; ++i) visit(role_index(role), run.first + i);
            }
          }
          chosen_[n_choices++] = {begin, visit(kNoRole, 0u)};
        }
        if (!op.has_weight || !rule_of(op.weight).matrix) continue;
        if (op.row->looks_up && !sweeps_) continue;
        const bool embedding = rule_of(op.weight).scope == RoleScope::embedding;
        const TensorEntry& t = *weights_->find(embedding ? 0 : s, op.weight);
        const std::uint32_t begin = visit(kNoRole, 0u);
        for (std::uint32_t i = 0; i < t.n_segments; ++i) visit(role_index(op.weight), t.first_segment + i);
        if (op.row->looks_up && n_swept_ < swept_.size()) swept_[n_swept_++] = {begin, visit(kNoRole, 0u)};
      }
    }
    starts_[n_stages] = visit(kNoRole, 0u);
  };
  QSF_TRY(arena.take(starts_, n_stages + 1, Region::tables));
  std::uint32_t n = 0;
  each([&](std::size_t role, std::uint32_t) { return role == kNoRole ? n : n++; });
  QSF_TRY(arena.take(schedule_, n, Region::tables));
  n = 0;
  each([&](std::size_t role, std::uint32_t segment) {
    if (role == kNoRole) return n;
    schedule_[n] = segment;
    return n++;
  });
  return {};
}

ScheduleRange Program::chosen_in(std::uint32_t stage) const {
  const ScheduleRange all = range(stage, stage + 1);
  for (const ScheduleRange& chosen : chosen_) {
    if (chosen.begin >= all.begin && chosen.end <= all.end && chosen.begin < chosen.end) return chosen;
  }
  return {};
}

}  // namespace qsf
