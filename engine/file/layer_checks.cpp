// Combinations of keys that cannot exist, in one kind of layer and between layers.
#include "file/layer_checks.h"

#include <algorithm>

#include "qsf/base/try.h"
#include "qsf/formats/format.h"
#include "qsf/formats/kv.h"

namespace qsf {
namespace {

Status check_network(const LayerKind& kind) {
  if (kind.activation == Activation::xielu && (kind.has_experts() || kind.layer_input != 0)) {
    return make_error(ErrorCode::unsupported, "the activation xielu is of networks alone, not of experts or inputs");
  }
  const bool gates = kind.ffn == Ffn::gated || (kind.has_experts() && kind.plain_experts == 0);
  if (!gates && (kind.gate_limit != 0 || kind.gate_slope != 1 || kind.up_offset != 0)) {
    return make_error(ErrorCode::bad_section, "gate_limit, gate_slope and up_offset are of networks with a gate");
  }
  if (kind.gate_cut != 0 && kind.ffn != Ffn::gated) {
    return make_error(ErrorCode::unsupported, "gate_cut is of gated networks alone");
  }
  if (!(kind.gate_slope > 0)) {
    return make_error(ErrorCode::bad_section, "gate_slope is {}; it must be above 0", kind.gate_slope);
  }
  if (!kind.has_experts()) return {};
  if (kind.plain_experts != 0 && kind.ffn != Ffn::mixture) {
    return make_error(ErrorCode::unsupported, "plain experts are not next to a gated network");
  }
  if (kind.n_experts == 0 || kind.expert_dim == 0) {
    return make_error(ErrorCode::bad_section, "a mixture has {} experts of width {}", kind.n_experts, kind.expert_dim);
  }
  if (kind.experts_used < 1 || kind.experts_used > kind.n_experts) {
    return make_error(ErrorCode::bad_section, "experts_used is {}; it must be 1 to n_experts {}", kind.experts_used,
                      kind.n_experts);
  }
  if (kind.router_groups == 0) return {};
  const std::uint32_t size = kind.n_experts / kind.router_groups;
  if (kind.n_experts % kind.router_groups != 0 || kind.router_groups_used > kind.router_groups ||
      std::uint64_t{kind.router_groups_used} * size < kind.experts_used) {
    return make_error(ErrorCode::bad_section, "{} of {} groups of {} experts do not have the {} that a token selects",
                      kind.router_groups_used, kind.router_groups, kind.n_experts, kind.experts_used);
  }
  if (kind.router != Router::softmax && kind.router != Router::sigmoid) {
    return make_error(ErrorCode::unsupported, "router {} has no groups of experts", kind.router);
  }
  return {};
}

/// Checks the sizes that a convolution and a recurrent state need, if the mixer has them.
Status check_state(const LayerKind& kind) {
  if (kind.convolves() && kind.conv_taps == 0) {
    return make_error(ErrorCode::bad_section, "conv_taps is 0 in a layer whose mixer convolves");
  }
  if (!kind.has_state()) return {};
  if (kind.state_key_heads == 0 || kind.state_heads == 0 || kind.state_heads % kind.state_key_heads != 0) {
    return make_error(ErrorCode::bad_section, "state_heads {} is not a multiple of state_key_heads {}",
                      kind.state_heads, kind.state_key_heads);
  }
  if (kind.state_key_dim == 0 || kind.state_value_dim == 0 || kind.state_key_dim > kMaxHeadDim ||
      kind.state_value_dim > kMaxHeadDim) {
    return make_error(ErrorCode::bad_section, "a head's state is {} by {}; each must be 1 to {}", kind.state_key_dim,
                      kind.state_value_dim, kMaxHeadDim);
  }
  if (std::uint64_t{kind.state_key_heads} * kind.state_key_dim > kMaxDim ||
      std::uint64_t{kind.state_heads} * kind.state_value_dim > kMaxDim) {
    return make_error(ErrorCode::bad_section, "{} heads of values of {} and {} of keys of {} are wider than {}",
                      kind.state_heads, kind.state_value_dim, kind.state_key_heads, kind.state_key_dim, kMaxDim);
  }
  if (kind.mixer == Mixer::mamba && (kind.state_rank == 0 || kind.state_value_dim != 1 || kind.state_key_heads != 1 ||
                                     std::uint64_t{kind.state_heads} * kind.state_key_dim > kMaxDim)) {
    return make_error(ErrorCode::bad_section, "a mamba of {} channels of {}, {} key heads of {} and a rank of {}",
                      kind.state_heads, kind.state_value_dim, kind.state_key_heads, kind.state_key_dim,
                      kind.state_rank);
  }
  if (kind.mixer == Mixer::attention_and_mamba2 &&
      (kind.residual == Residual::parallel || kind.attention_gate != 0 || kind.bidirectional != 0)) {
    return make_error(ErrorCode::unsupported, "attention with mamba2 is neither parallel nor gated nor bidirectional");
  }
  return {};
}

/// Checks the sizes of latent attention.
Status check_latent(const LayerKind& kind) {
  if (kind.mixer != Mixer::latent) return {};
  if (kind.n_kv_heads != 1 || kind.latent_dim == 0 || kind.head_dim != kind.latent_dim + kind.rope_dims) {
    return make_error(ErrorCode::bad_section, "{} keys of {} are not one of latent_dim {} and rope_dims {}",
                      kind.n_kv_heads, kind.head_dim, kind.latent_dim, kind.rope_dims);
  }
  if (kind.rope_dims == 0 || kind.latent_head_dim <= kind.rope_dims || kind.latent_value_dim == 0) {
    return make_error(ErrorCode::bad_section, "latent heads of {} with rope_dims {} and values of {}",
                      kind.latent_head_dim, kind.rope_dims, kind.latent_value_dim);
  }
  if (std::uint64_t{kind.n_heads} * std::max(kind.latent_head_dim, kind.latent_value_dim) > kMaxDim) {
    return make_error(ErrorCode::bad_section, "n_heads {} times heads of {} and values of {} is more than {}",
                      kind.n_heads, kind.latent_head_dim, kind.latent_value_dim, kMaxDim);
  }
  if (kind.latent_dim % kTileRows != 0 || kind.latent_value_dim % kTileRows != 0) {
    return make_error(ErrorCode::unsupported, "latent_dim {} and latent_value_dim {} must be multiples of {}",
                      kind.latent_dim, kind.latent_value_dim, kTileRows);
  }
  if (kind.bidirectional != 0 || kind.alibi != 0 || kind.kv_from != 0) {
    return make_error(ErrorCode::unsupported, "latent attention has no alibi, no kv_from and no later positions");
  }
  return {};
}

/// Checks the streams and the second way of the mixer's input.
Status check_ways(const LayerKind& kind) {
  if (kind.streams == 1 || (kind.streams != 0 && kind.has_experts())) {
    return make_error(ErrorCode::unsupported, "streams is {}; it must be 0, or without experts 2 to {}", kind.streams,
                      kMaxStreams);
  }
  const bool normed = kind.norm_place == NormPosition::before || kind.norm_place == NormPosition::both;
  if (kind.laurel_rank != 0 &&
      (kind.mixer != Mixer::attention || kind.residual == Residual::parallel || !normed || kind.bare_mixer != 0)) {
    return make_error(ErrorCode::unsupported, "laurel_rank is of attention alone, in sequence, with a norm before it");
  }
  return {};
}

/// Checks the buckets of distances.
Status check_buckets(const LayerKind& kind) {
  const std::uint32_t n = kind.distance_buckets;
  if (n == 0) return {};
  if (n % 4 != 0 || kind.bucket_reach <= n / 4) {
    return make_error(ErrorCode::bad_section,
                      "distance_buckets is {} and bucket_reach {}; they must be a multiple of 4, and more than its "
                      "quarter",
                      n, kind.bucket_reach);
  }
  if (kind.mixer != Mixer::attention || kind.bidirectional == 0) {
    return make_error(ErrorCode::unsupported, "distance_buckets are of attention that sees later positions");
  }
  return {};
}

/// Checks that a key is the same in all layers.
Status check_same(std::span<const LayerKind> kinds, std::span<const std::uint8_t> of_layer, const char* name,
                  std::uint32_t LayerKind::* key) {
  const std::uint32_t first = kinds[of_layer[0]].*key;
  for (std::size_t layer = 0; layer < of_layer.size(); ++layer) {
    const std::uint32_t value = kinds[of_layer[layer]].*key;
    if (value == first) continue;
    return make_error(ErrorCode::bad_section, "layer {}: {} is {}, that of layer 0 is {}", layer, name, value, first);
  }
  return {};
}

/// Checks that the last layer can guess tokens: it has one input, and keys and values of its own.
Status check_guess_layer(const LayerTable& table, std::uint32_t dim) {
  if (table.model.guess_layer == 0) return {};
  const std::size_t n_layers = table.of_layer.size();
  if (n_layers < 2) return make_error(ErrorCode::bad_section, "guess_layer is 1, but there is one layer");
  const LayerKind& kind = table.kind(static_cast<std::uint32_t>(n_layers - 1));
  const bool keeps = (kind.attends() && kind.kv_from == 0) || kind.mixer == Mixer::latent;
  const bool is_plain = kind.streams == 0 && kind.layer_input == 0 && !kind.has_state() && kind.bidirectional == 0;
  if (keeps && is_plain && table.model.headless == 0 && std::uint64_t{2} * dim <= kMaxDim) return {};
  return make_error(ErrorCode::unsupported,
                    "guess_layer is 1, and the last layer cannot guess: it needs a head, "
                    "keys and values of its own, no state and no second input");
}

}  // namespace

Status check_agreement(const LayerKind& kind) {
  QSF_TRY(check_network(kind));
  QSF_TRY(check_state(kind));
  QSF_TRY(check_latent(kind));
  QSF_TRY(check_buckets(kind));
  QSF_TRY(check_ways(kind));
  if (kind.window_aligned != 0 && (kind.window == 0 || kind.bidirectional != 0)) {
    return make_error(ErrorCode::bad_section, "window_aligned is of layers with a window that see no later positions");
  }
  if (kind.query_growth != 0 && kind.query_span == 0) {
    return make_error(ErrorCode::bad_section, "query_growth is {}, but query_span is 0", kind.query_growth);
  }
  const bool on_stream = kind.norm_place == NormPosition::sum || kind.norm_place == NormPosition::stream;
  const bool scales = kind.stream_scale != 1 || kind.network_stream_scale != 1;
  if (kind.residual == Residual::parallel && (on_stream || scales)) {
    return make_error(ErrorCode::unsupported, "a parallel layer has neither a norm on sum or stream nor stream scales");
  }
  if (kind.bidirectional != 0 && (kind.alibi != 0 || kind.kv_from != 0)) {
    return make_error(ErrorCode::unsupported, "a layer whose positions see later ones has neither ALiBi nor kv_from");
  }
  if (kind.rope_dims == 0) return {};
  if (kind.rope_dims > kind.head_dim) {
    return make_error(ErrorCode::bad_section, "rope_dims is {}, more than head_dim {}", kind.rope_dims, kind.head_dim);
  }
  if (kind.rope_dims % 2 != 0) {
    return make_error(ErrorCode::bad_section, "rope_dims is {}; it must be even, RoPE rotates pairs", kind.rope_dims);
  }
  return {};
}

Status check_layers(const LayerTable& table, std::uint32_t dim) {
  const auto& [model, kinds, of_layer] = table;
  QSF_TRY(check_guess_layer(table, dim));
  QSF_TRY(check_same(kinds, of_layer, "layer_input", &LayerKind::layer_input));
  QSF_TRY(check_same(kinds, of_layer, "streams", &LayerKind::streams));
  const std::uint32_t streams = kinds[of_layer[0]].streams;
  if (streams != 0 && (dim % kTileRows != 0 || std::uint64_t{streams} * dim > kMaxDim)) {
    return make_error(ErrorCode::unsupported, "{} streams of {}: dim must be a multiple of {}, and all at most {}",
                      streams, dim, kTileRows, kMaxDim);
  }
  for (std::size_t layer = 0; layer < of_layer.size(); ++layer) {
    const LayerKind& kind = kinds[of_layer[layer]];
    const LayerKind& first = kinds[of_layer[0]];
    const bool shares = kind.distance_buckets == 0 ||
                        (first.distance_buckets == kind.distance_buckets && first.n_heads == kind.n_heads);
    if (!shares) {
      return make_error(ErrorCode::bad_section,
                        "layer {}: {} heads of {} distance_buckets; those of layer 0 are {} of {}", layer, kind.n_heads,
                        kind.distance_buckets, first.n_heads, first.distance_buckets);
    }
    if (!kind.attends() || kind.kv_from == 0) continue;
    if (kind.kv_from > layer) {
      return make_error(ErrorCode::bad_section, "layer {}: kv_from is {}, which names no earlier layer", layer,
                        kind.kv_from);
    }
    const LayerKind& from = kinds[of_layer[kind.kv_from - 1]];
    if (!from.attends() || from.kv_from != 0 || from.n_kv_heads != kind.n_kv_heads || from.head_dim != kind.head_dim ||
        from.window != kind.window) {
      return make_error(ErrorCode::bad_section, "layer {} cannot see the keys and values of layer {}: it keeps others",
                        layer, kind.kv_from - 1);
    }
  }
  if (of_layer.size() * std::uint64_t{kinds[of_layer[0]].layer_input} <= kMaxDim) return {};
  return make_error(ErrorCode::bad_section, "{} layers of layer_input {} have more than {} inputs", of_layer.size(),
                    kinds[of_layer[0]].layer_input, kMaxDim);
}

Status check_rope_divisors(const LayerTable& table, std::size_t n_divisors) {
  const std::size_t n_tables = table.model.long_rope_from != 0 ? 2 : 1;
  for (const LayerKind& kind : table.kinds) {
    const bool scaled = kind.rope_dims != 0 && kind.rope_scaled != 0;
    if (!scaled || n_divisors == 0 || n_divisors == kind.rope_dims / 2 * n_tables) continue;
    return make_error(ErrorCode::bad_section, "section ROPE has {} bytes, not {} divisors for each of {} pairs",
                      n_divisors * sizeof(float), n_tables, kind.rope_dims / 2);
  }
  if (n_tables == 1 || n_divisors != 0) return {};
  return make_error(ErrorCode::bad_section, "long_rope_from is {}, but there is no section ROPE",
                    table.model.long_rope_from);
}

}  // namespace qsf
