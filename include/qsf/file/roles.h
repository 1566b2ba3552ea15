// The properties of each role: its name, its kind of stage, its shape, and the kinds of layers that have it. The number
// of a role in the file, its index in this table and the order in which tensors are used are independent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf {

enum class RoleScope : std::uint8_t { embedding, layer, final };
enum class Extent : std::uint8_t {
  one,
  dim,
  heads,
  kv_heads,
  head_dim,
  ffn_dim,
  vocab,
  positions,
  n_heads,
  experts,
  expert_dim,
  all_expert_dims,  // expert_dim of every expert, expert after expert
  all_expert_outputs,
  shared_dim,
  conv_channels,
  conv_weights,
  state_heads,
  state_keys,
  state_values,
  state_key_dim,
  state_value_dim,
  key_head_heads,
  key_head_values,
  group,         // the values of the query heads that share a KV head
  layer_input,   // the input of one layer
  layer_inputs,  // the inputs of all layers
  query_rank,
  query_input,  // query_rank, or dim
  rope_dims,
  still_dims,  // of a latent query, those that RoPE does not rotate
  latent_dim,
  latent_value_dim,
  all_rope_dims,  // of every head, head after head, as the next
  all_still_dims,
  all_latent_dims,
  all_latent_value_dims,
  state_rank,
  state_cells,      // numbers of a state
  head_buckets,     // the buckets of distances of every head, head after head
  other_streams,    // the values of all streams except the first
  stream_dims,      // of all streams
  predict_factors,  // streams * streams * streams
  correct_factors,  // streams * streams
  laurel_rank,
  two_dims,  // dim, twice
};
/// Whether a stage must not have, may have or must have a tensor of a role.
enum class Requirement : std::uint8_t { never, optional, always };

/// The inputs of a rule: the kind of the layer, or of the first layer for other stages, and whether the head is tied or
/// absent.
struct RoleContext {
  const LayerKind& kind;
  bool tied;
  bool headless;
  bool scores;
  bool guesses;  // the layer guesses tokens
};

/// The rule of one role. A matrix has segments of its own, which can be streamed; the vectors of a stage share resident
/// segments.
struct RoleRule {
  Role role;
  std::string_view name;
  RoleScope scope;
  bool matrix;
  Extent rows;
  Extent cols;
  Requirement (*requirement)(const RoleContext&);
};

