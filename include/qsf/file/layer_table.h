// The layer table: the kinds of a model's layers, as the LAYR section states them (docs/reference/format.md). Without
// the section, the header states the one kind of all layers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/enumerations.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"

namespace qsf {

inline constexpr std::uint32_t kMaxKinds = 255;  // of layers, in one model

enum class Mixer : std::uint8_t {
#define QSF_MIXER(number, name, meaning) name = number,
#include "qsf/file/layers.def"
};
/// The feed-forward network. Gated: down(activation(gate(x)) * up(x)). Plain: down(activation(up(x))). Mixture: the
/// weighted sum of the experts, each a gated or plain network, that the router selects for each token. Gated and
/// mixture: the sum of both, each with its own norms.
enum class Ffn : std::uint8_t { gated = 0, plain = 1, none = 2, mixture = 3, gated_and_mixture = 4 };
/// The weight of a selected expert: from the softmax over all logits, from the softmax over the selected logits, the
/// sigmoid of its logit, or from the softmax over the logits near the largest one (router_jitter). In the last case
/// each expert is selected among those that the ones before it left.
enum class Router : std::uint8_t { softmax = 0, softmax_chosen = 1, sigmoid = 2, softmax_near = 3 };
/// The position of the norms: on the inputs of mixer and network, on their outputs, or both; or on the stream after the
/// outputs are added to it (Vaswani et al. 2017), or on the stream before mixer and network see it.
enum class NormPosition : std::uint8_t { before = 0, after = 1, both = 2, sum = 3, stream = 4 };
/// Parallel: mixer and network see the same stream. If the layer has only one norm, both use it.
enum class Residual : std::uint8_t { sequential = 0, parallel = 1 };

/// The types in layers.def.
namespace hyper {
using u32 = std::uint32_t;
using f32 = float;
using qsf::Activation, qsf::Ffn, qsf::Mixer, qsf::Norm, qsf::NormPosition, qsf::Pooling, qsf::Residual, qsf::Router;
}  // namespace hyper

/// The divisor in the ROPE section of a pair that is not rotated.
inline constexpr float kNotTurned = 1e30f;

/// One kind of layer; layers.def states the meaning of the members.
struct LayerKind {
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) hyper::type name{};
#include "qsf/file/layers.def"

  std::uint32_t q_dim() const { return n_heads * head_dim; }
  std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
  constexpr bool has_experts() const { return ffn == Ffn::mixture || ffn == Ffn::gated_and_mixture; }
  /// Whether every token uses a network that the router does not select.
  constexpr bool has_dense() const { return ffn != Ffn::none && ffn != Ffn::mixture; }
  /// Whether gates and up values are limited, scaled or shifted.
  bool limits_gates() const { return gate_limit != 0 || gate_slope != 1 || up_offset != 0; }
  constexpr bool attends() const { return mixer == Mixer::attention || mixer == Mixer::attention_and_mamba2; }
  constexpr bool has_mamba2() const { return mixer == Mixer::mamba2 || mixer == Mixer::attention_and_mamba2; }
  constexpr bool has_state() const {
    return mixer == Mixer::delta_net || mixer == Mixer::mamba || mixer == Mixer::lightning || has_mamba2();
  }
  constexpr bool convolves() const { return mixer == Mixer::short_conv || (has_state() && mixer != Mixer::lightning); }
  /// Returns the number of streams that the layer does not compute.
  constexpr std::uint32_t other_streams() const { return streams == 0 ? 0 : streams - 1; }
  /// Returns the values of a latent query that RoPE does not rotate.
  constexpr std::uint32_t still_dims() const { return latent_head_dim - rope_dims; }
  constexpr std::uint32_t state_keys() const { return state_key_heads * state_key_dim; }
  constexpr std::uint32_t state_values() const { return state_heads * state_value_dim; }
  /// Returns the number of heads that share a key head.
  constexpr std::uint32_t heads_of_key() const { return state_key_heads == 0 ? 0 : state_heads / state_key_heads; }
  /// Returns the channels of the mixer's convolution in a model of width `dim`; 0 without a convolution.
  constexpr std::uint32_t conv_channels(std::uint32_t dim) const {
    if (mixer == Mixer::short_conv) return dim;
    return !convolves() ? 0 : state_values() + (mixer == Mixer::mamba ? 0 : 2 * state_keys());
  }
  bool operator==(const LayerKind&) const = default;
};

/// The properties of the whole model that are not sizes in the header.
struct ModelKind {
  float embedding_scale = 1;
  float logit_scale = 1;
  float logit_cap = 0;
  std::uint32_t long_rope_from = 0;
  std::uint32_t headless = 0;
  Pooling pooling = Pooling::mean;
  std::uint32_t normalize = 0;
  std::uint32_t score = 0;
  float layer_embd_scale = 1;
  float layer_proj_scale = 1;
  float layer_input_scale = 1;
  float final_epsilon = 0;
  std::uint32_t score_activation = 0;
  std::uint32_t guess_layer = 0;
  bool operator==(const ModelKind&) const = default;
};

