#include "converter/recipes/recipes.h"

#include <algorithm>
#include <charconv>

#include "converter/recipes/recipe_json.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kLayerMark = "{}";

/// Removes the number at the start of `text` and returns it; empty if there is none or it has leading zeros.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || (text.front() == '0' && digits > 1)) return {};
  text.remove_prefix(digits);
  return number;
}

struct Numbers {
  std::uint32_t layer = 0;
  std::optional<std::uint32_t> expert = {};
};

/// Returns the numbers of `name` in the places of {} and {expert} in `pattern`; empty if they do not match. {expert} in
/// the name matches as it is.
std::optional<Numbers> match(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return {};
  Numbers out;
  while (true) {
    const std::size_t mark = std::min(pattern.find(kLayerMark), pattern.find(kExpertMark));
    if (mark == std::string_view::npos) return name == pattern ? std::optional(out) : std::nullopt;
    if (!name.starts_with(pattern.substr(0, mark))) return {};
    name.remove_prefix(mark);
    pattern.remove_prefix(mark);
    const bool layer = pattern.starts_with(kLayerMark);
    pattern.remove_prefix(layer ? kLayerMark.size() : kExpertMark.size());
    if (!layer && name.starts_with(kExpertMark)) {
      name.remove_prefix(kExpertMark.size());
      continue;
    }
    const std::optional<std::uint32_t> number = take_number(name);
    if (!number) return {};
    if (layer) {
      out.layer = *number;
    } else {
      out.expert = number;
    }
  }
}

struct SizeKeys {
  std::string_view name;  // of kSizes
  Words keys;
};

}  // namespace