namespace requirement {

constexpr Requirement when(bool has) { return has ? Requirement::always : Requirement::never; }
constexpr Requirement may(bool can) { return can ? Requirement::optional : Requirement::never; }
constexpr bool mixes(const RoleContext& c) { return c.kind.mixer != Mixer::none; }
constexpr bool feeds(const RoleContext& c) { return c.kind.ffn != Ffn::none; }
constexpr bool mixture(const RoleContext& c) { return c.kind.has_experts(); }
constexpr bool has_gate(const RoleContext& c) {
  return c.kind.ffn == Ffn::gated || c.kind.ffn == Ffn::gated_and_mixture;
}
constexpr bool shares(const RoleContext& c) { return mixture(c) && c.kind.shared_dim != 0; }
constexpr bool before(const RoleContext& c) {
  return c.kind.norm_place != NormPosition::after && c.kind.norm_place != NormPosition::sum;
}
constexpr bool after(const RoleContext& c) {
  return c.kind.norm_place != NormPosition::before && c.kind.norm_place != NormPosition::stream;
}

constexpr Requirement always(const RoleContext&) { return Requirement::always; }
constexpr Requirement untied(const RoleContext& c) { return when(!c.tied && !c.headless); }
constexpr Requirement head_may(const RoleContext& c) { return may(!c.headless); }
/// In models that make only embeddings.
constexpr Requirement headless_may(const RoleContext& c) { return may(c.headless); }
/// In models that make only scores.
constexpr Requirement scores(const RoleContext& c) { return when(c.scores); }
constexpr Requirement scores_may(const RoleContext& c) { return may(c.scores); }
constexpr Requirement before_head(const RoleContext& c) {
  return c.headless ? Requirement::optional : Requirement::always;
}
constexpr Requirement attention(const RoleContext& c) { return when(c.kind.attends()); }
constexpr Requirement attention_may(const RoleContext& c) { return may(c.kind.attends()); }
constexpr Requirement buckets(const RoleContext& c) { return when(c.kind.distance_buckets != 0); }
constexpr Requirement own_keys(const RoleContext& c) { return when(c.kind.attends() && c.kind.kv_from == 0); }
constexpr Requirement own_keys_may(const RoleContext& c) { return may(c.kind.attends() && c.kind.kv_from == 0); }
constexpr bool has_values(const LayerKind& k) { return k.attends() && k.kv_from == 0 && k.v_from_k == 0; }
constexpr Requirement own_values(const RoleContext& c) { return when(has_values(c.kind)); }
constexpr Requirement own_values_may(const RoleContext& c) { return may(has_values(c.kind)); }
constexpr Requirement layer_input(const RoleContext& c) { return when(c.kind.layer_input != 0); }
constexpr Requirement gated(const RoleContext& c) { return when(has_gate(c)); }
constexpr Requirement gated_may(const RoleContext& c) { return may(has_gate(c)); }
constexpr Requirement network(const RoleContext& c) { return when(c.kind.has_dense()); }
constexpr Requirement network_may(const RoleContext& c) { return may(c.kind.has_dense()); }
constexpr Requirement side_by_side(const RoleContext& c) { return when(c.kind.ffn == Ffn::gated_and_mixture); }
constexpr Requirement experts(const RoleContext& c) { return when(mixture(c)); }
constexpr bool gates_experts(const RoleContext& c) { return mixture(c) && c.kind.plain_experts == 0; }
constexpr Requirement gated_experts(const RoleContext& c) { return when(gates_experts(c)); }
constexpr Requirement gated_experts_may(const RoleContext& c) { return may(gates_experts(c)); }
constexpr Requirement gated_shared(const RoleContext& c) { return when(shares(c) && gates_experts(c)); }
constexpr Requirement experts_may(const RoleContext& c) { return may(mixture(c)); }
constexpr Requirement shared_expert(const RoleContext& c) { return when(shares(c)); }
constexpr Requirement shared_expert_may(const RoleContext& c) { return may(shares(c)); }
constexpr bool norms_mixer(const RoleContext& c) { return before(c) && mixes(c) && c.kind.bare_mixer == 0; }
constexpr Requirement mixer_norm(const RoleContext& c) { return when(norms_mixer(c)); }
/// In a parallel layer the mixer's norm can serve the network too.
constexpr Requirement network_norm(const RoleContext& c) {
  const bool has = before(c) && feeds(c);
  return c.kind.residual == Residual::parallel && mixes(c) ? may(has) : when(has);
}
constexpr Requirement mixer_post_norm(const RoleContext& c) { return when(after(c) && mixes(c)); }
constexpr Requirement network_post_norm(const RoleContext& c) { return when(after(c) && feeds(c)); }
constexpr bool layer_norm(const RoleContext& c) { return c.kind.norm == Norm::layer_norm; }
constexpr Requirement mixer_norm_bias(const RoleContext& c) { return may(layer_norm(c) && norms_mixer(c)); }
constexpr Requirement network_norm_bias(const RoleContext& c) { return may(layer_norm(c) && before(c) && feeds(c)); }
constexpr Requirement may_be(const RoleContext&) { return Requirement::optional; }
constexpr Requirement layer_norm_may(const RoleContext& c) { return may(layer_norm(c)); }
constexpr bool delta(const RoleContext& c) { return c.kind.mixer == Mixer::delta_net; }
constexpr bool mamba(const RoleContext& c) { return c.kind.mixer == Mixer::mamba; }
constexpr Requirement short_conv(const RoleContext& c) { return when(c.kind.mixer == Mixer::short_conv); }
constexpr Requirement convolves(const RoleContext& c) { return when(c.kind.convolves()); }
constexpr Requirement mambas_may(const RoleContext& c) { return may(mamba(c) || c.kind.has_mamba2()); }
constexpr Requirement recurrent(const RoleContext& c) { return when(c.kind.has_state()); }
constexpr Requirement keyed(const RoleContext& c) { return when(c.kind.has_state() && !mamba(c)); }
constexpr bool decays(const RoleContext& c) { return c.kind.has_state() && c.kind.mixer != Mixer::lightning; }
constexpr Requirement stepped(const RoleContext& c) { return when(decays(c)); }
constexpr Requirement keyed_steps(const RoleContext& c) { return when(decays(c) && !mamba(c)); }
constexpr Requirement mamba1(const RoleContext& c) { return when(mamba(c)); }
constexpr Requirement mamba1_may(const RoleContext& c) { return may(mamba(c)); }
/// A mamba2 next to attention may have no norm.
constexpr Requirement norm_of_all(const RoleContext& c) {
  const bool alone = c.kind.mixer == Mixer::mamba2 || c.kind.mixer == Mixer::lightning;
  return c.kind.mixer == Mixer::attention_and_mamba2 ? Requirement::optional : when(alone);
}
constexpr Requirement xielu(const RoleContext& c) {
  return when(c.kind.activation == Activation::xielu && c.kind.has_dense());
}
constexpr Requirement delta_net(const RoleContext& c) { return when(delta(c)); }
constexpr Requirement mambas(const RoleContext& c) { return when(mamba(c) || c.kind.has_mamba2()); }
constexpr Requirement gated_attention(const RoleContext& c) {
  return when(c.kind.attends() && c.kind.attention_gate != 0);
}
constexpr Requirement latent(const RoleContext& c) { return when(c.kind.mixer == Mixer::latent); }
constexpr Requirement latent_rank(const RoleContext& c) {
  return when(c.kind.mixer == Mixer::latent && c.kind.query_rank != 0);
}
constexpr bool on_sum(const RoleContext& c) { return layer_norm(c) && c.kind.norm_place == NormPosition::sum; }
constexpr Requirement mixer_sum_bias(const RoleContext& c) { return may(on_sum(c) && mixes(c)); }
constexpr Requirement network_sum_bias(const RoleContext& c) { return may(on_sum(c) && feeds(c)); }
constexpr Requirement stream_norm(const RoleContext& c) { return when(c.kind.stream_norm != 0); }
constexpr Requirement stream_norm_bias(const RoleContext& c) { return may(layer_norm(c) && c.kind.stream_norm != 0); }
constexpr Requirement stream_norm_may(const RoleContext& c) { return may(c.kind.stream_norm != 0); }
constexpr Requirement streams(const RoleContext& c) { return when(c.kind.streams != 0); }
/// A layer's own input is added to the other streams only.
constexpr Requirement stream_inputs(const RoleContext& c) {
  return may(c.kind.streams != 0 && c.kind.layer_input != 0);
}
constexpr Requirement laurel(const RoleContext& c) { return when(c.kind.laurel_rank != 0); }
constexpr Requirement guesses(const RoleContext& c) { return when(c.guesses); }
constexpr Requirement second_may(const RoleContext& c) { return may(c.scores && c.kind.stream_norm != 0); }

}  // namespace requirement

