#include "converter/recipes/recipe_json.h"

#include "converter/recipes/recipe_reader.h"
#include "qsf/base/try.h"

namespace qsf::convert {

Result<Recipe> RecipeReader::read(const Json& json) {
  QSF_TRY(
      check_keys(json, "recipe", [](const std::string& key) { return std::ranges::find(kKeys, key) != kKeys.end(); }));
  Recipe out;
  if (!json.contains("name")) return wrong("{:.80}: the recipe has no \"name\"");
  QSF_LET(name, word(json["name"], "name"));
  out.name = std::move(name);
  if (json.contains("arch")) {
    QSF_LET(arch, choice<Arch>(json["arch"], "arch"));
    out.arch = arch;
  }
  if (json.contains("tensors")) QSF_TRY(tensors(json["tensors"], out));
  if (json.contains("sizes")) QSF_TRY(sizes(json["sizes"], out));
  if (json.contains("ignored")) {
    QSF_LET(endings, words(json["ignored"], "ignored"));
    out.ignored = std::move(endings);
  }
  if (json.contains("interleaved_rope")) {
    QSF_LET(namings, words(json["interleaved_rope"], "interleaved_rope"));
    for (const std::string& naming : namings) {
      QSF_LET(which, choice<Naming>(naming, "interleaved_rope"));
      (which == Naming::gguf ? out.gguf_interleaved : out.hugging_face_interleaved) = true;
    }
  }
  if (json.contains("also")) {
    QSF_LET(names, words(json["also"], "also"));
    out.also = std::move(names);
  }
  if (json.contains("gguf_name")) {
    QSF_LET(gguf_name, word(json["gguf_name"], "gguf_name"));
    out.gguf_name = std::move(gguf_name);
  }
  if (json.contains("prefixes")) {
    QSF_LET(prefixes, words(json["prefixes"], "prefixes"));
    out.prefixes = std::move(prefixes);
  }
  if (json.contains("expected")) QSF_TRY(expected(json["expected"], "expected", out.expected));
  if (json.contains("shared_kv")) {
    const Json& shared = json["shared_kv"];
    QSF_TRY(check_keys(shared, "shared_kv",
                       [](const std::string& key) { return key == "config" || key == "gguf" || key == "wide"; }));
    for (const auto& [key, to] : {std::pair("config", &out.shared_kv.hugging_face),
                                  std::pair("gguf", &out.shared_kv.gguf), std::pair("wide", &out.wide_shared)}) {
      if (!shared.contains(key)) continue;
      QSF_LET(name, word(shared[key], key));
      *to = std::move(name);
    }
  }
  if (json.contains("with_experts")) {
    QSF_LET(other, word(json["with_experts"], "with_experts"));
    out.with_experts = std::move(other);
  }
  if (json.contains("yarn_scores")) {
    QSF_LET(is, truth(json["yarn_scores"], "yarn_scores"));
    out.yarn_scores = is;
  }
  if (json.contains("rope_width")) {
    QSF_LET(key, word(json["rope_width"], "rope_width"));
    out.rope_width = std::move(key);
  }
  if (json.contains("layer_types")) QSF_TRY(layer_types(json["layer_types"], out.types));
  if (json.contains("no_rope")) {
    QSF_LET(which, choice<NoRope>(json["no_rope"], "no_rope"));
    out.no_rope = which;
  }
  for (const auto& [key, to] :
       {std::pair("full_every", &out.full_every), std::pair("no_rope_every", &out.no_rope_every),
        std::pair("gguf_scale_layers", &out.gguf_scale_layers)}) {
    if (!json.contains(key)) continue;
    QSF_LET(every, whole(json[key], key, 1, kMaxLayers));
    *to = every;
  }
  for (const auto& [key, to] :
       {std::pair("local_theta", &out.local_theta), std::pair("default_theta", &out.default_theta)}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_number()) return wrong<std::string_view>("{:.80}: \"{}\" must be a number", key);
    *to = json[key].get<double>();
  }
  if (json.contains("window_rule")) {
    QSF_LET(rule, choice<WindowRule>(json["window_rule"], "window_rule"));
    out.window = rule;
  }
  for (const auto& [key, to] :
       {std::pair("default_window", &out.default_window), std::pair("gguf_window", &out.gguf_window)}) {
    if (!json.contains(key)) continue;
    QSF_LET(window, whole(json[key], key, 0, kMaxSeqLen));
    *to = window;
  }
  QSF_TRY(layers(json, out.layers));
  return out;
}

Result<Recipe> read_recipe(const Json& json, std::string_view file) {
  const Json* like = find(json, "like");
  if (!like) return RecipeReader(file).read(json);
  const std::string* name = as_text(*like);
  for (const auto& [other, text] : recipe_texts()) {
    QSF_LET(merged, parse_json(text, other));
    if (!name || !merged.contains("name") || merged["name"] != *name || merged.contains("like")) continue;
    merged.merge_patch(json);
    merged.erase("like");
    return RecipeReader(file).read(merged);
  }
  return make_error(ErrorCode::bad_input, "{:.80}: \"like\" must name a recipe that is compiled in", file);
}

}  // namespace qsf::convert
