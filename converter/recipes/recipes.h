// Recipes: the names of an architecture's tensors, which of them it has, and the settings of its layers, as data read
// from JSON (recipe_json.h). A new architecture is a file of recipes/, which is compiled in.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"
#include "qsf/file/roles.h"

namespace qsf::convert {

enum class Naming : std::uint8_t { hugging_face, gguf };

/// The name of one thing in each naming; empty if it has none.
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

/// The part of the source's tensor for a role: transposed first, then cut or flattened, then with changed numbers.
struct TensorPart {
  bool transposed = false;                             // stored as [cols, rows]
  std::optional<std::pair<RowSum, RowSum>> rows = {};  // [begin, end) of a fused tensor; elements of a vector
  RowSum every = {};                                   // if not empty, rows are those of each group of so many
  bool plus_one = false;                               // stored minus one
  bool flat = false;                      // a matrix of any number of extents becomes a vector, row after row
  bool minus_exp = false;                 // a vector; its numbers become minus the powers of e
  bool turned_groups = false;             // of each group, the rows become columns
  std::vector<std::string> factors = {};  // keys of config.json whose numbers multiply it; missing ones are 1
  double factor = 1;                      // their product, once the configuration is read
  bool partial = false;                   // rows that no part takes are left out
  bool whole() const { return !transposed && !rows && !plus_one && !flat && !minus_exp && factor == 1; }
};

struct TensorName {
  Role role = Role::attn_q;
  Words names = {};  // {} is the layer's number, {expert} an expert's
  TensorPart part = {};
  std::optional<TensorPart> gguf_part = {};  // in GGUF, if it differs
  bool spare = false;                        // left out if the layer does not use it
  std::string beside = {}, without = {};  // the line counts if the source has, or does not have, a tensor of this name
  const TensorPart& part_in(Naming naming) const { return naming == Naming::gguf && gguf_part ? *gguf_part : part; }
};

/// A key of config.json and the values that the recipe supports.
struct Expected {
  std::string key = {};
  std::vector<std::string> values = {};  // as JSON; a key that is present must have one of them
};

/// A number, or the keys of one in the source's configuration, with the number as fallback.
struct Value {
  std::optional<double> number = {};
  Words keys = {};                         // of config.json, and of GGUF without the architecture's name in front
  std::vector<std::string> also = {};      // other keys of config.json; the first that is present counts
  std::optional<double> gguf_number = {};  // the value in GGUF, which has no key for it
  std::vector<Expected> one_where = {};    // of a size: it is 1 if config.json contradicts none of these
  std::vector<std::pair<std::string, double>> named =
      {};                    // values by the configuration's words or whole numbers; "": by any other
  double power = 1;          // the configuration's number is raised to this power
  double times_dim = 0;      // of a size: the fallback is this many times the model's width
  std::string rows_of = {};  // of a size: the tensor whose rows it counts, in Hugging Face's words
  Words over = {};           // of a layer's or model's key: the keys whose number divides it
  Words times = {};          // of a layer's or model's key: the keys whose number multiplies it
  double times_power = 1;    // that number is raised to this power before
  double less = 0;           // of a size: subtracted from config.json's number
  Words plus = {};           // the keys whose number is added to it
  bool by_layer = false;     // of a layer's key: the configuration may list a number for each layer
  /// config.json has a probability whose quantile of the normal distribution is the number; GGUF has the quantile. 0
  /// stays 0, and so does GGUF's minus infinity.
  bool quantile = false;
  /// Returns a size's value for a missing key, in any range.
  std::optional<double> without_key(std::optional<double> fallback, std::uint32_t dim) const;
};

/// The value of a key of layers.def, by its index in kLayerKeys or kModelKeys.
struct Setting {
  std::size_t key = 0;
  Value value = {};
};

/// Settings of some layers.
struct LayerException {
  std::vector<std::uint32_t> layers = {};  // these, or every n-th from one on
  std::uint32_t every = 0, from = 0;
  std::optional<Value> first = {};  // or the first so many
  std::optional<Role> with = {};    // or those whose source has a tensor of this role
  std::vector<Setting> settings = {};
  bool holds_for(std::uint32_t layer) const;
};

struct LayerRules {
  std::vector<Setting> model = {};
  std::vector<Setting> every = {};              // of all layers, in addition to the header
  std::vector<Setting> windowed = {};           // of layers with a window, if others have none
  std::vector<Setting> unrotated = {};          // of layers whose queries and keys have no positions
  std::vector<LayerException> exceptions = {};  // later ones override earlier ones
};

/// The types of layers by name, and the settings of each type.
struct LayerTypes {
  struct Type {
    std::string name = {};
    std::vector<Setting> settings = {};
  };
  std::vector<Type> types = {};                           // empty: the source does not distinguish layers
  std::vector<std::string> hugging_face = {}, gguf = {};  // keys of the types; the first that is present counts
  std::string listed = {}, others = {};                   // for keys with numbers, see layer_types.h
  bool by_layer = false;                                  // a list of config.json has a number for each layer, 0 or 1
};

/// The requirement that a recipe states for a role that layers may have.
struct RoleUse {
  Role role = Role::attn_q;
  Requirement requirement = Requirement::optional;
};

/// The layers whose keys and queries have no positions.
enum class NoRope : std::uint8_t {
  never,
  full_layers,  // those without a window, if others have one
  listed,       // the zeros of config.json's no_rope_layers
  unless_rope,  // all, except if config.json's position_embedding_type is "rope"
};

/// The keys of the window in a Hugging Face configuration.
enum class WindowRule : std::uint8_t {
  none,
  sliding_window,      // the key of that name; null: no window
  use_sliding_window,  // the same, only if the key use_sliding_window is true
  local_attention,     // half of the key of that name to each side; the first of so many layers has no window
  /// The key of that name; windows begin at its multiples. Without layer_types, layers without positions have none.
  attention_chunk_size,
};

/// The names and keys of most architectures.
std::vector<TensorName> usual_names();
std::array<Value, kSizes.size()> usual_sizes();

struct Recipe {
  std::string name = {};               // config.json's model_type and GGUF's general.architecture
  std::vector<std::string> also = {};  // other such names
  std::string gguf_name = {};          // the name in GGUF outputs; empty: GGUF has no form of such models
  Arch arch = Arch::custom;
  std::vector<RoleUse> uses = {};  // of optional roles; a role without a line stays optional
  bool hugging_face_interleaved = false,
       gguf_interleaved = false;  // q and k are stored for RoPE over pairs (2i, 2i + 1)
  WindowRule window = WindowRule::none;
  std::uint32_t default_window = 0;  // if the key is missing, as in transformers
  std::uint32_t gguf_window = 0;     // the same in GGUF
  double default_theta = 10000;      // RoPE's base if config.json does not state it, as in transformers
  bool yarn_scores = false;          // YaRN's factor for whole contexts multiplies scores, squared
  std::string rope_width = {};       // a key of config.json: the width of the part that RoPE rotates; empty: a head's
  double local_theta = 0;            // of layers with a window; 0: one base
  /// The last of each group of so many layers has no window if the source does not say which (with local_attention, the
  /// first). 0: all layers have it.
  std::uint32_t full_every = 0;
  NoRope no_rope = NoRope::never;
  std::uint32_t no_rope_every = 0;  // the last of each group of so many layers, if the source does not list them
  Words shared_kv = {};  // keys of the number of last layers that use an earlier layer's keys and values; empty: none
  std::string wide_shared = {};         // a key of config.json: whether their networks are twice as wide
  std::uint32_t gguf_scale_layers = 0;  // a GGUF file of so many layers scales scores by 1 / sqrt(dim / n_heads)
  LayerRules layers = {};
  LayerTypes types = {};
  std::vector<TensorName> tensors = usual_names();
  std::array<Value, kSizes.size()> sizes = usual_sizes();
  std::vector<std::string> ignored = {};   // endings of names, in addition to kIgnoredEndings
  std::vector<std::string> prefixes = {};  // possible prefixes of names
  std::vector<Expected> expected = {};
  std::string with_experts = {};  // the recipe for sources of this name that have experts