/// The rules in the order in which the writer stores tensors, except vectors, which it stores together.
// clang-format off
inline constexpr std::array kRoleRules{
    RoleRule{Role::attn_q,          "attn_q",          RoleScope::layer,     true,  Extent::heads,    Extent::dim,      requirement::attention},
    RoleRule{Role::attn_k,          "attn_k",          RoleScope::layer,     true,  Extent::kv_heads, Extent::dim,      requirement::own_keys},
    RoleRule{Role::attn_v,          "attn_v",          RoleScope::layer,     true,  Extent::kv_heads, Extent::dim,      requirement::own_values},
    RoleRule{Role::attn_o,          "attn_o",          RoleScope::layer,     true,  Extent::dim,      Extent::heads,    requirement::attention},
    RoleRule{Role::ffn_gate,        "ffn_gate",        RoleScope::layer,     true,  Extent::ffn_dim,  Extent::dim,      requirement::gated},
    RoleRule{Role::ffn_up,          "ffn_up",          RoleScope::layer,     true,  Extent::ffn_dim,  Extent::dim,      requirement::network},
    RoleRule{Role::ffn_down,        "ffn_down",        RoleScope::layer,     true,  Extent::dim,      Extent::ffn_dim,  requirement::network},
    RoleRule{Role::attn_norm,       "attn_norm",       RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::mixer_norm},
    RoleRule{Role::ffn_norm,        "ffn_norm",        RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::network_norm},
    RoleRule{Role::attn_q_bias,     "attn_q_bias",     RoleScope::layer,     false, Extent::one,      Extent::heads,    requirement::attention_may},
    RoleRule{Role::attn_k_bias,     "attn_k_bias",     RoleScope::layer,     false, Extent::one,      Extent::kv_heads, requirement::own_keys_may},
    RoleRule{Role::attn_v_bias,     "attn_v_bias",     RoleScope::layer,     false, Extent::one,      Extent::kv_heads, requirement::own_values_may},
    RoleRule{Role::attn_o_bias,     "attn_o_bias",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::attention_may},
    RoleRule{Role::ffn_bias,        "ffn_bias",        RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::network_may},
    RoleRule{Role::attn_q_norm,     "attn_q_norm",     RoleScope::layer,     false, Extent::one,      Extent::head_dim, requirement::attention_may},
    RoleRule{Role::attn_k_norm,     "attn_k_norm",     RoleScope::layer,     false, Extent::one,      Extent::head_dim, requirement::own_keys_may},
    RoleRule{Role::token_embd,      "token_embd",      RoleScope::embedding, true,  Extent::vocab,    Extent::dim,      requirement::always},
    RoleRule{Role::final_norm,      "final_norm",      RoleScope::final,     false, Extent::one,      Extent::dim,      requirement::before_head},
    RoleRule{Role::head,            "head",            RoleScope::final,     true,  Extent::vocab,    Extent::dim,      requirement::untied},
    RoleRule{Role::attn_post_norm,  "attn_post_norm",  RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::mixer_post_norm},
    RoleRule{Role::ffn_post_norm,   "ffn_post_norm",   RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::network_post_norm},
    RoleRule{Role::attn_norm_bias,  "attn_norm_bias",  RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::mixer_norm_bias},
    RoleRule{Role::ffn_norm_bias,   "ffn_norm_bias",   RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::network_norm_bias},
    RoleRule{Role::final_norm_bias, "final_norm_bias", RoleScope::final,     false, Extent::one,      Extent::dim,      requirement::layer_norm_may},
    RoleRule{Role::ffn_gate_bias,   "ffn_gate_bias",   RoleScope::layer,     false, Extent::one,      Extent::ffn_dim,  requirement::gated_may},
    RoleRule{Role::ffn_up_bias,     "ffn_up_bias",     RoleScope::layer,     false, Extent::one,      Extent::ffn_dim,  requirement::network_may},
    RoleRule{Role::pos_embd,        "pos_embd",        RoleScope::embedding, true,  Extent::positions, Extent::dim,     requirement::may_be},
    RoleRule{Role::head_bias,       "head_bias",       RoleScope::final,     false, Extent::one,      Extent::vocab,    requirement::head_may},
    RoleRule{Role::attn_q_norm_all, "attn_q_norm_all", RoleScope::layer,     false, Extent::one,      Extent::heads,    requirement::attention_may},
    RoleRule{Role::attn_k_norm_all, "attn_k_norm_all", RoleScope::layer,     false, Extent::one,      Extent::kv_heads, requirement::own_keys_may},
    RoleRule{Role::attn_sub_norm,   "attn_sub_norm",   RoleScope::layer,     false, Extent::one,      Extent::heads,    requirement::attention_may},
    RoleRule{Role::ffn_sub_norm,    "ffn_sub_norm",    RoleScope::layer,     false, Extent::one,      Extent::ffn_dim,  requirement::network_may},
    RoleRule{Role::attn_sinks,      "attn_sinks",      RoleScope::layer,     false, Extent::one,      Extent::n_heads,  requirement::attention_may},
    RoleRule{Role::router,          "router",          RoleScope::layer,     true,  Extent::experts,  Extent::dim,      requirement::experts},
    RoleRule{Role::router_bias,     "router_bias",     RoleScope::layer,     false, Extent::one,      Extent::experts,  requirement::experts_may},
    RoleRule{Role::router_choice_bias, "router_choice_bias", RoleScope::layer, false, Extent::one,    Extent::experts,  requirement::experts_may},
    RoleRule{Role::expert_gate,     "expert_gate",     RoleScope::layer,     true,  Extent::all_expert_dims, Extent::dim, requirement::gated_experts},
    RoleRule{Role::expert_up,       "expert_up",       RoleScope::layer,     true,  Extent::all_expert_dims, Extent::dim, requirement::experts},
    RoleRule{Role::expert_down,     "expert_down",     RoleScope::layer,     true,  Extent::all_expert_outputs, Extent::expert_dim, requirement::experts},
    RoleRule{Role::expert_gate_bias, "expert_gate_bias", RoleScope::layer,   false, Extent::one,      Extent::all_expert_dims, requirement::gated_experts_may},
    RoleRule{Role::expert_up_bias,  "expert_up_bias",  RoleScope::layer,     false, Extent::one,      Extent::all_expert_dims, requirement::experts_may},
    RoleRule{Role::expert_down_bias, "expert_down_bias", RoleScope::layer,   false, Extent::one,      Extent::all_expert_outputs, requirement::experts_may},
    RoleRule{Role::shared_gate,     "shared_gate",     RoleScope::layer,     true,  Extent::shared_dim, Extent::dim,    requirement::gated_shared},
    RoleRule{Role::shared_up,       "shared_up",       RoleScope::layer,     true,  Extent::shared_dim, Extent::dim,    requirement::shared_expert},
    RoleRule{Role::shared_down,     "shared_down",     RoleScope::layer,     true,  Extent::dim,      Extent::shared_dim, requirement::shared_expert},
    RoleRule{Role::shared_router,   "shared_router",   RoleScope::layer,     true,  Extent::one,      Extent::dim,      requirement::shared_expert_may},
    RoleRule{Role::conv_b,          "conv_b",          RoleScope::layer,     true,  Extent::dim,       Extent::dim,      requirement::short_conv},
    RoleRule{Role::conv_c,          "conv_c",          RoleScope::layer,     true,  Extent::dim,       Extent::dim,      requirement::short_conv},
    RoleRule{Role::conv_x,          "conv_x",          RoleScope::layer,     true,  Extent::dim,       Extent::dim,      requirement::short_conv},
    RoleRule{Role::conv_out,        "conv_out",        RoleScope::layer,     true,  Extent::dim,       Extent::dim,      requirement::short_conv},
    RoleRule{Role::conv_weight,     "conv_weight",     RoleScope::layer,     false, Extent::one,       Extent::conv_weights, requirement::convolves},
    RoleRule{Role::conv_bias,       "conv_bias",       RoleScope::layer,     false, Extent::one,       Extent::conv_channels, requirement::mambas_may},
    RoleRule{Role::state_q,         "state_q",         RoleScope::layer,     true,  Extent::state_keys, Extent::dim,      requirement::keyed},
    RoleRule{Role::state_k,         "state_k",         RoleScope::layer,     true,  Extent::state_keys, Extent::dim,      requirement::keyed},
    RoleRule{Role::state_v,         "state_v",         RoleScope::layer,     true,  Extent::state_values, Extent::dim,      requirement::recurrent},
    RoleRule{Role::state_z,         "state_z",         RoleScope::layer,     true,  Extent::state_values, Extent::dim,      requirement::recurrent},
    RoleRule{Role::state_a,         "state_a",         RoleScope::layer,     true,  Extent::state_heads, Extent::dim,      requirement::keyed_steps},
    RoleRule{Role::state_b,         "state_b",         RoleScope::layer,     true,  Extent::state_heads, Extent::dim,      requirement::delta_net},
    RoleRule{Role::state_decay,     "state_decay",     RoleScope::layer,     false, Extent::one,       Extent::state_heads, requirement::keyed_steps},
    RoleRule{Role::state_dt_bias,   "state_dt_bias",   RoleScope::layer,     false, Extent::one,       Extent::state_heads, requirement::stepped},
    RoleRule{Role::state_skip,      "state_skip",      RoleScope::layer,     false, Extent::one,       Extent::state_heads, requirement::mambas},
    RoleRule{Role::state_norm,      "state_norm",      RoleScope::layer,     false, Extent::one,       Extent::state_value_dim, requirement::delta_net},
    RoleRule{Role::state_norm_all,  "state_norm_all",  RoleScope::layer,     false, Extent::one,       Extent::state_values, requirement::norm_of_all},
    RoleRule{Role::state_out,       "state_out",       RoleScope::layer,     true,  Extent::dim,       Extent::state_values, requirement::recurrent},
    RoleRule{Role::attn_gate,       "attn_gate",       RoleScope::layer,     true,  Extent::heads,     Extent::dim,      requirement::gated_attention},
    RoleRule{Role::stream_norm,     "stream_norm",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::stream_norm},
    RoleRule{Role::stream_norm_bias, "stream_norm_bias", RoleScope::layer,   false, Extent::one,      Extent::dim,      requirement::stream_norm_bias},
    RoleRule{Role::attn_post_norm_bias, "attn_post_norm_bias", RoleScope::layer, false, Extent::one,  Extent::dim,      requirement::mixer_sum_bias},
    RoleRule{Role::ffn_post_norm_bias, "ffn_post_norm_bias", RoleScope::layer, false, Extent::one,    Extent::dim,      requirement::network_sum_bias},
    RoleRule{Role::stream_bias,     "stream_bias",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::stream_norm_may},
    RoleRule{Role::layer_embd,      "layer_embd",      RoleScope::embedding, true,  Extent::vocab,    Extent::layer_inputs, requirement::layer_input},
    RoleRule{Role::layer_inputs_proj, "layer_inputs_proj", RoleScope::embedding, true, Extent::layer_inputs, Extent::dim, requirement::layer_input},
    RoleRule{Role::layer_inputs_norm, "layer_inputs_norm", RoleScope::final, false, Extent::one,      Extent::layer_input, requirement::layer_input},
    RoleRule{Role::layer_input_gate, "layer_input_gate", RoleScope::layer,   true,  Extent::layer_input, Extent::dim,   requirement::layer_input},
    RoleRule{Role::layer_input_proj, "layer_input_proj", RoleScope::layer,   true,  Extent::dim,      Extent::layer_input, requirement::layer_input},
    RoleRule{Role::layer_input_post_norm, "layer_input_post_norm", RoleScope::layer, false, Extent::one, Extent::dim,   requirement::layer_input},
    RoleRule{Role::layer_scale,     "layer_scale",     RoleScope::layer,     false, Extent::one,      Extent::one,      requirement::may_be},
    RoleRule{Role::dense,           "dense",           RoleScope::final,     true,  Extent::dim,      Extent::dim,      requirement::headless_may},
    RoleRule{Role::dense_bias,      "dense_bias",      RoleScope::final,     false, Extent::one,      Extent::dim,      requirement::scores_may},
    RoleRule{Role::score_norm,      "score_norm",      RoleScope::final,     false, Extent::one,      Extent::dim,      requirement::scores_may},
    RoleRule{Role::score,           "score",           RoleScope::final,     false, Extent::one,      Extent::dim,      requirement::scores},
    RoleRule{Role::score_bias,      "score_bias",      RoleScope::final,     false, Extent::one,      Extent::one,      requirement::scores_may},
    RoleRule{Role::second_bias,     "second_bias",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::second_may},
    RoleRule{Role::router_norm,     "router_norm",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::side_by_side},
    RoleRule{Role::expert_norm,     "expert_norm",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::side_by_side},
    RoleRule{Role::dense_post_norm, "dense_post_norm", RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::side_by_side},
    RoleRule{Role::expert_post_norm, "expert_post_norm", RoleScope::layer,   false, Extent::one,      Extent::dim,      requirement::side_by_side},
    RoleRule{Role::router_expert_scale, "router_expert_scale", RoleScope::layer, false, Extent::one,  Extent::experts,  requirement::experts_may},
    RoleRule{Role::latent_q_down,   "latent_q_down",   RoleScope::layer,     true,  Extent::query_rank, Extent::dim,    requirement::latent_rank},
    RoleRule{Role::latent_q_norm,   "latent_q_norm",   RoleScope::layer,     false, Extent::one,      Extent::query_rank, requirement::latent_rank},
    RoleRule{Role::latent_q,        "latent_q",        RoleScope::layer,     true,  Extent::all_still_dims, Extent::query_input, requirement::latent},
    RoleRule{Role::latent_q_rope,   "latent_q_rope",   RoleScope::layer,     true,  Extent::all_rope_dims, Extent::query_input, requirement::latent},
    RoleRule{Role::latent_kv,       "latent_kv",       RoleScope::layer,     true,  Extent::latent_dim, Extent::dim,    requirement::latent},
    RoleRule{Role::latent_kv_norm,  "latent_kv_norm",  RoleScope::layer,     false, Extent::one,      Extent::latent_dim, requirement::latent},
    RoleRule{Role::latent_k_rope,   "latent_k_rope",   RoleScope::layer,     true,  Extent::rope_dims, Extent::dim,     requirement::latent},
    RoleRule{Role::latent_k_up,     "latent_k_up",     RoleScope::layer,     true,  Extent::all_latent_dims, Extent::still_dims, requirement::latent},
    RoleRule{Role::latent_v_up,     "latent_v_up",     RoleScope::layer,     true,  Extent::all_latent_value_dims, Extent::latent_dim, requirement::latent},
    RoleRule{Role::latent_out,      "latent_out",      RoleScope::layer,     true,  Extent::dim,      Extent::all_latent_value_dims, requirement::latent},
    RoleRule{Role::xielu_p,         "xielu_p",         RoleScope::layer,     false, Extent::one,      Extent::one,      requirement::xielu},
    RoleRule{Role::xielu_n,         "xielu_n",         RoleScope::layer,     false, Extent::one,      Extent::one,      requirement::xielu},
    RoleRule{Role::xielu_beta,      "xielu_beta",      RoleScope::layer,     false, Extent::one,      Extent::one,      requirement::xielu},
    RoleRule{Role::xielu_eps,       "xielu_eps",       RoleScope::layer,     false, Extent::one,      Extent::one,      requirement::xielu},
    RoleRule{Role::state_in_rank,   "state_in_rank",   RoleScope::layer,     true,  Extent::state_rank, Extent::state_values, requirement::mamba1},
    RoleRule{Role::state_in_k,      "state_in_k",      RoleScope::layer,     true,  Extent::state_key_dim, Extent::state_values, requirement::mamba1},
    RoleRule{Role::state_in_q,      "state_in_q",      RoleScope::layer,     true,  Extent::state_key_dim, Extent::state_values, requirement::mamba1},
    RoleRule{Role::state_rank_norm, "state_rank_norm", RoleScope::layer,     false, Extent::one,      Extent::state_rank, requirement::mamba1_may},
    RoleRule{Role::state_k_norm,    "state_k_norm",    RoleScope::layer,     false, Extent::one,      Extent::state_key_dim, requirement::mamba1_may},
    RoleRule{Role::state_q_norm,    "state_q_norm",    RoleScope::layer,     false, Extent::one,      Extent::state_key_dim, requirement::mamba1_may},
    RoleRule{Role::state_step,      "state_step",      RoleScope::layer,     true,  Extent::state_values, Extent::state_rank, requirement::mamba1},
    RoleRule{Role::state_decays,    "state_decays",    RoleScope::layer,     false, Extent::one,      Extent::state_cells, requirement::mamba1},
    RoleRule{Role::distance_bias,   "distance_bias",   RoleScope::final,     false, Extent::one,      Extent::head_buckets, requirement::buckets},
    RoleRule{Role::streams_in,      "streams_in",      RoleScope::embedding, true,  Extent::other_streams, Extent::dim, requirement::streams},
    RoleRule{Role::streams_out,     "streams_out",     RoleScope::final,     true,  Extent::other_streams, Extent::dim, requirement::streams},
    RoleRule{Role::stream_router_norm, "stream_router_norm", RoleScope::layer, false, Extent::one,    Extent::dim,      requirement::streams},
    RoleRule{Role::stream_router,   "stream_router",   RoleScope::layer,     false, Extent::one,      Extent::stream_dims, requirement::streams},
    RoleRule{Role::stream_predict,  "stream_predict",  RoleScope::layer,     false, Extent::one,      Extent::predict_factors, requirement::streams},
    RoleRule{Role::stream_correct,  "stream_correct",  RoleScope::layer,     false, Extent::one,      Extent::correct_factors, requirement::streams},
    RoleRule{Role::stream_scale,    "stream_scale",    RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::stream_inputs},
    RoleRule{Role::laurel_left,     "laurel_left",     RoleScope::layer,     true,  Extent::laurel_rank, Extent::dim,   requirement::laurel},
    RoleRule{Role::laurel_right,    "laurel_right",    RoleScope::layer,     true,  Extent::dim,      Extent::laurel_rank, requirement::laurel},
    RoleRule{Role::laurel_norm,     "laurel_norm",     RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::laurel},
    RoleRule{Role::guess_token_norm, "guess_token_norm", RoleScope::layer,   false, Extent::one,      Extent::dim,      requirement::guesses},
    RoleRule{Role::guess_state_norm, "guess_state_norm", RoleScope::layer,   false, Extent::one,      Extent::dim,      requirement::guesses},
    RoleRule{Role::guess_join,      "guess_join",      RoleScope::layer,     true,  Extent::dim,      Extent::two_dims, requirement::guesses},
    RoleRule{Role::guess_norm,      "guess_norm",      RoleScope::layer,     false, Extent::one,      Extent::dim,      requirement::guesses},
};
// clang-format on
inline constexpr std::size_t kRoles = kRoleRules.size();
inline constexpr std::size_t kNoRole = kRoles;

