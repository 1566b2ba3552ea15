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

enum class Place : std::uint8_t { embedding, layer, final };
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
  state_cells,  // numbers of a state
};
/// Whether a stage must not have, may have or must have a tensor of a role.
enum class Presence : std::uint8_t { never, optional, always };

/// The inputs of a rule: the kind of the layer, or of the first layer for other stages, and whether the head is tied or
/// absent.
struct RoleContext {
  const LayerKind& kind;
  bool tied;
  bool headless = false;
  bool scores = false;
};

/// The rule of one role. A matrix has segments of its own, which can be streamed; the vectors of a stage share resident
/// segments.
struct RoleRule {
  Role role;
  std::string_view name;
  Place place;
  bool matrix;
  Extent rows;
  Extent cols;
  Presence (*presence)(const RoleContext&);
};

namespace presence {

constexpr Presence when(bool has) { return has ? Presence::always : Presence::never; }
constexpr Presence may(bool can) { return can ? Presence::optional : Presence::never; }
constexpr bool mixes(const RoleContext& c) { return c.kind.mixer != Mixer::none; }
constexpr bool feeds(const RoleContext& c) { return c.kind.ffn != Ffn::none; }
constexpr bool mixture(const RoleContext& c) { return c.kind.has_experts(); }
constexpr bool has_gate(const RoleContext& c) {
  return c.kind.ffn == Ffn::gated || c.kind.ffn == Ffn::gated_and_mixture;
}
constexpr bool shares(const RoleContext& c) { return mixture(c) && c.kind.shared_dim != 0; }
constexpr bool before(const RoleContext& c) {
  return c.kind.norm_place == NormPlace::before || c.kind.norm_place == NormPlace::both;
}
constexpr bool after(const RoleContext& c) { return c.kind.norm_place != NormPlace::before; }

constexpr Presence always(const RoleContext&) { return Presence::always; }
constexpr Presence untied(const RoleContext& c) { return when(!c.tied && !c.headless); }
constexpr Presence head_may(const RoleContext& c) { return may(!c.headless); }
/// In models that make only embeddings.
constexpr Presence headless_may(const RoleContext& c) { return may(c.headless); }
/// In models that make only scores.
constexpr Presence scores(const RoleContext& c) { return when(c.scores); }
constexpr Presence scores_may(const RoleContext& c) { return may(c.scores); }
constexpr Presence before_head(const RoleContext& c) { return c.headless ? Presence::optional : Presence::always; }
constexpr Presence attention(const RoleContext& c) { return when(c.kind.attends()); }
constexpr Presence attention_may(const RoleContext& c) { return may(c.kind.attends()); }
constexpr Presence own_keys(const RoleContext& c) { return when(c.kind.attends() && c.kind.kv_from == 0); }
constexpr Presence own_keys_may(const RoleContext& c) { return may(c.kind.attends() && c.kind.kv_from == 0); }
constexpr bool has_values(const LayerKind& k) { return k.attends() && k.kv_from == 0 && k.v_from_k == 0; }
constexpr Presence own_values(const RoleContext& c) { return when(has_values(c.kind)); }
constexpr Presence own_values_may(const RoleContext& c) { return may(has_values(c.kind)); }
constexpr Presence layer_input(const RoleContext& c) { return when(c.kind.layer_input != 0); }
constexpr Presence gated(const RoleContext& c) { return when(has_gate(c)); }
constexpr Presence gated_may(const RoleContext& c) { return may(has_gate(c)); }
constexpr Presence network(const RoleContext& c) { return when(c.kind.has_dense()); }
constexpr Presence network_may(const RoleContext& c) { return may(c.kind.has_dense()); }
constexpr Presence side_by_side(const RoleContext& c) { return when(c.kind.ffn == Ffn::gated_and_mixture); }
constexpr Presence experts(const RoleContext& c) { return when(mixture(c)); }
constexpr Presence experts_may(const RoleContext& c) { return may(mixture(c)); }
constexpr Presence shared_expert(const RoleContext& c) { return when(shares(c)); }
constexpr Presence shared_expert_may(const RoleContext& c) { return may(shares(c)); }
constexpr bool norms_mixer(const RoleContext& c) { return before(c) && mixes(c) && c.kind.bare_mixer == 0; }
constexpr Presence mixer_norm(const RoleContext& c) { return when(norms_mixer(c)); }
/// In a parallel layer the mixer's norm can serve the network too.
constexpr Presence network_norm(const RoleContext& c) {
  const bool has = before(c) && feeds(c);
  return c.kind.residual == Residual::parallel && mixes(c) ? may(has) : when(has);
}
constexpr Presence mixer_post_norm(const RoleContext& c) { return when(after(c) && mixes(c)); }
constexpr Presence network_post_norm(const RoleContext& c) { return when(after(c) && feeds(c)); }
constexpr bool layer_norm(const RoleContext& c) { return c.kind.norm == Norm::layer_norm; }
constexpr Presence mixer_norm_bias(const RoleContext& c) { return may(layer_norm(c) && norms_mixer(c)); }
constexpr Presence network_norm_bias(const RoleContext& c) { return may(layer_norm(c) && before(c) && feeds(c)); }
constexpr Presence may_be(const RoleContext&) { return Presence::optional; }
constexpr Presence layer_norm_may(const RoleContext& c) { return may(layer_norm(c)); }
constexpr bool delta(const RoleContext& c) { return c.kind.mixer == Mixer::delta_net; }
constexpr bool mamba(const RoleContext& c) { return c.kind.mixer == Mixer::mamba; }
constexpr Presence short_conv(const RoleContext& c) { return when(c.kind.mixer == Mixer::short_conv); }
constexpr Presence convolves(const RoleContext& c) {
  return when(c.kind.mixer == Mixer::short_conv || c.kind.has_state());
}
constexpr Presence mambas_may(const RoleContext& c) { return may(mamba(c) || c.kind.has_mamba2()); }
constexpr Presence recurrent(const RoleContext& c) { return when(c.kind.has_state()); }
constexpr Presence keyed(const RoleContext& c) { return when(c.kind.has_state() && !mamba(c)); }
constexpr Presence mamba1(const RoleContext& c) { return when(mamba(c)); }
constexpr Presence mamba1_may(const RoleContext& c) { return may(mamba(c)); }
/// A mamba2 next to attention may have no norm.
constexpr Presence mamba2_norm(const RoleContext& c) {
  return c.kind.mixer == Mixer::attention_and_mamba2 ? Presence::optional : when(c.kind.mixer == Mixer::mamba2);
}
constexpr Presence xielu(const RoleContext& c) {
  return when(c.kind.activation == Activation::xielu && c.kind.has_dense());
}
constexpr Presence delta_net(const RoleContext& c) { return when(delta(c)); }
constexpr Presence mambas(const RoleContext& c) { return when(mamba(c) || c.kind.has_mamba2()); }
constexpr Presence gated_attention(const RoleContext& c) {
  return when(c.kind.attends() && c.kind.attention_gate != 0);
}
constexpr Presence latent(const RoleContext& c) { return when(c.kind.mixer == Mixer::latent); }
constexpr Presence latent_rank(const RoleContext& c) {
  return when(c.kind.mixer == Mixer::latent && c.kind.query_rank != 0);
}
constexpr bool on_sum(const RoleContext& c) { return layer_norm(c) && c.kind.norm_place == NormPlace::sum; }
constexpr Presence mixer_sum_bias(const RoleContext& c) { return may(on_sum(c) && mixes(c)); }
constexpr Presence network_sum_bias(const RoleContext& c) { return may(on_sum(c) && feeds(c)); }
constexpr Presence stream_norm(const RoleContext& c) { return when(c.kind.stream_norm != 0); }
constexpr Presence stream_norm_bias(const RoleContext& c) { return may(layer_norm(c) && c.kind.stream_norm != 0); }
constexpr Presence stream_norm_may(const RoleContext& c) { return may(c.kind.stream_norm != 0); }
constexpr Presence second_may(const RoleContext& c) { return may(c.scores && c.kind.stream_norm != 0); }

}  // namespace presence

