// What each architecture calls its tensors, which it has and what its layers are: data, read from JSON (recipe_json.h).
// A new architecture is a file of recipes/, which is compiled in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"
#include "qsf/file/roles.h"

namespace qsf::convert {

enum class Naming : std::uint8_t { hugging_face, gguf };

/// What one thing is called in each naming; empty where it has no name.
struct Words {
  std::string hugging_face = {};
  std::string gguf = {};
  const std::string& in(Naming naming) const { return naming == Naming::hugging_face ? hugging_face : gguf; }
  std::string& in(Naming naming) { return naming == Naming::hugging_face ? hugging_face : gguf; }
};

/// A number of rows, as a sum of the model's sizes.
struct RowSum {
  struct Term {
    std::uint32_t factor = 0;
    Extent extent = Extent::one;
  };
  std::vector<Term> terms = {};
  std::uint64_t value(const Header& header, const LayerKind& kind) const;
};

/// How a role's tensor is taken from the source's: transposed first, then cut or laid flat, then its numbers changed.
struct TensorPart {
  bool transposed = false;                             // stored as [cols, rows]
  std::optional<std::pair<RowSum, RowSum>> rows = {};  // [begin, end) of a fused tensor; of a vector, elements
  RowSum every = {};                                   // where there is one, rows are those of each so many
  bool plus_one = false;                               // stored less one
  bool flat = false;                                   // a matrix of any number of extents, row after row, is a vector
  bool minus_exp = false;                              // a vector, of which minus the powers of e are meant
  bool partial = false;                                // rows that no part takes are left out
  bool whole() const { return !transposed && !rows && !plus_one && !flat && !minus_exp; }
};

struct TensorName {
  Role role = Role::attn_q;
  Words names = {};  // {} stands for the layer's number, {expert} for an expert's
  TensorPart part = {};
  std::optional<TensorPart> gguf_part = {};  // in GGUF, where it differs
  bool spare = false;                        // left out where the layer has no use for it
  std::string beside = {}, without = {};     // the line counts where a source has a tensor of this name, or has none
  const TensorPart& part_in(Naming naming) const { return naming == Naming::gguf && gguf_part ? *gguf_part : part; }
};

/// A key of config.json and the values that this recipe is for.
struct Expected {
  std::string key = {};
  std::vector<std::string> values = {};  // as JSON; one of them, where the key is there
};

/// A number, or where the source's configuration has it; the number is then what holds without the key.
struct Value {
  std::optional<double> number = {};
  Words keys = {};                         // of config.json; of GGUF without the architecture in front
  std::vector<std::string> also = {};      // other keys of config.json: the first that is there counts
  std::optional<double> gguf_number = {};  // what holds in GGUF, which has no key for it
  std::vector<Expected> one_where = {};    // of a size: it is 1 where config.json says all of these, or nothing of them
  double power = 1;                        // the configuration's number to this power is meant
  double times_dim = 0;                    // of a size: so many times the model's width holds without the key
  std::string rows_of = {};                // of a size: the tensor whose rows it is, in Hugging Face's words
  std::string gguf_over = {};              // of a layer's key: GGUF's key whose number it is divided by there
  /// Of a size: what holds without the key.
  std::optional<std::uint32_t> without_key(std::optional<std::uint32_t> fallback, std::uint32_t dim) const;
};

/// Of a key of layers.def, by its place in kLayerKeys or kModelKeys.
struct Setting {
  std::size_t key = 0;
  Value value = {};
};

/// Settings that hold for some layers only.
struct LayerException {
  std::vector<std::uint32_t> layers = {};  // these, or every n-th from one on
  std::uint32_t every = 0, from = 0;
  std::optional<Value> first = {};  // or so many from the first on
  std::vector<Setting> settings = {};
  bool holds_for(std::uint32_t layer) const;
};

struct LayerRules {
  std::vector<Setting> model = {};
  std::vector<Setting> every = {};              // what all layers are, beside the header's say
  std::vector<Setting> windowed = {};           // what those with a window are, where others have none
  std::vector<LayerException> exceptions = {};  // later ones win
};

/// Layers by the names of their types, and what these make of them.
struct LayerTypes {
  struct Type {
    std::string name = {};
    std::vector<Setting> settings = {};
  };
  std::vector<Type> types = {};                           // none: the source does not tell layers apart
  std::vector<std::string> hugging_face = {}, gguf = {};  // keys that say it, the first that is there
  std::string listed = {}, others = {};                   // where a key gives numbers: see layer_types.h
};

/// What a recipe says of a role that layers may have.
struct RoleUse {
  Role role = Role::attn_q;
  Presence presence = Presence::optional;
};

/// Which layers give keys and queries no positions.
enum class NoRope : std::uint8_t {
  never,
  full_layers,  // those without a window, where others have one
  listed,       // the zeros of config.json's no_rope_layers
  unless_rope,  // all, unless config.json's position_embedding_type is "rope"
};

/// Where a Hugging Face configuration says how far attention looks back.
enum class WindowRule : std::uint8_t {
  none,
  sliding_window,      // the key of that name; null: no window
  use_sliding_window,  // the same, and only when the key use_sliding_window is true
  local_attention,     // half of the key of that name to each side; the first of so many layers has none
};

/// Names and keys as most architectures have them.
std::vector<TensorName> usual_names();
std::array<Value, kSizes.size()> usual_sizes();

struct Recipe {
  std::string name = {};               // config.json's model_type, GGUF's general.architecture
  std::vector<std::string> also = {};  // other such names
  std::string gguf_name = {};          // the one that is written; empty: GGUF has no form of such models
  Arch arch = Arch::custom;
  std::vector<RoleUse> uses = {};  // of roles that are optional; without a line they stay so
  bool hugging_face_interleaved = false,
       gguf_interleaved = false;  // q and k are stored for RoPE over pairs (2i, 2i + 1)
  WindowRule window = WindowRule::none;
  std::uint32_t default_window = 0;  // when the key is missing, as transformers has it
  double default_theta = 10000;      // RoPE's base when config.json does not say it, as transformers has it
  double local_theta = 0;            // RoPE's base where the window holds, when the source does not say it; 0: one base
  /// The last of so many layers has no window where the source does not say which (of local_attention the first); 0:
  /// all.
  std::uint32_t full_every = 0;
  NoRope no_rope = NoRope::never;
  std::uint32_t no_rope_every = 0;  // the last of so many layers, where the source does not list them
  Words shared_kv = {};             // keys of how many last layers see an earlier one's keys and values; empty: none do
  std::string wide_shared = {};     // a key of config.json: whether their networks are twice as wide
  std::uint32_t gguf_scale_layers = 0;  // a GGUF file of so many layers has scores by 1 / sqrt(dim / n_heads)
  LayerRules layers = {};
  LayerTypes types = {};
  std::vector<TensorName> tensors = usual_names();
  std::array<Value, kSizes.size()> sizes = usual_sizes();
  std::vector<std::string> ignored = {};   // endings of names, beside kIgnoredEndings
  std::vector<std::string> prefixes = {};  // that names may have in front
  std::vector<Expected> expected = {};
  std::string with_experts = {};  // the recipe for sources of this name that have experts

