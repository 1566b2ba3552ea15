// The reader of a recipe's JSON, key by key.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <type_traits>

#include "converter/recipes/enumerators.h"
#include "converter/recipes/recipe_json.h"
#include "converter/recipes/settings.h"
#include "qsf/base/try.h"

namespace qsf::convert {

inline constexpr std::size_t kMaxName = 200;        // of a tensor, a key or the recipe itself
inline constexpr std::size_t kMaxExceptions = 255;  // the most kinds of layers
inline constexpr std::size_t kMaxTerms = 8;
inline constexpr std::size_t kMaxIgnored = 64;
inline constexpr std::uint32_t kMaxFactor = kMaxDim;

/// Reads one recipe. Errors name its file and the key.
class RecipeReader {
 public:
  explicit RecipeReader(std::string_view file) : file_(file) {}

  Result<Recipe> read(const Json& json);

 private:
  template <class... Args>
  Error wrong(FormatString<std::string_view, std::type_identity_t<Args>...> sentence, const Args&... args) const {
    return make_error(ErrorCode::bad_input, sentence, file_, args...);
  }

  /// Returns an error if `json` is not an object or has other keys than these.
  template <class Known>
  Status check_keys(const Json& json, std::string_view what, Known known) const {
    if (!json.is_object()) return wrong<std::string_view>("{:.80}: \"{}\" is not an object", what);
    for (const auto& [key, value] : json.items()) {
      if (!known(key)) {
        return wrong<std::string_view, std::string>("{:.80}: \"{}\" has no key \"{:.60}\"", what, key);
      }
    }
    return {};
  }

  Result<std::string> word(const Json& json, std::string_view what) const {
    const std::string* text = as_text(json);
    const auto printable = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
    if (text && !text->empty() && text->size() <= kMaxName && std::ranges::all_of(*text, printable)) return *text;
    return wrong<std::string_view, std::size_t>("{:.80}: \"{:.60}\" must be a text of at most {} characters", what,
                                                std::size_t{kMaxName});
  }

  Result<bool> truth(const Json& json, std::string_view what) const {
    if (json.is_boolean()) return json.get<bool>();
    return wrong<std::string_view>("{:.80}: \"{:.60}\" must be true or false", what);
  }

  template <class E>
  Result<E> choice(const Json& json, std::string_view what) const {
    const std::string* text = as_text(json);
    const std::optional<E> value = text ? enumerator_named<E>(*text) : std::nullopt;
    if (value) return *value;
    return wrong<std::string_view, std::string>("{:.80}: \"{:.60}\" must be one of {}", what, enumerator_list<E>());
  }

  Result<std::uint32_t> whole(const Json& json, std::string_view what, std::uint32_t least, std::uint32_t most) const {
    const std::optional<std::uint64_t> number = as_u64(json);
    if (number && *number >= least && *number <= most) return static_cast<std::uint32_t>(*number);
    return wrong<std::string_view, std::uint32_t, std::uint32_t>(
        "{:.80}: \"{:.60}\" must be a whole number from {} to {}", what, least, most);
  }

  Result<std::vector<std::string>> one_word(const Json& json, std::string_view what) const {
    QSF_LET(text, word(json, what));
    return std::vector{text};
  }

  /// Reads a list of texts.
  Result<std::vector<std::string>> words(const Json& json, std::string_view what) const {
    std::vector<std::string> out;
    if (!json.is_array() || json.size() > kMaxIgnored) {
      return wrong<std::string_view>("{:.80}: \"{:.60}\" must be a short list of texts", what);
    }
    for (const Json& item : json) {
      QSF_LET(text, word(item, what));
      out.push_back(std::move(text));
    }
    return out;
  }

