// Small models of every shape that the engine knows, for tests that hold for all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/host.h"
#include "file/small_file.h"

namespace qsf::test {

/// Of three layers, whose segments shrink when they are compressed.
inline SmallOptions compressible(FormatId format) {
  SmallOptions o;
  o.format = format;
  o.repetitive = true;
  o.ffn_dim = 172;
  o.n_layers = 3;
  return o;
}

inline std::vector<std::uint32_t> some_tokens(std::size_t n, std::uint32_t vocab, std::size_t first = 5) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < n; ++i) ids.push_back(static_cast<std::uint32_t>((i * 7 + i * i * 3 + first) % vocab));
  return ids;
}

inline Prompt all_logits(const std::vector<std::uint32_t>& ids, std::uint32_t max_tokens) {
  Prompt prompt = greedy(ids, max_tokens);
  prompt.all_logits = true;
  return prompt;
}

inline OpenOptions with_logits() {
  OpenOptions options;
  options.all_logits = true;
  options.kv = KvType::f16;
  return options;
}

struct Named {
  const char* name;
  SmallOptions options;
};
inline std::vector<Named> variants() {
  std::vector<Named> all{{"plain", {}}, {"untied", {}}, {"biases", {}}, {"qk_norm", {}}, {"window", {}}, {"rope", {}}};
  all[1].options.tied = false;
  all[2].options.biases = true;
  all[3].options.qk_norm = true;
  all[4].options.window = 6;
  all[5].options.rope_divisors = {1, 1.5f, 3, 8};
  const auto shaped = [&](const char* name, auto shape) -> SmallOptions& {
    all.push_back({name, {}});
    all.back().options.shape = [shape](std::uint32_t layer, LayerKind& kind) { shape(layer, kind); };
    return all.back().options;
  };
  shaped("norms after", [](std::uint32_t, LayerKind& k) { k.norm_place = NormPosition::after; });
  shaped("norms on both sides", [](std::uint32_t, LayerKind& k) {
    k.norm_place = NormPosition::both;
    k.residual_scale = 0.5f;
  }).model = {3, 0.25f};
  shaped("parallel, one norm", [](std::uint32_t, LayerKind& k) {
    k.residual = Residual::parallel;
    k.norm = Norm::layer_norm;
    k.ffn = Ffn::plain;
    k.activation = Activation::gelu;
  }).optional = {Role::attn_norm_bias, Role::final_norm_bias, Role::ffn_up_bias, Role::ffn_bias, Role::attn_o_bias};
  shaped("parallel, two norms", [](std::uint32_t layer, LayerKind& k) {
    k.residual = layer == 0 ? Residual::sequential : Residual::parallel;
    k.activation = Activation::relu;
  }).optional = {Role::ffn_norm, Role::ffn_gate_bias};
  SmallOptions& mixed =
      shaped("a layer without attention, one without a network", [](std::uint32_t layer, LayerKind& k) {
        if (layer == 1) k.mixer = Mixer::none;
        if (layer == 2) k.ffn = Ffn::none;
      });
  mixed.n_layers = 4;
  shaped("heads, windows and positions by layer", [](std::uint32_t layer, LayerKind& k) {
    k.window = layer == 0 ? 5 : 0;
    k.n_heads = layer == 0 ? 4 : 6;
    k.n_kv_heads = layer == 0 ? 1 : 3;
    k.head_dim = layer == 0 ? 8 : 4;
    k.rope_dims = layer == 0 ? k.head_dim : 0;
    k.rope_theta = 500;
    k.attention_scale = layer == 0 ? 0 : 0.3f;
    k.ffn_dim = layer == 0 ? 48 : 20;
  });
  const auto mixture = [](LayerKind& k, std::uint32_t n_experts, std::uint32_t used) {
    k.ffn = Ffn::mixture;
    k.n_experts = n_experts;
    k.experts_used = used;
    k.expert_dim = 48;
  };
  shaped("mixture", [=](std::uint32_t, LayerKind& k) {
    mixture(k, 6, 2);
    k.router_norm = 1;
  });
  shaped("mixture with biases, limits and sinks",
         [=](std::uint32_t layer, LayerKind& k) {
           mixture(k, 5, 3);
           k.router = Router::softmax_chosen;
           k.gate_limit = 0.4f;
           k.gate_slope = 1.702f;
           k.up_offset = 1;
           k.window = layer == 0 ? 5 : 0;
         })
      .optional = {Role::attn_sinks, Role::router_bias, Role::expert_gate_bias, Role::expert_up_bias,
                   Role::expert_down_bias};
  SmallOptions& shares =
      shaped("mixture behind a dense layer, with a shared expert", [=](std::uint32_t layer, LayerKind& k) {
        if (layer == 0) return;
        mixture(k, 7, 4);
        k.router = Router::sigmoid;
        k.router_norm = 1;
        k.router_scale = 2.5f;
        k.shared_dim = layer == 1 ? 32 : 0;
      });
  shares.n_layers = 3;
  shares.optional = {Role::router_choice_bias, Role::shared_router};
  SmallOptions& beside = shaped("experts beside a network", [=](std::uint32_t layer, LayerKind& k) {
    mixture(k, 6, 2);
    k.ffn = layer == 1 ? Ffn::mixture : Ffn::gated_and_mixture;
    k.norm_place = layer == 0 ? NormPosition::both : NormPosition::before;
    k.residual = layer == 2 ? Residual::parallel : Residual::sequential;
    k.router_norm = 1;
    k.router_logit_scale = 0.25f;
    k.column_scale = 1;
  });
  beside.n_layers = 3;
  beside.optional = {Role::router_expert_scale};
  shaped("mixture of experts near the first, queries that grow", [=](std::uint32_t layer, LayerKind& k) {
    mixture(k, 8, 2);
    k.router = Router::softmax_near;
    k.router_jitter = 0.3f;
    k.router_scale = layer == 0 ? 1.0f : 0.5f;
    k.query_growth = 0.4f;
    k.query_span = 3;
  });
  shaped("heads with norms of their own", [](std::uint32_t, LayerKind& k) {
    k.norm = Norm::layer_norm;
    k.norms_by_head = 1;
  }).optional = {Role::attn_q_norm_all, Role::attn_k_norm_all};
  shaped("heads that are normed after RoPE", [](std::uint32_t, LayerKind& k) { k.late_head_norm = 1; }).optional = {
      Role::attn_q_norm, Role::attn_k_norm};
  SmallOptions& weighted =
      shaped("windows in steps, experts with weighted inputs", [=](std::uint32_t layer, LayerKind& k) {
        k.window = layer == 1 ? 0 : 6;
        k.window_aligned = layer == 1 ? 0 : 1;
        k.bare_head_norm = layer == 1 ? 0 : 1;
        k.late_head_norm = layer == 2 ? 1 : 0;
        if (layer == 1) {
          k.rope_dims = 0;
          k.query_growth = 0.4f;
          k.query_span = 3;
          k.query_from_one = 1;
        }
        if (layer == 0) return;
        mixture(k, 6, layer);
        k.router = Router::sigmoid;
        k.weighted_inputs = 1;
        k.shared_dim = 32;
      });
  weighted.n_layers = 3;
  shaped("plain experts", [=](std::uint32_t layer, LayerKind& k) {
    mixture(k, 6, 2);
    k.plain_experts = 1;
    k.activation = layer == 0 ? Activation::relu2 : Activation::gelu;
    k.shared_dim = layer == 0 ? 32 : 0;
  }).optional = {Role::expert_up_bias, Role::expert_down_bias};
  // Recurrences between layers of attention; a tail that is longer than most chunks of the tests.
  shaped("short convolutions", [](std::uint32_t layer, LayerKind& k) {
    k.mixer = layer == 1 ? Mixer::attention : Mixer::short_conv;
    k.conv_taps = layer == 0 ? 3 : 5;
  }).n_layers = 3;
  const auto state = [](LayerKind& k, Mixer mixer, std::uint32_t value_dim) {
    k.mixer = mixer;
    k.conv_taps = 4;
    k.state_heads = 4;
    k.state_key_heads = 2;
    k.state_key_dim = 8;
    k.state_value_dim = value_dim;
  };
  shaped("delta nets, gated attention", [state](std::uint32_t layer, LayerKind& k) {
    k.attention_gate = layer == 1;
    if (layer != 1) state(k, Mixer::delta_net, layer == 0 ? 8 : 70);
    if (layer == 2) k.state_tiled = 1;
  }).n_layers = 3;
  SmallOptions& mamba = shaped("Mamba-2", [state](std::uint32_t layer, LayerKind& k) {
    k.norm_place = NormPosition::both;
    if (layer != 1) state(k, Mixer::mamba2, 12);
  });
  mamba.n_layers = 3;
  mamba.optional = {Role::conv_bias};
  SmallOptions& both = shaped("attention with Mamba-2, xIELU", [state](std::uint32_t layer, LayerKind& k) {
    state(k, Mixer::attention_and_mamba2, 12);
    k.window = layer == 1 ? 5 : 0;
    k.state_group_norm = layer == 0 ? 0 : 1;
    k.state_norm_first = layer == 2 ? 1 : 0;
    k.ffn = Ffn::plain;
    k.activation = Activation::xielu;
  });
  both.n_layers = 3;
  both.optional = {Role::state_norm_all};
  SmallOptions& scans = shaped("Mamba", [](std::uint32_t layer, LayerKind& k) {
    if (layer == 1) return;
    k.mixer = Mixer::mamba;
    k.conv_taps = layer == 0 ? 4 : 2;
    k.state_heads = 70;
    k.state_key_heads = k.state_value_dim = 1;
    k.state_key_dim = layer == 0 ? 8 : 5;
    k.state_rank = 6;
  });
  scans.n_layers = 3;
  scans.optional = {Role::conv_bias, Role::state_rank_norm, Role::state_k_norm, Role::state_q_norm};
  SmallOptions& lightning =
      shaped("lightning attention, norms on the stream", [state, mixture](std::uint32_t layer, LayerKind& k) {
        if (layer != 1) state(k, Mixer::lightning, layer == 0 ? 8 : 70);
        k.conv_taps = 0;
        k.norm_place = NormPosition::stream;
        k.stream_scale = layer == 1 ? 1.5f : 2;
        k.network_stream_scale = layer == 0 ? 1 : 3;
        if (layer == 2) mixture(k, 6, 2);
      });
  lightning.n_layers = 3;
  const auto latent = [](LayerKind& k) {
    k.mixer = Mixer::latent;
    k.n_heads = 3;
    k.n_kv_heads = 1;
    k.latent_dim = 32;
    k.rope_dims = 6;
    k.head_dim = 38;
    k.latent_head_dim = 14;
    k.latent_value_dim = 16;
  };
  SmallOptions& latents = shaped("latent attention, groups of experts", [=](std::uint32_t layer, LayerKind& k) {
    if (layer != 1) latent(k);
    if (layer == 0) return;
    k.query_rank = layer == 2 ? 10 : 0;
    k.window = layer == 2 ? 5 : 0;
    mixture(k, 8, 2);
    k.router = layer == 1 ? Router::softmax : Router::sigmoid;
    k.router_groups = 4;
    k.router_groups_used = 2;
  });
  latents.n_layers = 3;
  latents.seed = 2;
  shaped("scores that fall with distance", [](std::uint32_t layer, LayerKind& k) {
    k.alibi = 1;
    k.alibi_scale = layer == 0 ? 0 : 0.7f;
    k.rope_dims = 0;
    k.n_heads = 6;
    k.head_dim = 4;
    k.window = layer == 0 ? 0 : 7;
  });
  shaped("keys and values of earlier layers", [](std::uint32_t layer, LayerKind& k) {
    k.window = layer % 2 == 0 ? 5 : 0;
    k.kv_from = layer >= 2 ? layer - 1 : 0;
    if (layer % 2 == 1) k.head_dim = k.rope_dims = 16;
    k.v_norm = 1;
    k.v_from_k = layer == 1 ? 1 : 0;
  }).n_layers = 4;
  SmallOptions& inputs = shaped("inputs of each layer's own", [](std::uint32_t, LayerKind& k) {
    k.layer_input = 12;
    k.norm_place = NormPosition::both;
    k.activation = Activation::gelu;
  });
  inputs.model.layer_embd_scale = 3;
  inputs.model.layer_proj_scale = 0.5f;
  inputs.model.layer_input_scale = 0.7f;
  inputs.optional = {Role::layer_scale};
  SmallOptions& streams = shaped("streams that are predicted and corrected", [](std::uint32_t layer, LayerKind& k) {
    k.streams = 3;
    k.window = layer == 1 ? 0 : 5;
    k.kv_from = layer == 2 ? 1 : 0;
    k.layer_input = 12;
    k.norm_place = NormPosition::both;
    k.activation = Activation::gelu;
    k.laurel_rank = layer == 1 ? 0 : 6;
    k.gate_cut = layer == 0 ? 0.5f : 0;
  });
  streams.n_layers = 3;
  streams.model.layer_embd_scale = 3;
  streams.model.layer_proj_scale = 0.5f;
  streams.model.layer_input_scale = 0.7f;
  streams.optional = {Role::stream_scale};
  shaped("two streams without inputs", [](std::uint32_t, LayerKind& k) { k.streams = 2; });
  return all;
}

/// Returns the variant of that name.
inline SmallOptions variant(std::string_view name) {
  const std::vector<Named> all = variants();
  return std::ranges::find(all, name, &Named::name)->options;
}

/// Shapes whose memory goes back in different ways: keys and values of all positions, of a window, and states.
inline std::vector<Named> memories() {
  std::vector<Named> all{{"plain", {}}};
  for (const char* const name :
       {"window", "short convolutions", "delta nets, gated attention", "Mamba", "attention with Mamba-2, xIELU"}) {
    all.push_back({name, variant(name)});
  }
  return all;
}

}  // namespace qsf::test