/// Views of memory that must outlive the table. Every layer has a kind.
struct LayerTable {
  ModelKind model;
  std::span<const LayerKind> kinds;
  std::span<const std::uint8_t> of_layer;  // [n_layers] into kinds

  const LayerKind& kind(std::uint32_t layer) const { return kinds[of_layer[layer]]; }
  /// Whether a text must be one pass, because a layer sees later positions.
  bool bidirectional() const {
    return std::ranges::any_of(kinds, [](const LayerKind& kind) { return kind.bidirectional != 0; });
  }
};

/// A table that is under construction and owns its memory.
struct LayerTableBuilder {
  ModelKind model;
  std::vector<LayerKind> kinds;  // empty: all layers have the kind of header and META
  std::vector<std::uint8_t> of_layer;

  LayerTable view() const { return {model, kinds, of_layer}; }
};

/// Returns the kind of every layer in a file without a LAYR section: the header's, without an epsilon; the second
/// function adds META's norm.epsilon and attention.window.
LayerKind default_kind(const Header& header);
Result<LayerKind> default_kind(const Header& header, std::span<const std::byte> meta);

/// Returns the number of kinds in the LAYR section, 1 for an empty section. Fails with bad_section if it is damaged.
Result<std::uint32_t> count_kinds(const Header& header, std::span<const std::byte> section);
/// Reads the section, which may be empty, into kinds[count_kinds()] and of_layer[n_layers]. Fails with bad_section or
/// unsupported for a number out of its range, a kind that is not possible or layers that contradict each other.
Result<ModelKind> read_layer_table(const Header& header, std::span<const std::byte> meta,
                                   std::span<const std::byte> section, std::span<LayerKind> kinds,
                                   std::span<std::uint8_t> of_layer);
/// Reads the section, for converters. Allocates.
Result<LayerTableBuilder> load_layer_table(const Header& header, std::span<const std::byte> meta,
                                           std::span<const std::byte> section);
/// Returns the LAYR section with the differences from the kind `usual`; empty if there are none.
std::vector<std::byte> encode_layer_table(const LayerTable& table, const LayerKind& usual);

/// Checks ranges and the agreement of keys. Fails with bad_section, naming the key and the value, or unsupported.
Status check_kind(const LayerKind& kind);
/// Checks the keys by which layers of a model of width `dim` depend on each other, kv_from, layer_input and streams,
/// and those of the model that depend on its layers. Fails with bad_section, or unsupported.
Status check_layers(const LayerTable& table, std::uint32_t dim);
/// Checks the ROPE section's size against every kind that uses it. Fails with bad_section.
Status check_rope_divisors(const LayerTable& table, std::size_t n_divisors);
/// Checks the header's sizes against layers.def. Fails with `code`: bad_header for the reader, bad_input for the
/// converter.
Status check_sizes(const Header& header, ErrorCode code);

/// One line of layers.def.
struct LayerKey {
  std::uint16_t number;
  std::string_view name;
  double least, most;
};
inline constexpr std::array kLayerKeys{
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) LayerKey{number, #name, least, most},
#include "qsf/file/layers.def"
};
inline constexpr std::array kModelKeys{
#define QSF_MODEL_KEY(number, type, name, least, most, meaning) LayerKey{number, #name, least, most},
#include "qsf/file/layers.def"
};
inline constexpr std::array kSizes{
#define QSF_SIZE(name, least, most, meaning) LayerKey{0, #name, least, most},
#include "qsf/file/layers.def"
};

/// Calls visit(line of layers.def, member) for every size in the header.
template <class H, class Visit>
void visit_sizes(H& header, Visit&& visit) {
  std::size_t i = 0;
#define QSF_SIZE(name, least, most, meaning) visit(kSizes[i++], header.name);
#include "qsf/file/layers.def"
}
/// Calls visit(line of layers.def, member) for every key of a kind of layer, and of the whole model.
template <class Kind, class Visit>
void visit_layer_keys(Kind& kind, Visit&& visit) {
  std::size_t i = 0;
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) visit(kLayerKeys[i++], kind.name);
#include "qsf/file/layers.def"
}
template <class Kind, class Visit>
void visit_model_keys(Kind& kind, Visit&& visit) {
  std::size_t i = 0;
#define QSF_MODEL_KEY(number, type, name, least, most, meaning) visit(kModelKeys[i++], kind.name);
#include "qsf/file/layers.def"
}

}  // namespace qsf