  /// Reads a value, or {"config": key or keys, "gguf": key or number, "default": value, "power": number}. Other fields
  /// of `out` do not change.
  Status value(const Json& json, const KeyForm& form, Value& out) const {
    if (!json.is_object()) {
      QSF_LET(number, read_value(json, form, file_));
      out = {number, {}};
      return {};
    }
    QSF_TRY(check_keys(json, form.key.name,
                       [](const std::string& key) { return std::ranges::find(kValueKeys, key) != kValueKeys.end(); }));
    if (!json.contains("config") && !json.contains("gguf")) {
      return wrong<std::string_view>("{:.80}: \"{}\" has neither \"config\" nor \"gguf\"", form.key.name);
    }
    if (json.contains("config")) {
      QSF_LET(names, json["config"].is_array() ? words(json["config"], "config") : one_word(json["config"], "config"));
      if (names.empty()) return wrong("{:.80}: a list of keys is empty");
      out.keys.hugging_face = names.front();
      out.also.assign(names.begin() + 1, names.end());
    }
    if (json.contains("gguf") && !as_text(json["gguf"])) {
      QSF_LET(number, read_value(json["gguf"], form, file_));
      out.gguf_number = number;
    } else if (json.contains("gguf")) {
      QSF_LET(name, word(json["gguf"], "gguf"));
      out.keys.gguf = std::move(name);
    }
    for (const auto& [key, to] : {std::pair("rows_of", &out.rows_of), std::pair("over", &out.over.hugging_face),
                                  std::pair("gguf_over", &out.over.gguf), std::pair("plus", &out.plus.hugging_face),
                                  std::pair("gguf_plus", &out.plus.gguf), std::pair("times", &out.times.hugging_face),
                                  std::pair("gguf_times", &out.times.gguf)}) {
      if (!json.contains(key)) continue;
      QSF_LET(name, word(json[key], key));
      *to = std::move(name);
    }
    for (const auto& [key, to] : {std::pair("power", &out.power), std::pair("times_power", &out.times_power)}) {
      if (!json.contains(key)) continue;
      if (!form.real || !json[key].is_number()) return wrong("{:.80}: a \"{}\" must be a number, of a number", key);
      *to = json[key].get<double>();
    }
    if (json.contains("named")) {
      if (!json["named"].is_object()) return wrong("{:.80}: \"named\" must be an object");
      for (const auto& [name, of_name] : json["named"].items()) {
        QSF_LET(number, read_value(of_name, form, file_));
        out.named.emplace_back(name, number);
      }
    }
    if (json.contains("less")) {
      QSF_LET(less, whole(json["less"], "less", 1, kMaxSeqLen));
      out.less = less;
    }
    for (const auto& [key, to] : {std::pair("by_layer", &out.by_layer), std::pair("quantile", &out.quantile)}) {
      if (!json.contains(key)) continue;
      QSF_LET(is, truth(json[key], key));
      *to = is;
    }
    if (json.contains("one_where")) QSF_TRY(expected(json["one_where"], "one_where", out.one_where));
    if (!json.contains("default")) return {};
    const Json& fallback = json["default"];
    if (const std::string* text = as_text(fallback); text && text->ends_with(" dim")) {
      QSF_LET(sum, row_sum(fallback));
      if (sum.terms.size() != 1) return wrong("{:.80}: a \"default\" is a number, or a number of dim");
      out.times_dim = sum.terms.front().factor;
      return {};
    }
    QSF_LET(number, read_value(fallback, form, file_));
    out.number = number;
    return {};
  }

  Result<std::vector<Setting>> settings(const Json& json, std::span<const KeyForm> forms, std::string_view what,
                                        std::string_view other_key = {}) const {
    const auto place = [&](const std::string& key) {
      return std::ranges::find(forms, std::string_view(key), [](const KeyForm& f) { return f.key.name; });
    };
    QSF_TRY(
        check_keys(json, what, [&](const std::string& key) { return key == other_key || place(key) != forms.end(); }));
    std::vector<Setting> out;
    for (const auto& [key, item] : json.items()) {
      if (key == other_key) continue;
      Setting setting{static_cast<std::size_t>(place(key) - forms.begin()), {}};
      QSF_TRY(value(item, forms[setting.key], setting.value));
      if (setting.value.by_layer && what != "layer") return wrong("{:.80}: \"by_layer\" is of keys of \"layer\" only");
      out.push_back(std::move(setting));
    }
    return out;
  }