namespace detail {
inline constexpr std::array<std::uint8_t, 256> kRoleIndex = [] {
  std::array<std::uint8_t, 256> index{};
  index.fill(static_cast<std::uint8_t>(kNoRole));
  for (std::size_t i = 0; i < kRoles; ++i) {
    index[static_cast<std::size_t>(kRoleRules[i].role)] = static_cast<std::uint8_t>(i);
  }
  return index;
}();
}  // namespace detail

/// Returns the index of a role in kRoleRules, or kNoRole for an unknown number.
constexpr std::size_t role_index(Role role) { return detail::kRoleIndex[static_cast<std::size_t>(role)]; }
/// `role` must be one of kRoleRules.
constexpr const RoleRule& rule_of(Role role) { return kRoleRules[role_index(role)]; }
constexpr std::string_view role_name(Role role) { return rule_of(role).name; }

constexpr std::uint32_t n_weight_stages(const Header& h) { return h.n_layers + 2; }
constexpr RoleScope scope_of(const Header& h, std::uint32_t stage) {
  return stage == 0 ? RoleScope::embedding : stage <= h.n_layers ? RoleScope::layer : RoleScope::final;
}
/// Returns the kind of a stage: that of its layer, or of the first layer for the embedding and the head.
inline const LayerKind& kind_of_stage(const Header& h, const LayerTable& table, std::uint32_t stage) {
  return table.kind(scope_of(h, stage) == RoleScope::layer ? stage - 1 : 0);
}
/// Returns the stage of the layer that guesses tokens, which is the last one; 0 if none does.
constexpr std::uint32_t guess_stage(const Header& h, const ModelKind& model) {
  return model.guess_layer != 0 ? h.n_layers : 0;
}
/// Returns the inputs of the rules of a stage's roles. `tied`: the head is the embedding.
inline RoleContext role_context(const Header& h, const LayerTable& table, std::uint32_t stage, bool tied) {
  const ModelKind& m = table.model;
  const bool guesses = stage != 0 && stage == guess_stage(h, m);
  return {kind_of_stage(h, table, stage), tied, m.headless != 0, m.score != 0, guesses};
}

