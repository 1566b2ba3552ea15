#include "converter/model/sizes.h"

#include <algorithm>
#include <span>

#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

/// Returns a size from GGUF's list of one number for each layer.
std::uint32_t size_of_layers(const Json& list, std::string_view key, const KeyForm& form, std::uint32_t n_layers,
                             std::string_view file, Counts& counts, std::vector<LayerException>& by_layer) {
  if (list.size() != n_layers) {
    counts.fail(make_error(ErrorCode::bad_input, "{}: \"{:.60}\" lists {} numbers for {} layers", file,
                           counts.in_file(key), list.size(), n_layers));
    return 0;
  }
  std::vector<std::uint32_t> sizes;
  for (const Json& each : list) sizes.push_back(each == 0 ? 0 : counts.take(each, key, form));
  const auto first = std::ranges::find_if(sizes, [](std::uint32_t size) { return size != 0; });
  if (first == sizes.end()) return counts.take(0, key, form);
  if (std::ranges::all_of(sizes, [&](std::uint32_t size) { return size == 0 || size == *first; })) return *first;
  if (std::ranges::find(sizes, 0u) != sizes.end()) {
    counts.fail(make_error(ErrorCode::unsupported,
                           "{}: \"{:.60}\" is 0 in some layers, and others have different numbers", file,
                           counts.in_file(key)));
  }
  for (std::uint32_t layer = 1; layer < n_layers; ++layer) {
    if (sizes[layer] == sizes[0]) continue;
    by_layer.push_back({.layers = {layer}, .settings = {layer_setting(form.key.name, sizes[layer])}});
  }
  return sizes[0];
}

}  // namespace

const KeyForm& count_form(std::string_view name) {
  for (const std::span<const KeyForm> forms : {size_forms(), layer_forms()}) {
    const auto form = std::ranges::find(forms, name, [](const KeyForm& f) { return f.key.name; });
    if (form != forms.end()) return *form;
  }
  return layers_form();
}

std::uint32_t Counts::take(const Json& json, std::string_view key, const KeyForm& form) {
  const Result<double> number = read_value(json, form, file_, in_file(key));
  if (number) return static_cast<std::uint32_t>(*number);
  fail(number.error());
  return static_cast<std::uint32_t>(form.key.least);
}

std::uint32_t Counts::read(const std::string& key, const KeyForm& form, std::optional<double> fallback) {
  const Json found = lookup_(key);
  return take(found.is_null() && fallback ? Json(*fallback) : found, key, form);
}

Status read_sizes(const Recipe& recipe, Naming naming, const Lookup& lookup, std::string_view file, ModelConfig& config,
                  std::vector<LayerException>& by_layer) {
  Counts counts(lookup, file);
  const auto size = [&](std::string_view name, std::optional<double> fallback = {}) {
    const KeyForm& form = count_form(name);
    const Value& value = recipe.size(name);
    std::string key = value.keys.in(naming);
    if (naming == Naming::hugging_face) {
      const auto holds = [&](const Expected& expected) { return said_otherwise(lookup, expected).empty(); };
      if (!value.one_where.empty() && std::ranges::all_of(value.one_where, holds)) return 1u;
      for (const std::string& other : value.also) key = lookup(key).is_null() ? other : key;
    }
    Json found = key.empty() ? Json(nullptr) : lookup(key);
    const bool listed = naming == Naming::hugging_face && found.is_array() && !found.empty();
    if (listed && found.front().is_number() && std::ranges::count(found, found.front()) == std::ssize(found)) {
      found = Json(found.front());  // the same in all layers
    }
    const std::optional<double> number = value.without_key(fallback, config.dim);
    if (found.is_null() && number) return counts.take(*number, name, form);
    const auto is_word = [](const Json& each) { return each.is_string(); };
    if (name == "n_layers" && naming == Naming::hugging_face && found.is_array() &&
        std::ranges::all_of(found, is_word)) {
      return counts.take(found.size(), key, form);  // a list with a word for each layer
    }
    const bool of_layers =
        std::ranges::any_of(layer_forms(), [&](const KeyForm& layer_form) { return layer_form.key.name == name; });
    if (naming == Naming::gguf && found.is_array() && of_layers) {
      return size_of_layers(found, key, form, config.n_layers, file, counts, by_layer);
    }
    if (value.less != 0 && naming == Naming::hugging_face && found.is_number()) {
      return counts.take(found.get<double>() - value.less, key, form);
    }
    const std::uint32_t number_found = counts.take(found, key.empty() ? name : key, form);
    const std::string& added = value.plus.in(naming);
    if (added.empty()) return number_found;
    return counts.take(static_cast<double>(number_found) + counts.read(added, form), key, form);
  };
  config.n_layers = size("n_layers");
  config.dim = size("dim");
  config.n_heads = size("n_heads");
  config.n_kv_heads = size("n_kv_heads", config.n_heads);
  config.head_dim = size("head_dim", config.dim / std::max(config.n_heads, 1u));
  config.ffn_dim = size("ffn_dim");
  config.max_seq_len = size("max_seq_len");
  if (naming == Naming::hugging_face) config.vocab_size = size("vocab_size");
  return counts.status();
}

}  // namespace qsf::convert