  Result<LayerException> exception(const Json& json) const {
    constexpr std::string_view kLayers = "layers";
    LayerException out;
    QSF_LET(read, settings(json, layer_forms(), "exceptions", kLayers));
    out.settings = std::move(read);
    const Json* layers = find(json, kLayers);
    if (layers && layers->is_array() && layers->size() <= kMaxLayers) {
      for (const Json& item : *layers) {
        QSF_LET(layer, whole(item, kLayers, 0, kMaxLayers - 1));
        out.layers.push_back(layer);
      }
      return out;
    }
    if (!layers || !layers->is_object()) {
      return wrong<std::string_view>("{:.80}: an exception's \"{}\" must be a list of layers, or say every how many",
                                     kLayers);
    }
    if (layers->contains("first")) {
      QSF_TRY(check_keys(*layers, kLayers, [](const std::string& key) { return key == "first"; }));
      QSF_TRY(value((*layers)["first"], layers_form(), out.first.emplace()));
      return out;
    }
    if (layers->contains("with")) {
      QSF_TRY(check_keys(*layers, kLayers, [](const std::string& key) { return key == "with"; }));
      QSF_LET(name, word((*layers)["with"], "with"));
      const auto rule = std::ranges::find(kRoleRules, std::string_view(name), &RoleRule::name);
      if (rule == kRoleRules.end() || rule->scope != RoleScope::layer) {
        return wrong<std::string>("{:.80}: layers have no role \"{:.60}\"", name);
      }
      out.with = rule->role;
      return out;
    }
    QSF_TRY(check_keys(*layers, kLayers, [](const std::string& key) { return key == "every" || key == "from"; }));
    if (!layers->contains("every")) return wrong<std::string_view>("{:.80}: \"{}\" has no \"every\"", kLayers);
    QSF_LET(every, whole((*layers)["every"], "every", 1, kMaxLayers));
    out.every = every;
    if (layers->contains("from")) {
      QSF_LET(from, whole((*layers)["from"], "from", 0, kMaxLayers - 1));
      out.from = from;
    }
    return out;
  }

  /// Reads a number, or a sum such as "heads + 2 kv_heads".
  Result<RowSum> row_sum(const Json& json) const {
    RowSum out;
    if (!as_text(json)) {
      QSF_LET(number, whole(json, "rows", 0, std::numeric_limits<std::uint32_t>::max()));
      out.terms.push_back({number, Extent::one});
      return out;
    }
    const std::string& text = *as_text(json);
    const auto trimmed = [](std::string_view part) {
      const std::size_t begin = part.find_first_not_of(' ');
      return begin == part.npos ? std::string_view() : part.substr(begin, part.find_last_not_of(' ') + 1 - begin);
    };
    for (std::string_view rest = text;;) {
      const std::size_t plus = rest.find('+');
      std::string_view term = trimmed(rest.substr(0, plus));
      std::uint32_t factor = 1;
      const auto [stop, error] = std::from_chars(term.data(), term.data() + term.size(), factor);
      if (error == std::errc()) term = trimmed(term.substr(static_cast<std::size_t>(stop - term.data())));
      const std::optional<Extent> extent = enumerator_named<Extent>(term);
      if (!extent || error == std::errc::result_out_of_range || factor > kMaxFactor || out.terms.size() == kMaxTerms) {
        return wrong<std::string, std::string>("{:.80}: \"{:.40}\" is no sum of rows: its sizes are {}", text,
                                               enumerator_list<Extent>());
      }
      out.terms.push_back({factor, *extent});
      if (plus == rest.npos) return out;
      rest = rest.substr(plus + 1);
    }
  }

  /// Reads keys of config.json with a value or a list of them.
  Status expected(const Json& json, std::string_view what, std::vector<Expected>& out) const {
    if (!json.is_object()) return wrong<std::string_view>("{:.80}: \"{}\" is not an object", what);
    for (const auto& [key, value] : json.items()) {
      out.push_back({key, {}});
      if (value.is_array() && value.empty()) return wrong<std::string>("{:.80}: \"{:.60}\" lists no value", key);
      for (const Json& one : value.is_array() ? value : Json::array({value})) out.back().values.push_back(one.dump());
    }
    return {};
  }

  Status tensors(const Json& json, Recipe& out) const;  // recipe_tensors.cpp
  Status tensor(Role role, const Json& json, Recipe& out) const;
  Result<TensorName> another(const Json& json, TensorName out) const;
  Status in_gguf(const Json& json, TensorName& tensor) const;
  Status neighbours(const Json& json, TensorName& tensor) const;
  Status part(const Json& json, TensorPart& out) const;
  Status check_names(const TensorName& tensor) const;
  Status check_pattern(Role role, const std::string& name) const;