/// The header and the kind must have been checked, so that the products are below 2^32.
constexpr std::uint32_t extent(const Header& h, const LayerKind& kind, Extent e) {
  switch (e) {
    case Extent::one:
      return 1;
    case Extent::dim:
      return h.dim;
    case Extent::heads:
      return kind.n_heads * kind.head_dim;
    case Extent::kv_heads:
      return kind.n_kv_heads * kind.head_dim;
    case Extent::head_dim:
      return kind.head_dim;
    case Extent::ffn_dim:
      return kind.ffn_dim;
    case Extent::vocab:
      return h.vocab_size;
    case Extent::positions:
      return h.max_seq_len;
    case Extent::n_heads:
      return kind.n_heads;
    case Extent::experts:
      return kind.n_experts;
    case Extent::expert_dim:
      return kind.expert_dim;
    case Extent::all_expert_dims:
      return kind.n_experts * kind.expert_dim;
    case Extent::all_expert_outputs:
      return kind.n_experts * h.dim;
    case Extent::shared_dim:
      return kind.shared_dim;
    case Extent::conv_channels:
      return kind.conv_channels(h.dim);
    case Extent::conv_weights:
      return kind.conv_taps * kind.conv_channels(h.dim);
    case Extent::state_heads:
      return kind.state_heads;
    case Extent::state_keys:
      return kind.state_keys();
    case Extent::state_values:
      return kind.state_values();
    case Extent::state_key_dim:
      return kind.state_key_dim;
    case Extent::state_value_dim:
      return kind.state_value_dim;
    case Extent::key_head_heads:
      return kind.heads_of_key();
    case Extent::key_head_values:
      return kind.heads_of_key() * kind.state_value_dim;
    case Extent::group:
      return kind.n_heads / kind.n_kv_heads * kind.head_dim;
    case Extent::layer_input:
      return kind.layer_input;
    case Extent::layer_inputs:
      return h.n_layers * kind.layer_input;
    case Extent::query_rank:
      return kind.query_rank;
    case Extent::query_input:
      return kind.query_rank != 0 ? kind.query_rank : h.dim;
    case Extent::rope_dims:
      return kind.rope_dims;
    case Extent::still_dims:
      return kind.still_dims();
    case Extent::latent_dim:
      return kind.latent_dim;
    case Extent::latent_value_dim:
      return kind.latent_value_dim;
    case Extent::all_rope_dims:
      return kind.n_heads * kind.rope_dims;
    case Extent::all_still_dims:
      return kind.n_heads * kind.still_dims();
    case Extent::all_latent_dims:
      return kind.n_heads * kind.latent_dim;
    case Extent::all_latent_value_dims:
      return kind.n_heads * kind.latent_value_dim;
    case Extent::state_rank:
      return kind.state_rank;
    case Extent::state_cells:
      return kind.state_values() * kind.state_key_dim;
    case Extent::head_buckets:
      return kind.n_heads * kind.distance_buckets;
    case Extent::other_streams:
      return kind.other_streams() * h.dim;
    case Extent::predict_factors:
      return kind.streams * kind.streams * kind.streams;
    case Extent::correct_factors:
      return kind.streams * kind.streams;
    case Extent::stream_dims:
      return kind.streams * h.dim;
    case Extent::laurel_rank:
      return kind.laurel_rank;
    case Extent::two_dims:
      return 2 * h.dim;
  }
  return 0;
}