/// The rules in the order in which the writer stores tensors, except vectors, which it stores together.
// clang-format off
inline constexpr std::array kRoleRules{
    RoleRule{Role::attn_q,          "attn_q",          Place::layer,     true,  Extent::heads,    Extent::dim,      presence::attention},
    RoleRule{Role::attn_k,          "attn_k",          Place::layer,     true,  Extent::kv_heads, Extent::dim,      presence::own_keys},
    RoleRule{Role::attn_v,          "attn_v",          Place::layer,     true,  Extent::kv_heads, Extent::dim,      presence::own_values},
    RoleRule{Role::attn_o,          "attn_o",          Place::layer,     true,  Extent::dim,      Extent::heads,    presence::attention},
    RoleRule{Role::ffn_gate,        "ffn_gate",        Place::layer,     true,  Extent::ffn_dim,  Extent::dim,      presence::gated},
    RoleRule{Role::ffn_up,          "ffn_up",          Place::layer,     true,  Extent::ffn_dim,  Extent::dim,      presence::network},
    RoleRule{Role::ffn_down,        "ffn_down",        Place::layer,     true,  Extent::dim,      Extent::ffn_dim,  presence::network},
    RoleRule{Role::attn_norm,       "attn_norm",       Place::layer,     false, Extent::one,      Extent::dim,      presence::mixer_norm},
    RoleRule{Role::ffn_norm,        "ffn_norm",        Place::layer,     false, Extent::one,      Extent::dim,      presence::network_norm},
    RoleRule{Role::attn_q_bias,     "attn_q_bias",     Place::layer,     false, Extent::one,      Extent::heads,    presence::attention_may},
    RoleRule{Role::attn_k_bias,     "attn_k_bias",     Place::layer,     false, Extent::one,      Extent::kv_heads, presence::own_keys_may},
    RoleRule{Role::attn_v_bias,     "attn_v_bias",     Place::layer,     false, Extent::one,      Extent::kv_heads, presence::own_values_may},
    RoleRule{Role::attn_o_bias,     "attn_o_bias",     Place::layer,     false, Extent::one,      Extent::dim,      presence::attention_may},
    RoleRule{Role::ffn_bias,        "ffn_bias",        Place::layer,     false, Extent::one,      Extent::dim,      presence::network_may},
    RoleRule{Role::attn_q_norm,     "attn_q_norm",     Place::layer,     false, Extent::one,      Extent::head_dim, presence::attention_may},
    RoleRule{Role::attn_k_norm,     "attn_k_norm",     Place::layer,     false, Extent::one,      Extent::head_dim, presence::own_keys_may},
    RoleRule{Role::token_embd,      "token_embd",      Place::embedding, true,  Extent::vocab,    Extent::dim,      presence::always},
    RoleRule{Role::final_norm,      "final_norm",      Place::final,     false, Extent::one,      Extent::dim,      presence::before_head},
    RoleRule{Role::head,            "head",            Place::final,     true,  Extent::vocab,    Extent::dim,      presence::untied},
    RoleRule{Role::attn_post_norm,  "attn_post_norm",  Place::layer,     false, Extent::one,      Extent::dim,      presence::mixer_post_norm},
    RoleRule{Role::ffn_post_norm,   "ffn_post_norm",   Place::layer,     false, Extent::one,      Extent::dim,      presence::network_post_norm},
    RoleRule{Role::attn_norm_bias,  "attn_norm_bias",  Place::layer,     false, Extent::one,      Extent::dim,      presence::mixer_norm_bias},
    RoleRule{Role::ffn_norm_bias,   "ffn_norm_bias",   Place::layer,     false, Extent::one,      Extent::dim,      presence::network_norm_bias},
    RoleRule{Role::final_norm_bias, "final_norm_bias", Place::final,     false, Extent::one,      Extent::dim,      presence::layer_norm_may},
    RoleRule{Role::ffn_gate_bias,   "ffn_gate_bias",   Place::layer,     false, Extent::one,      Extent::ffn_dim,  presence::gated_may},
    RoleRule{Role::ffn_up_bias,     "ffn_up_bias",     Place::layer,     false, Extent::one,      Extent::ffn_dim,  presence::network_may},
    RoleRule{Role::pos_embd,        "pos_embd",        Place::embedding, true,  Extent::positions, Extent::dim,     presence::may_be},
    RoleRule{Role::head_bias,       "head_bias",       Place::final,     false, Extent::one,      Extent::vocab,    presence::head_may},
    RoleRule{Role::attn_q_norm_all, "attn_q_norm_all", Place::layer,     false, Extent::one,      Extent::heads,    presence::attention_may},
    RoleRule{Role::attn_k_norm_all, "attn_k_norm_all", Place::layer,     false, Extent::one,      Extent::kv_heads, presence::own_keys_may},
    RoleRule{Role::attn_sub_norm,   "attn_sub_norm",   Place::layer,     false, Extent::one,      Extent::heads,    presence::attention_may},
    RoleRule{Role::ffn_sub_norm,    "ffn_sub_norm",    Place::layer,     false, Extent::one,      Extent::ffn_dim,  presence::network_may},
    RoleRule{Role::attn_sinks,      "attn_sinks",      Place::layer,     false, Extent::one,      Extent::n_heads,  presence::attention_may},
    RoleRule{Role::router,          "router",          Place::layer,     true,  Extent::experts,  Extent::dim,      presence::experts},
    RoleRule{Role::router_bias,     "router_bias",     Place::layer,     false, Extent::one,      Extent::experts,  presence::experts_may},
    RoleRule{Role::router_choice_bias, "router_choice_bias", Place::layer, false, Extent::one,    Extent::experts,  presence::experts_may},
    RoleRule{Role::expert_gate,     "expert_gate",     Place::layer,     true,  Extent::all_expert_dims, Extent::dim, presence::experts},
    RoleRule{Role::expert_up,       "expert_up",       Place::layer,     true,  Extent::all_expert_dims, Extent::dim, presence::experts},
    RoleRule{Role::expert_down,     "expert_down",     Place::layer,     true,  Extent::all_expert_outputs, Extent::expert_dim, presence::experts},
    RoleRule{Role::expert_gate_bias, "expert_gate_bias", Place::layer,   false, Extent::one,      Extent::all_expert_dims, presence::experts_may},
    RoleRule{Role::expert_up_bias,  "expert_up_bias",  Place::layer,     false, Extent::one,      Extent::all_expert_dims, presence::experts_may},
    RoleRule{Role::expert_down_bias, "expert_down_bias", Place::layer,   false, Extent::one,      Extent::all_expert_outputs, presence::experts_may},
    RoleRule{Role::shared_gate,     "shared_gate",     Place::layer,     true,  Extent::shared_dim, Extent::dim,    presence::shared_expert},
    RoleRule{Role::shared_up,       "shared_up",       Place::layer,     true,  Extent::shared_dim, Extent::dim,    presence::shared_expert},
    RoleRule{Role::shared_down,     "shared_down",     Place::layer,     true,  Extent::dim,      Extent::shared_dim, presence::shared_expert},
    RoleRule{Role::shared_router,   "shared_router",   Place::layer,     true,  Extent::one,      Extent::dim,      presence::shared_expert_may},
    RoleRule{Role::conv_b,          "conv_b",          Place::layer,     true,  Extent::dim,       Extent::dim,      presence::short_conv},
    RoleRule{Role::conv_c,          "conv_c",          Place::layer,     true,  Extent::dim,       Extent::dim,      presence::short_conv},
    RoleRule{Role::conv_x,          "conv_x",          Place::layer,     true,  Extent::dim,       Extent::dim,      presence::short_conv},
    RoleRule{Role::conv_out,        "conv_out",        Place::layer,     true,  Extent::dim,       Extent::dim,      presence::short_conv},
    RoleRule{Role::conv_weight,     "conv_weight",     Place::layer,     false, Extent::one,       Extent::conv_weights, presence::convolves},
    RoleRule{Role::conv_bias,       "conv_bias",       Place::layer,     false, Extent::one,       Extent::conv_channels, presence::mambas_may},
    RoleRule{Role::state_q,         "state_q",         Place::layer,     true,  Extent::state_keys, Extent::dim,      presence::keyed},
    RoleRule{Role::state_k,         "state_k",         Place::layer,     true,  Extent::state_keys, Extent::dim,      presence::keyed},
    RoleRule{Role::state_v,         "state_v",         Place::layer,     true,  Extent::state_values, Extent::dim,      presence::recurrent},
    RoleRule{Role::state_z,         "state_z",         Place::layer,     true,  Extent::state_values, Extent::dim,      presence::recurrent},
    RoleRule{Role::state_a,         "state_a",         Place::layer,     true,  Extent::state_heads, Extent::dim,      presence::keyed},
    RoleRule{Role::state_b,         "state_b",         Place::layer,     true,  Extent::state_heads, Extent::dim,      presence::delta_net},
    RoleRule{Role::state_decay,     "state_decay",     Place::layer,     false, Extent::one,       Extent::state_heads, presence::keyed},
    RoleRule{Role::state_dt_bias,   "state_dt_bias",   Place::layer,     false, Extent::one,       Extent::state_heads, presence::recurrent},
    RoleRule{Role::state_skip,      "state_skip",      Place::layer,     false, Extent::one,       Extent::state_heads, presence::mambas},
    RoleRule{Role::state_norm,      "state_norm",      Place::layer,     false, Extent::one,       Extent::state_value_dim, presence::delta_net},
    RoleRule{Role::state_norm_all,  "state_norm_all",  Place::layer,     false, Extent::one,       Extent::state_values, presence::mamba2_norm},
    RoleRule{Role::state_out,       "state_out",       Place::layer,     true,  Extent::dim,       Extent::state_values, presence::recurrent},
    RoleRule{Role::attn_gate,       "attn_gate",       Place::layer,     true,  Extent::heads,     Extent::dim,      presence::gated_attention},
    RoleRule{Role::stream_norm,     "stream_norm",     Place::layer,     false, Extent::one,      Extent::dim,      presence::stream_norm},
    RoleRule{Role::stream_norm_bias, "stream_norm_bias", Place::layer,   false, Extent::one,      Extent::dim,      presence::stream_norm_bias},
    RoleRule{Role::attn_post_norm_bias, "attn_post_norm_bias", Place::layer, false, Extent::one,  Extent::dim,      presence::mixer_sum_bias},
    RoleRule{Role::ffn_post_norm_bias, "ffn_post_norm_bias", Place::layer, false, Extent::one,    Extent::dim,      presence::network_sum_bias},
    RoleRule{Role::stream_bias,     "stream_bias",     Place::layer,     false, Extent::one,      Extent::dim,      presence::stream_norm_may},
    RoleRule{Role::layer_embd,      "layer_embd",      Place::embedding, true,  Extent::vocab,    Extent::layer_inputs, presence::layer_input},
    RoleRule{Role::layer_inputs_proj, "layer_inputs_proj", Place::embedding, true, Extent::layer_inputs, Extent::dim, presence::layer_input},
    RoleRule{Role::layer_inputs_norm, "layer_inputs_norm", Place::final, false, Extent::one,      Extent::layer_input, presence::layer_input},
    RoleRule{Role::layer_input_gate, "layer_input_gate", Place::layer,   true,  Extent::layer_input, Extent::dim,   presence::layer_input},
    RoleRule{Role::layer_input_proj, "layer_input_proj", Place::layer,   true,  Extent::dim,      Extent::layer_input, presence::layer_input},
    RoleRule{Role::layer_input_post_norm, "layer_input_post_norm", Place::layer, false, Extent::one, Extent::dim,   presence::layer_input},
    RoleRule{Role::layer_scale,     "layer_scale",     Place::layer,     false, Extent::one,      Extent::one,      presence::may_be},
    RoleRule{Role::dense,           "dense",           Place::final,     true,  Extent::dim,      Extent::dim,      presence::headless_may},
    RoleRule{Role::dense_bias,      "dense_bias",      Place::final,     false, Extent::one,      Extent::dim,      presence::scores_may},
    RoleRule{Role::score_norm,      "score_norm",      Place::final,     false, Extent::one,      Extent::dim,      presence::scores_may},
    RoleRule{Role::score,           "score",           Place::final,     false, Extent::one,      Extent::dim,      presence::scores},
    RoleRule{Role::score_bias,      "score_bias",      Place::final,     false, Extent::one,      Extent::one,      presence::scores_may},
    RoleRule{Role::second_bias,     "second_bias",     Place::layer,     false, Extent::one,      Extent::dim,      presence::second_may},
    RoleRule{Role::router_norm,     "router_norm",     Place::layer,     false, Extent::one,      Extent::dim,      presence::side_by_side},
    RoleRule{Role::expert_norm,     "expert_norm",     Place::layer,     false, Extent::one,      Extent::dim,      presence::side_by_side},
    RoleRule{Role::dense_post_norm, "dense_post_norm", Place::layer,     false, Extent::one,      Extent::dim,      presence::side_by_side},
    RoleRule{Role::expert_post_norm, "expert_post_norm", Place::layer,   false, Extent::one,      Extent::dim,      presence::side_by_side},
    RoleRule{Role::router_expert_scale, "router_expert_scale", Place::layer, false, Extent::one,  Extent::experts,  presence::experts_may},
    RoleRule{Role::latent_q_down,   "latent_q_down",   Place::layer,     true,  Extent::query_rank, Extent::dim,    presence::latent_rank},
    RoleRule{Role::latent_q_norm,   "latent_q_norm",   Place::layer,     false, Extent::one,      Extent::query_rank, presence::latent_rank},
    RoleRule{Role::latent_q,        "latent_q",        Place::layer,     true,  Extent::all_still_dims, Extent::query_input, presence::latent},
    RoleRule{Role::latent_q_rope,   "latent_q_rope",   Place::layer,     true,  Extent::all_rope_dims, Extent::query_input, presence::latent},
    RoleRule{Role::latent_kv,       "latent_kv",       Place::layer,     true,  Extent::latent_dim, Extent::dim,    presence::latent},
    RoleRule{Role::latent_kv_norm,  "latent_kv_norm",  Place::layer,     false, Extent::one,      Extent::latent_dim, presence::latent},
    RoleRule{Role::latent_k_rope,   "latent_k_rope",   Place::layer,     true,  Extent::rope_dims, Extent::dim,     presence::latent},
    RoleRule{Role::latent_k_up,     "latent_k_up",     Place::layer,     true,  Extent::all_latent_dims, Extent::still_dims, presence::latent},
    RoleRule{Role::latent_v_up,     "latent_v_up",     Place::layer,     true,  Extent::all_latent_value_dims, Extent::latent_dim, presence::latent},
    RoleRule{Role::latent_out,      "latent_out",      Place::layer,     true,  Extent::dim,      Extent::all_latent_value_dims, presence::latent},
    RoleRule{Role::xielu_p,         "xielu_p",         Place::layer,     false, Extent::one,      Extent::one,      presence::xielu},
    RoleRule{Role::xielu_n,         "xielu_n",         Place::layer,     false, Extent::one,      Extent::one,      presence::xielu},
    RoleRule{Role::xielu_beta,      "xielu_beta",      Place::layer,     false, Extent::one,      Extent::one,      presence::xielu},
    RoleRule{Role::xielu_eps,       "xielu_eps",       Place::layer,     false, Extent::one,      Extent::one,      presence::xielu},
    RoleRule{Role::state_in_rank,   "state_in_rank",   Place::layer,     true,  Extent::state_rank, Extent::state_values, presence::mamba1},
    RoleRule{Role::state_in_k,      "state_in_k",      Place::layer,     true,  Extent::state_key_dim, Extent::state_values, presence::mamba1},
    RoleRule{Role::state_in_q,      "state_in_q",      Place::layer,     true,  Extent::state_key_dim, Extent::state_values, presence::mamba1},
    RoleRule{Role::state_rank_norm, "state_rank_norm", Place::layer,     false, Extent::one,      Extent::state_rank, presence::mamba1_may},
    RoleRule{Role::state_k_norm,    "state_k_norm",    Place::layer,     false, Extent::one,      Extent::state_key_dim, presence::mamba1_may},
    RoleRule{Role::state_q_norm,    "state_q_norm",    Place::layer,     false, Extent::one,      Extent::state_key_dim, presence::mamba1_may},
    RoleRule{Role::state_step,      "state_step",      Place::layer,     true,  Extent::state_values, Extent::state_rank, presence::mamba1},
    RoleRule{Role::state_decays,    "state_decays",    Place::layer,     false, Extent::one,      Extent::state_cells, presence::mamba1},
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

constexpr std::uint32_t n_weight_sections(const Header& h) { return h.n_layers + 2; }
constexpr Place place_of(const Header& h, std::uint32_t section) {
  return section == 0 ? Place::embedding : section <= h.n_layers ? Place::layer : Place::final;
}
/// Returns the kind of a stage: that of its layer, or of the first layer for the embedding and the head.
inline const LayerKind& kind_of_section(const Header& h, const LayerTable& table, std::uint32_t section) {
  return table.kind(place_of(h, section) == Place::layer ? section - 1 : 0);
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
  }
  return 0;
}

/// Whether the rows of a matrix belong to heads, head after head, which each multiply their own part of the input.
constexpr bool of_heads(const RoleRule& rule) {
  return rule.rows == Extent::all_latent_dims || rule.rows == Extent::all_latent_value_dims;
}
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

/// Computes the type byte of a layer index entry or of the header from the formats of the matrices: their common
/// format, or mixed.
class CommonFormat {
 public:
  void add(FormatId format) {
    common_ = n_ == 0 || format == common_ ? format : FormatId::mixed;
    ++n_;
  }
  FormatId get() const { return n_ == 0 ? FormatId::mixed : common_; }

 private:
  FormatId common_ = FormatId::mixed;
  std::uint64_t n_ = 0;
};

}  // namespace qsf