  bool interleaved(Naming naming) const {
    return naming == Naming::hugging_face ? hugging_face_interleaved : gguf_interleaved;
  }
  /// Returns whether this recipe sets `key` of layers.def for all layers.
  bool sets(std::string_view key) const;
  bool has_experts() const;
  /// Returns a header's size by its name.
  const Value& size(std::string_view name) const;
};

/// Stands for an expert's number in the names of single experts' tensors.
inline constexpr std::string_view kExpertMark = "{expert}";

/// Endings of names of tensors that no model needs: RoPE's frequencies, which are computed.
inline constexpr std::array<std::string_view, 4> kIgnoredEndings{
    "rotary_emb.inv_freq", "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};

/// Returns the compiled-in recipes.
std::span<const Recipe> known_recipes();
/// Returns null if there is none.
const Recipe* find_recipe(std::string_view name);
/// Returns the compiled-in recipe of that name; unsupported, with the nearest name, if there is none.
Result<std::shared_ptr<const Recipe>> recipe_for(std::string_view architecture);

/// Returns whether a stage has a tensor of the role. Its kind decides, and the recipe decides for optional roles.
Requirement requirement_of(const Recipe& recipe, Role role, const RoleContext& context);

struct TensorUse {
  std::uint32_t layer = 0;                   // 0 for tensors outside the layers
  std::optional<std::uint32_t> expert = {};  // of a tensor that belongs to one expert
  const TensorName* line = nullptr;
};
/// Returns the recipe's lines with this name. A fused tensor has several.
std::vector<TensorUse> places_of_name(const Recipe& recipe, Naming naming, std::string_view name);
/// Returns the inverse, with {expert} unchanged: the first of several names, empty if the recipe has no name.
std::string name_of(const Recipe& recipe, Naming naming, Role role, std::uint32_t layer);
/// Returns the name with the layer's number in place of {}.
std::string of_layer(std::string name, std::uint32_t layer);
bool ignored_name(const Recipe& recipe, std::string_view name);

}  // namespace qsf::convert