/// Whether a tensor of a role may have this number of rows if the model's sizes make it `all`. layer_embd may have
/// fewer: later tokens use its first row.
constexpr bool fits_rows(Role role, std::uint64_t rows, std::uint32_t all) {
  return rows == all || (role == Role::layer_embd && rows != 0 && rows < all);
}
/// Whether the rows of a matrix belong to heads, head after head, which each multiply their own part of the input.
constexpr bool of_heads(const RoleRule& rule) {
  return rule.rows == Extent::all_latent_dims || rule.rows == Extent::all_latent_value_dims;
}
/// Whether the rows of a matrix belong to the streams that layers do not compute, stream after stream.
constexpr bool of_streams(const RoleRule& rule) { return rule.matrix && rule.rows == Extent::other_streams; }
/// Whether the rows of a matrix, or the elements of a vector, belong to all experts, expert after expert.
constexpr bool of_experts(const RoleRule& rule) {
  const Extent all = rule.matrix ? rule.rows : rule.cols;
  return all == Extent::all_expert_dims || all == Extent::all_expert_outputs;
}
/// Returns the rows or elements of one expert; 0 if the tensor is not of_experts().
constexpr std::uint32_t expert_share(const Header& h, const LayerKind& kind, const RoleRule& rule) {
  if (!of_experts(rule)) return 0;
  return (rule.matrix ? rule.rows : rule.cols) == Extent::all_expert_dims ? kind.expert_dim : h.dim;
}

/// Returns the bytes of the header before a tensor's data. The final norm has none.
constexpr std::uint32_t header_bytes(Role role) { return role == Role::final_norm ? 0 : kTensorHeaderSize; }
/// Returns the bytes after a tensor's data: the flag byte of the last stage follows the final norm.
constexpr std::uint32_t trailer_bytes(Role role) { return role == Role::final_norm ? 1 : 0; }
inline constexpr std::byte kTiedByte{0xff};
inline constexpr std::byte kSeparateByte{0x00};

}  // namespace qsf