std::vector<TensorName> usual_names() {
  return {
      {Role::token_embd, {"model.embed_tokens.weight", "token_embd.weight"}},
      {Role::attn_norm, {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"}},
      {Role::attn_q, {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"}},
      {Role::attn_k, {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"}},
      {Role::attn_v, {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"}},
      {Role::attn_o, {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"}},
      {Role::attn_q_bias, {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"}},
      {Role::attn_k_bias, {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"}},
      {Role::attn_v_bias, {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"}},
      {Role::attn_o_bias, {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"}},
      {Role::attn_q_norm, {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"}},
      {Role::attn_k_norm, {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"}},
      {Role::ffn_norm, {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"}},
      {Role::ffn_gate, {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"}},
      {Role::ffn_up, {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"}},
      {Role::ffn_down, {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"}},
      {Role::guess_token_norm, {"model.layers.{}.enorm.weight", "blk.{}.nextn.enorm.weight"}},
      {Role::guess_state_norm, {"model.layers.{}.hnorm.weight", "blk.{}.nextn.hnorm.weight"}},
      {Role::guess_join, {"model.layers.{}.eh_proj.weight", "blk.{}.nextn.eh_proj.weight"}},
      {Role::guess_norm, {"model.layers.{}.shared_head.norm.weight", "blk.{}.nextn.shared_head_norm.weight"}},
      {Role::final_norm, {"model.norm.weight", "output_norm.weight"}},
      {Role::head, {"lm_head.weight", "output.weight"}},
      {Role::dense, {"dense", "dense"}},  // made from the source's matrices; see dense.h
      // Named by readers/reranker.cpp, whose source names them in several ways.
      {Role::dense_bias, {"dense_bias", "dense_bias"}},
      {Role::score_norm, {"score_norm", "score_norm"}},
      {Role::score, {"score", "score"}},
      {Role::score_bias, {"score_bias", "score_bias"}},
      {Role::second_bias, {"second_bias", "second_bias"}},
  };
}

std::array<Value, kSizes.size()> usual_sizes() {
  const SizeKeys keys[] = {
      {"n_layers", {"num_hidden_layers", "block_count"}},
      {"dim", {"hidden_size", "embedding_length"}},
      {"n_heads", {"num_attention_heads", "attention.head_count"}},
      {"n_kv_heads", {"num_key_value_heads", "attention.head_count_kv"}},
      {"head_dim", {"head_dim", "attention.key_length"}},
      {"ffn_dim", {"intermediate_size", "feed_forward_length"}},
      {"vocab_size", {"vocab_size", "vocab_size"}},
      {"max_seq_len", {"max_position_embeddings", "context_length"}},
  };
  std::array<Value, kSizes.size()> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const SizeKeys& line : keys) {
      if (line.name == kSizes[i].name) out[i].keys = line.keys;
    }
  }
  return out;
}

std::uint64_t RowSum::value(const Header& header, const LayerKind& kind) const {
  std::uint64_t sum = 0;
  for (const Term& term : terms) sum += std::uint64_t{term.factor} * extent(header, kind, term.extent);
  return sum;
}

std::optional<double> Value::without_key(std::optional<double> fallback, std::uint32_t dim) const {
  if (times_dim != 0) return times_dim * dim;
  return number ? number : fallback;
}

bool LayerException::holds_for(std::uint32_t layer) const {
  if (every != 0) return layer >= from && (layer - from) % every == 0;
  return std::ranges::find(layers, layer) != layers.end();
}

bool Recipe::sets(std::string_view key) const {
  return std::ranges::any_of(layers.every, [&](const Setting& s) { return kLayerKeys[s.key].name == key; });
}

bool Recipe::has_experts() const {
  const auto experts = [](const Setting& s) { return kLayerKeys[s.key].name == "n_experts"; };
  return std::ranges::any_of(layers.every, experts) || std::ranges::any_of(layers.exceptions, [&](const auto& some) {
           return std::ranges::any_of(some.settings, experts);
         });
}

const Value& Recipe::size(std::string_view wanted) const {
  const auto found = std::ranges::find(kSizes, wanted, &LayerKey::name);
  return sizes[static_cast<std::size_t>(found - kSizes.begin())];
}

std::span<const Recipe> known_recipes() {
  static const std::vector<Recipe> kRecipes = [] {
    std::vector<Recipe> recipes;
    for (const auto& [file, text] : recipe_texts()) {
      Result<Json> json = parse_json(text, file);
      Result<Recipe> recipe = json ? read_recipe(*json, file) : json.error();
      if (recipe) recipes.push_back(std::move(*recipe));
    }
    return recipes;
  }();
  return kRecipes;
}

const Recipe* find_recipe(std::string_view name) {
  for (const Recipe& recipe : known_recipes()) {
    if (recipe.name == name || std::ranges::find(recipe.also, name) != recipe.also.end()) return &recipe;
  }
  return nullptr;
}

Requirement requirement_of(const Recipe& recipe, Role role, const RoleContext& context) {
  const Requirement requirement = rule_of(role).requirement(context);
  if (requirement != Requirement::optional) return requirement;
  for (const RoleUse& use : recipe.uses) {
    if (use.role == role) return use.requirement;
  }
  return requirement;
}

std::vector<TensorUse> places_of_name(const Recipe& recipe, Naming naming, std::string_view name) {
  std::vector<TensorUse> places;
  for (const TensorName& line : recipe.tensors) {
    if (const auto found = match(line.names.in(naming), name)) places.push_back({found->layer, found->expert, &line});
  }
  return places;
}

std::string of_layer(std::string name, std::uint32_t layer) {
  const std::size_t mark = name.find(kLayerMark);
  if (mark != std::string::npos) name.replace(mark, kLayerMark.size(), std::to_string(layer));
  return name;
}

std::string name_of(const Recipe& recipe, Naming naming, Role role, std::uint32_t layer) {
  for (const TensorName& line : recipe.tensors) {
    if (line.role == role && !line.names.in(naming).empty()) return of_layer(line.names.in(naming), layer);
  }
  return {};
}

bool ignored_name(const Recipe& recipe, std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::ranges::any_of(kIgnoredEndings, ends) || std::ranges::any_of(recipe.ignored, ends);
}

namespace {

/// Returns the number of letters to insert, delete or change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Result<std::shared_ptr<const Recipe>> recipe_for(std::string_view architecture) {
  if (const Recipe* recipe = find_recipe(architecture)) {
    return std::shared_ptr<const Recipe>(std::shared_ptr<const Recipe>(), recipe);  // without an owner
  }
  constexpr std::size_t kShown = 60;
  std::string nearest;
  std::size_t least = 3;  // a distance of 3 or more means another word
  for (const Recipe& recipe : known_recipes()) {
    const std::size_t away = distance(architecture.substr(0, kShown), recipe.name);
    if (away < least) nearest = "; did you mean " + recipe.name + "?";
    least = std::min(least, away);
  }
  return make_error(ErrorCode::unsupported,
                    "the architecture \"{:.60}\" is not known{}; docs/reference/models.md lists those that are",
                    architecture, nearest);
}

}  // namespace qsf::convert
