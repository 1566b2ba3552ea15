// What each layer of a model computes, as data: the LAYR section (docs/format.md). Without it every layer is what the
// header says.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/boundary.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"

namespace qsf {

inline constexpr std::uint32_t kMaxKinds = 255;  // of layers, in one model

enum class Mixer : std::uint8_t {
#define QSF_MIXER(number, name, meaning) name = number,
#include "qsf/file/layers.def"
};
/// The feed-forward network: down(activation(gate(x)) * up(x)), down(activation(up(x))), none, or a weighted sum of the
/// gated networks that a router chooses for each token; or a gated one and such a sum, each with norms of its own.
enum class Ffn : std::uint8_t { gated = 0, plain = 1, none = 2, mixture = 3, gated_and_mixture = 4 };
/// The weight of an expert that was chosen: of the softmax over all logits, of the softmax over those chosen, or the
/// logit's sigmoid.
enum class Router : std::uint8_t { softmax = 0, softmax_chosen = 1, sigmoid = 2 };
/// Before mixer and network, after them on what they add, or both; or on the stream once they were added to it (Vaswani
/// et al. 2017).
enum class NormPlace : std::uint8_t { before = 0, after = 1, both = 2, sum = 3 };
/// Parallel: mixer and network see the same stream; one norm serves both where there is one only.
enum class Residual : std::uint8_t { sequential = 0, parallel = 1 };

/// The types of layers.def.
namespace hyper {
using u32 = std::uint32_t;
using f32 = float;
using qsf::Activation, qsf::Ffn, qsf::Mixer, qsf::Norm, qsf::NormPlace, qsf::Pooling, qsf::Residual, qsf::Router;
}  // namespace hyper

/// The divisor in the ROPE section of a pair that is not turned.
inline constexpr float kNotTurned = 1e30f;

/// One kind of layer; layers.def says what the members mean.
struct LayerKind {
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) hyper::type name{};
#include "qsf/file/layers.def"

  std::uint32_t q_dim() const { return n_heads * head_dim; }
  std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
  constexpr bool has_experts() const { return ffn == Ffn::mixture || ffn == Ffn::gated_and_mixture; }
  /// Whether there is a network beside experts that are chosen.
  constexpr bool has_dense() const { return ffn != Ffn::none && ffn != Ffn::mixture; }
  /// Whether gates and what they multiply are changed before the activation.
  bool limits_gates() const { return gate_limit != 0 || gate_slope != 1 || up_offset != 0; }
  constexpr bool has_state() const { return mixer == Mixer::delta_net || mixer == Mixer::mamba2; }
  constexpr std::uint32_t state_keys() const { return state_key_heads * state_key_dim; }
  constexpr std::uint32_t state_values() const { return state_heads * state_value_dim; }
  /// Heads that share a key head.
  constexpr std::uint32_t heads_of_key() const { return state_key_heads == 0 ? 0 : state_heads / state_key_heads; }
  /// Channels of the mixer's convolution, of a model of that width.
  constexpr std::uint32_t conv_channels(std::uint32_t dim) const {
    return mixer == Mixer::short_conv ? dim : has_state() ? 2 * state_keys() + state_values() : 0;
  }
  bool operator==(const LayerKind&) const = default;
};

/// What holds for the whole model beside the header's sizes.
struct ModelKind {
  float embedding_scale = 1;
  float logit_scale = 1;
  float logit_cap = 0;
  std::uint32_t long_rope_from = 0;
  std::uint32_t headless = 0;
  Pooling pooling = Pooling::mean;
  std::uint32_t normalize = 0;
  float layer_embd_scale = 1;
  float layer_proj_scale = 1;
  float layer_input_scale = 1;
  float final_epsilon = 0;
  bool operator==(const ModelKind&) const = default;
};

/// Views of memory that must outlive this. Every layer has a kind.
struct LayerTable {
  ModelKind model;
  std::span<const LayerKind> kinds;
  std::span<const std::uint8_t> of_layer;  // [n_layers] into kinds

  const LayerKind& kind(std::uint32_t layer) const { return kinds[of_layer[layer]]; }
  /// Whether a text must be one pass: some layer sees positions behind its own.
  bool bidirectional() const {
    return std::ranges::any_of(kinds, [](const LayerKind& kind) { return kind.bidirectional != 0; });
  }
};

/// The same where a table is made.
struct LayerTableSource {
  ModelKind model;
  std::vector<LayerKind> kinds;  // empty: every layer is what the header and META say
  std::vector<std::uint8_t> of_layer;

  LayerTable view() const { return {model, kinds, of_layer}; }
};

/// What a layer is where nothing else is said: the header, without an epsilon; and META's norm.epsilon and
/// attention.window.
LayerKind default_kind(const Header& header);
Result<LayerKind> default_kind(const Header& header, std::span<const std::byte> meta);

/// How many kinds the LAYR section has; 1 for an empty one. bad_section when it is damaged.
Result<std::uint32_t> count_kinds(const Header& header, std::span<const std::byte> section);
/// Reads the section (empty: none) into kinds[count_kinds()] and of_layer[n_layers]; every number is in its range, and
/// kinds are possible. bad_section or unsupported otherwise.
Result<ModelKind> read_layer_table(const Header& header, std::span<const std::byte> meta,
                                   std::span<const std::byte> section, std::span<LayerKind> kinds,
                                   std::span<std::uint8_t> of_layer);
/// The same, for converters: this one allocates.
Result<LayerTableSource> load_layer_table(const Header& header, std::span<const std::byte> meta,
                                          std::span<const std::byte> section);
/// The section of a table whose kinds differ from `usual`; empty when nothing does.
std::vector<std::byte> encode_layer_table(const LayerTable& table, const LayerKind& usual);

/// Ranges and what must fit together: bad_section, naming the key and the value, or unsupported.
Status check_kind(const LayerKind& kind);
/// What layers ask of each other: kv_from and layer_input. bad_section otherwise.
Status check_layers(std::span<const LayerKind> kinds, std::span<const std::uint8_t> of_layer);
/// The ROPE section's size against every kind that it holds for: bad_section otherwise.
Status check_rope_divisors(const LayerTable& table, std::size_t n_divisors);
/// The header's sizes against layers.def. `code`: the reader's bad_header, the converter's bad_input.
Status check_sizes(const Header& header, ErrorCode code);

/// One line of layers.def.
struct LayerKey {
  std::uint16_t number;
  std::string_view name;
  double least, most;
  std::string_view meaning;
};
inline constexpr std::array kLayerKeys{
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) LayerKey{number, #name, least, most, meaning},
#include "qsf/file/layers.def"
};
inline constexpr std::array kModelKeys{
#define QSF_MODEL_KEY(number, type, name, least, most, meaning) LayerKey{number, #name, least, most, meaning},
#include "qsf/file/layers.def"
};
inline constexpr std::array kSizes{
#define QSF_SIZE(name, least, most, meaning) LayerKey{0, #name, least, most, meaning},
#include "qsf/file/layers.def"
};

/// visit(line of layers.def, member) for every size in the header.
template <class H, class Visit>
void visit_sizes(H& header, Visit&& visit) {
  std::size_t i = 0;
#define QSF_SIZE(name, least, most, meaning) visit(kSizes[i++], header.name);
#include "qsf/file/layers.def"
}
/// The same for every key of a kind of layer, and of the whole model.
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