  bool interleaved(Naming naming) const {
    return naming == Naming::hugging_face ? hugging_face_interleaved : gguf_interleaved;
  }
  /// Whether all layers' `key` of layers.def is said here.
  bool sets(std::string_view key) const;
  /// Whether some layers are mixtures of experts.
  bool has_experts() const;
  /// `name`: of a header's size.
  const Value& size(std::string_view name) const;
};

/// Where an expert's number stands in the names of tensors that are one expert's each.
inline constexpr std::string_view kExpertMark = "{expert}";

/// Names that end so carry nothing that a model needs: RoPE's frequencies, which are computed.
inline constexpr std::array<std::string_view, 4> kIgnoredEndings{
    "rotary_emb.inv_freq", "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};

/// Those that are compiled in.
std::span<const Recipe> known_recipes();
/// nullptr when there is none.
const Recipe* find_recipe(std::string_view name);

/// Whether a section has a tensor of the role: what its kind asks for, and where that leaves it open the recipe's say.
Presence presence_of(const Recipe& recipe, Role role, const RoleContext& context);

struct TensorPlace {
  std::uint32_t layer = 0;                   // 0 for tensors outside the layers
  std::optional<std::uint32_t> expert = {};  // of a tensor that is one expert's
  const TensorName* line = nullptr;
};
/// Of the recipe's lines, those with this name: several for a fused tensor.
std::vector<TensorPlace> places_of_name(const Recipe& recipe, Naming naming, std::string_view name);
/// The inverse, in which {expert} stays; empty where the recipe has no name. Of several names, the first.
std::string name_of(const Recipe& recipe, Naming naming, Role role, std::uint32_t layer);
/// A layer's number in the place of {}.
std::string of_layer(std::string name, std::uint32_t layer);
bool ignored_name(const Recipe& recipe, std::string_view name);

}  // namespace qsf::convert