  Status sizes(const Json& json, Recipe& out) const {
    QSF_LET(read, settings(json, size_forms(), "sizes"));
    for (Setting& setting : read) {
      if (setting.value.gguf_number) {
        return wrong<std::string_view>("{:.80}: the size \"{}\" is a key in GGUF, no number",
                                       size_forms()[setting.key].key.name);
      }
      Value& size = out.sizes[setting.key];
      if (setting.value.keys.hugging_face.empty() && setting.value.keys.gguf.empty()) {
        size = std::move(setting.value);
        continue;
      }
      for (const Naming naming : {Naming::hugging_face, Naming::gguf}) {
        std::string& key = setting.value.keys.in(naming);
        if (!key.empty()) size.keys.in(naming) = std::move(key);
      }
      size.number = setting.value.number;
      size.times_dim = setting.value.times_dim;
      size.rows_of = std::move(setting.value.rows_of);
      size.also = std::move(setting.value.also);
      size.one_where = std::move(setting.value.one_where);
      size.less = setting.value.less;
      size.plus = std::move(setting.value.plus);
    }
    return {};
  }

  Status layers(const Json& json, LayerRules& out) const {
    if (json.contains("model")) {
      QSF_LET(read, settings(json["model"], model_forms(), "model"));
      out.model = std::move(read);
    }
    if (json.contains("layer")) {
      QSF_LET(read, settings(json["layer"], layer_forms(), "layer"));
      out.every = std::move(read);
    }
    for (const auto& [key, to] : {std::pair("windowed", &out.windowed), std::pair("unrotated", &out.unrotated)}) {
      if (!json.contains(key)) continue;
      QSF_LET(read, settings(json[key], layer_forms(), key));
      *to = std::move(read);
    }
    if (!json.contains("exceptions")) return {};
    const Json& exceptions = json["exceptions"];
    if (!exceptions.is_array() || exceptions.size() > kMaxExceptions) {
      return wrong<std::size_t>("{:.80}: \"exceptions\" must be a list of at most {}", std::size_t{kMaxExceptions});
    }
    for (const Json& item : exceptions) {
      QSF_LET(read, exception(item));
      out.exceptions.push_back(std::move(read));
    }
    return {};
  }

  /// Reads {"config": keys, "gguf": keys, "listed": type, "others": type, "by_layer": flag, "types":
  /// {type: settings}}.
  Status layer_types(const Json& json, LayerTypes& out) const {
    QSF_TRY(check_keys(json, "layer_types", [](const std::string& key) {
      return key == "config" || key == "gguf" || key == "listed" || key == "others" || key == "types" ||
             key == "by_layer";
    }));
    for (const auto& [key, to] : {std::pair("config", &out.hugging_face), std::pair("gguf", &out.gguf)}) {
      if (!json.contains(key)) continue;
      QSF_LET(keys, words(json[key], key));
      *to = std::move(keys);
    }
    const Json* types = find(json, "types");
    if (!types || !types->is_object() || types->empty() || types->size() > kMaxExceptions) {
      return wrong("{:.80}: \"layer_types\" has no \"types\"");
    }
    for (const auto& [name, item] : types->items()) {
      QSF_LET(read, settings(item, layer_forms(), name));
      out.types.push_back({name, std::move(read)});
    }
    if (json.contains("by_layer")) {
      QSF_LET(by_layer, truth(json["by_layer"], "by_layer"));
      out.by_layer = by_layer;
    }
    for (const auto& [key, to] : {std::pair("listed", &out.listed), std::pair("others", &out.others)}) {
      if (!json.contains(key)) continue;
      QSF_LET(name, word(json[key], key));
      if (!types->contains(name)) return wrong<std::string>("{:.80}: there is no layer type \"{:.60}\"", name);
      *to = std::move(name);
    }
    return {};
  }

  static constexpr auto kValueKeys = std::to_array<std::string_view>(
      {"config", "gguf", "default", "power", "rows_of", "one_where", "over", "gguf_over", "times", "gguf_times",
       "times_power", "less", "plus", "gguf_plus", "named", "by_layer", "quantile"});
  static constexpr auto kTensorKeys = std::to_array<std::string_view>(
      {"name", "gguf", "rows", "every", "use", "plus_one", "transposed", "flat", "minus_exp", "also", "spare", "beside",
       "without", "partial", "turned_groups", "factors"});
  static constexpr auto kKeys = std::to_array<std::string_view>(
      {"layer_types",   "name",           "arch",         "tensors",    "ignored",    "interleaved_rope",
       "window_rule",   "default_window", "layer",        "exceptions", "model",      "sizes",
       "also",          "gguf_name",      "prefixes",     "expected",   "full_every", "no_rope",
       "no_rope_every", "local_theta",    "with_experts", "windowed",   "shared_kv",  "gguf_scale_layers",
       "default_theta", "rope_width",     "yarn_scores",  "unrotated",  "gguf_window"});

  std::string_view file_;
};

}  // namespace qsf::convert
