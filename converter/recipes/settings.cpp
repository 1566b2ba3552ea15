#include "converter/recipes/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <type_traits>

#include "converter/recipes/enumerators.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

template <class E>
std::optional<double> number_named(std::string_view name) {
  const std::optional<E> value = enumerator_named<E>(name);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

struct ActivationName {
  std::string_view name;
  Activation activation;
};
constexpr std::array kHuggingFaceActivations{
    ActivationName{"silu", Activation::silu},      ActivationName{"swish", Activation::silu},
    ActivationName{"gelu", Activation::gelu_erf},  ActivationName{"gelu_new", Activation::gelu},
    ActivationName{"gelu_fast", Activation::gelu}, ActivationName{"gelu_pytorch_tanh", Activation::gelu},
    ActivationName{"relu", Activation::relu},      ActivationName{"relu2", Activation::relu2},
};

std::optional<double> activation_number(std::string_view name) {
  const std::optional<Activation> activation = activation_named(name);
  return activation ? std::optional(static_cast<double>(*activation)) : std::nullopt;
}

template <class T>
KeyForm form_of(const LayerKey& key) {
  KeyForm form{key};
  if constexpr (std::is_same_v<T, Activation>) form.number_in = activation_number;
  form.real = std::is_floating_point_v<T>;
  if constexpr (std::is_enum_v<T>) {
    form.number_named = number_named<T>;
    form.names = enumerator_list<T>;
  }
  return form;
}

template <class Forms>
auto adder(Forms& forms) {
  return [&forms](const LayerKey& key, const auto& member) {
    forms.push_back(form_of<std::remove_cvref_t<decltype(member)>>(key));
  };
}

template <class Member>
void assign(Member& member, double number) {
  if constexpr (std::is_enum_v<Member>) {
    member = static_cast<Member>(static_cast<std::underlying_type_t<Member>>(number));
  } else {
    member = static_cast<Member>(number);
  }
}

std::string expected(const KeyForm& form) {
  if (form.names) return "one of " + form.names();
  std::string text = form.real ? "a number" : "a whole number";
  char range[64];
  std::snprintf(range, sizeof range, " from %.9g to %.9g", form.key.least, form.key.most);
  return text + range;
}

/// The configuration of a value, and the words of its errors.
struct Source {
  const Recipe& recipe;
  Naming naming;
  const Lookup& lookup;
  std::string_view file;
};

/// Returns the number that multiplies a value; 1 if the recipe names none.
Result<double> factor_of(const Value& value, const KeyForm& form, const Source& source) {
  const std::string& key = value.times.in(source.naming);
  if (key.empty()) return 1;
  const Json found = source.lookup(key);
  QSF_LET(read, read_value(found.is_null() ? Json(1) : found, form, source.file, source.lookup.in_file(key)));
  return value.times_power == 1 ? read : exact::pow(read, value.times_power);
}

/// Returns the number that is added to a value; 0 if the recipe names none.
Result<double> added_to(const Value& value, const KeyForm& form, const Source& source) {
  const std::string& key = value.plus.in(source.naming);
  if (key.empty()) return 0;
  return read_value(source.lookup(key), form, source.file, source.lookup.in_file(key));
}

/// Returns the number that divides a value; 1 if the recipe names none.
Result<double> divisor_of(const Value& value, const Source& source) {
  const std::string& key = value.over.in(source.naming);
  if (key.empty()) return 1;
  const Json over = source.lookup(key);
  if (over.is_number() && over != 0) return over.get<double>();
  return make_error(ErrorCode::bad_input, "{}: \"{:.60}\" is no number that could divide another", source.file,
                    source.lookup.in_file(key));
}

/// Returns the quantile z of the normal distribution, of which a part p is below z. p must be above 0.5 and below 1.
double normal_quantile(double p) {
  const auto below = [](double z) {
    double term = z, sum = z;
    for (int i = 3; term > sum * 1e-17; i += 2) sum += term *= z * z / i;
    return 0.5 + sum * exact::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  };
  double least = 0, most = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2;
    (below(middle) < p ? least : most) = middle;
  }
  return (least + most) / 2;
}

/// Returns the quantile that a source states as its form of it.
Result<double> quantile_of(double number, const Source& source, std::string_view key) {
  if (source.naming == Naming::gguf) return std::max(number, 0.0);
  if (number == 0) return 0;
  if (number > 0.5 && number < 1) return normal_quantile(number);
  return make_error(ErrorCode::unsupported, "{}: \"{:.60}\" is {}; it must be 0, or above 0.5 and below 1", source.file,
                    key, number);
}

Result<double> resolve_value(const Value& value, const KeyForm& form, const Source& source) {
  const std::string& key = value.keys.in(source.naming);
  const std::string_view file = source.file;
  Json found = key.empty() ? Json(nullptr) : source.lookup(key);
  if (source.naming == Naming::hugging_face) {
    for (const std::string& other : value.also) found = found.is_null() ? source.lookup(other) : found;
  }
  if (found.is_array() && !found.empty() && std::ranges::count(found, found.front()) == std::ssize(found)) {
    found = Json(found.front());  // the same in all layers
  }
  if (!value.named.empty() && !found.is_null() && !found.is_boolean()) {
    const std::string* text = as_text(found);
    char digits[32] = "?";
    if (found.is_number()) std::snprintf(digits, sizeof digits, "%.17g", found.get<double>());
    const std::string name = text ? *text : digits;
    for (const std::string& wanted : {name, std::string()}) {
      const auto named = std::ranges::find(value.named, wanted, &std::pair<std::string, double>::first);
      if (named != value.named.end()) return named->second;
    }
    return make_error(ErrorCode::unsupported, "{}: \"{:.60}\" is {:.40}, which is not supported", file,
                      source.lookup.in_file(key), name);
  }
  std::optional<double> number = value.number;
  if (source.naming == Naming::gguf && value.gguf_number) {
    QSF_LET(factor, factor_of(value, form, source));
    QSF_LET(divisor, divisor_of(value, source));
    number = *value.gguf_number * factor / divisor;
  }
  if (const std::string* word = as_text(found); word && form.number_in) {
    number = form.number_in(*word);
    if (!number) {
      return make_error(ErrorCode::unsupported, "{}: the {} \"{:.40}\" is not supported", file, form.key.name, *word);
    }
  } else if (!found.is_null()) {
    QSF_LET(divisor, divisor_of(value, source));
    if (divisor != 1 && found.is_number()) found = found.get<double>() / divisor;
    if (value.quantile && found.is_number()) {
      QSF_LET(quantile, quantile_of(found.get<double>(), source, source.lookup.in_file(key)));
      found = quantile;
    }
    QSF_LET(read, read_value(found, form, file, source.lookup.in_file(key)));
    QSF_LET(factor, factor_of(value, form, source));
    QSF_LET(more, added_to(value, form, source));
    number = read * factor + more;
    if ((factor != 1 || more != 0) && !form.holds(*number))
      return read_value(*number, form, file, source.lookup.in_file(key)).error();
    if (value.power != 1) {
      number = exact::pow(*number, value.power);
      if (!form.holds(*number)) return read_value(*number, form, file, source.lookup.in_file(key)).error();
    }
  }
  if (!number && key.empty()) {
    return make_error(ErrorCode::bad_input, "{}: the recipe {:.60} does not say where this source has \"{}\"", file,
                      source.recipe.name, form.key.name);
  }
  if (!number) {
    return make_error(ErrorCode::bad_input, "{}: \"{:.60}\" is missing, which the recipe {:.60} takes as {}", file,
                      source.lookup.in_file(key), source.recipe.name, form.key.name);
  }
  return *number;
}

Result<std::vector<Setting>> resolve_all(std::span<const Setting> settings, std::span<const KeyForm> forms,
                                         const Source& source) {
  std::vector<Setting> out;
  for (const Setting& setting : settings) {
    QSF_LET(number, resolve_value(setting.value, forms[setting.key], source));
    out.push_back({setting.key, {number, {}}});
  }
  return out;
}

constexpr std::string_view kFloat = "__float__";

/// Writes numbers that are not finite as transformers 5 does, so that what older versions wrote compares as equal.
void write_infinite(Json& json) {
  if (json.is_structured()) {
    for (Json& element : json) write_infinite(element);
  } else if (json.is_number_float() && !std::isfinite(json.get<double>())) {
    json = {{kFloat, shown(json)}};
  }
}

}  // namespace

bool KeyForm::holds(double number) const {
  return number >= key.least && number <= key.most && (real || number == std::floor(number));
}

std::optional<Activation> activation_named(std::string_view name) {
  for (const ActivationName& known : kHuggingFaceActivations) {
    if (known.name == name) return known.activation;
  }
  return {};
}

Setting layer_setting(std::string_view name, double number) {
  const auto key = std::ranges::find(kLayerKeys, name, &LayerKey::name);
  return {static_cast<std::size_t>(key - kLayerKeys.begin()), {number}};
}

Setting model_setting(std::string_view name, double number) {
  const auto key = std::ranges::find(kModelKeys, name, &LayerKey::name);
  return {static_cast<std::size_t>(key - kModelKeys.begin()), {number}};
}

const KeyForm& layers_form() {
  static constexpr KeyForm kForm{{0, "layers", 0, kMaxLayers}};
  return kForm;
}

std::span<const KeyForm> size_forms() {
  static const std::vector<KeyForm> kForms = [] {
    std::vector<KeyForm> forms;
    for (const LayerKey& key : kSizes) forms.push_back(form_of<std::uint32_t>(key));
    return forms;
  }();
  return kForms;
}

std::span<const KeyForm> layer_forms() {
  static const std::vector<KeyForm> kForms = [] {
    std::vector<KeyForm> forms;
    const LayerKind kind;
    visit_layer_keys(kind, adder(forms));
    return forms;
  }();
  return kForms;
}

std::span<const KeyForm> model_forms() {
  static const std::vector<KeyForm> kForms = [] {
    std::vector<KeyForm> forms;
    const ModelKind kind;
    visit_model_keys(kind, adder(forms));
    return forms;
  }();
  return kForms;
}

Lookup lookup_in(const Json& json) {
  return {.value = [&json](const std::string& key) {
    const Json* found = find(json, key);
    const std::size_t point = key.find('.');
    const Json* part = found || point == key.npos ? nullptr : find(json, key.substr(0, point));
    const std::string rest = part ? key.substr(point + 1) : "";
    if (part) found = find(*part, rest);
    if (part && part->is_array() && rest.size() == 1 && rest[0] >= '0' &&
        static_cast<std::size_t>(rest[0] - '0') < part->size()) {
      found = &(*part)[static_cast<std::size_t>(rest[0] - '0')];
    }
    return found ? *found : Json(nullptr);
  }};
}

std::string said_otherwise(const Lookup& lookup, const Expected& expected) {
  Json found = lookup(expected.key);
  if (found.is_null()) return {};
  write_infinite(found);
  const std::string value = found.dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::ranges::find(expected.values, value) != expected.values.end() ? std::string() : value;
}

std::string shown_value(const Expected& expected) {
  std::string value = expected.values.front();
  const std::string begin = "{\"" + std::string(kFloat) + "\":\"", end = "\"}";
  for (std::size_t at = 0; (at = value.find(begin, at)) != value.npos;) {
    const std::size_t word_end = value.find(end, at);
    if (word_end == value.npos) break;
    value.erase(word_end, end.size()).erase(at, begin.size());
  }
  return value;
}

Result<double> read_value(const Json& json, const KeyForm& form, std::string_view file, std::string_view key) {
  std::optional<double> number;
  if (const std::string* name = as_text(json)) {
    if (form.number_named) number = form.number_named(*name);
  } else if (json.is_boolean()) {
    if (!form.real && form.key.most == 1) number = json.get<bool>() ? 1 : 0;
  } else if (json.is_number()) {
    if (const double value = json.get<double>(); form.holds(value)) number = value;
  }
  if (number) return *number;
  return make_error(ErrorCode::bad_input, "{:.80}: \"{:.60}\" is {:.40}; it must be {}", file,
                    key.empty() ? form.key.name : key, shown(json), expected(form));
}

Result<std::vector<Setting>> resolve_layer(std::span<const Setting> settings, const Recipe& recipe, Naming naming,
                                           const Lookup& lookup, std::string_view file) {
  return resolve_all(settings, layer_forms(), {recipe, naming, lookup, file});
}

Result<LayerRules> resolve(const Recipe& recipe, Naming naming, const Lookup& lookup, std::string_view file) {
  const Source source{recipe, naming, lookup, file};
  const auto all = [&](std::span<const Setting> settings, std::span<const KeyForm> forms) {
    return resolve_all(settings, forms, source);
  };
  LayerRules out;
  std::vector<Setting> same;
  for (const Setting& setting : recipe.layers.every) {
    if (!setting.value.by_layer) same.push_back(setting);
  }
  QSF_LET(model, all(recipe.layers.model, model_forms()));
  QSF_LET(every, all(same, layer_forms()));
  out.model = std::move(model);
  out.every = std::move(every);
  for (const auto& [settings, to] :
       {std::pair(&recipe.layers.windowed, &out.windowed), std::pair(&recipe.layers.unrotated, &out.unrotated)}) {
    std::vector<Setting> stated;
    for (const Setting& setting : *settings) {  // missing: as in other layers
      if (setting.value.number || !setting.value.keys.in(naming).empty()) stated.push_back(setting);
    }
    QSF_LET(of_these, all(stated, layer_forms()));
    *to = std::move(of_these);
  }
  for (const LayerException& exception : recipe.layers.exceptions) {
    QSF_LET(settings, all(exception.settings, layer_forms()));
    out.exceptions.push_back(
        {exception.layers, exception.every, exception.from, {}, exception.with, std::move(settings)});
    if (!exception.first) continue;
    QSF_LET(n, resolve_value(*exception.first, layers_form(), source));
    for (std::uint32_t layer = 0; layer < n; ++layer) out.exceptions.back().layers.push_back(layer);
  }
  return out;
}

Result<std::shared_ptr<const Recipe>> recipe_with_experts(std::shared_ptr<const Recipe> recipe, Naming naming,
                                                          const Lookup& lookup) {
  if (recipe->with_experts.empty()) return recipe;
  QSF_LET(other, recipe_for(recipe->with_experts));
  for (const Setting& setting : other->layers.every) {
    if (kLayerKeys[setting.key].name != "n_experts") continue;
    const std::string& key = setting.value.keys.in(naming);
    const Json found = key.empty() ? Json(nullptr) : lookup(key);
    if (found.is_number() && found != 0) return other;
  }
  return recipe;
}

void apply_settings(std::span<const Setting> settings, LayerKind& kind) {
  const bool whole = kind.rope_dims == kind.head_dim;
  bool rope_dims_set = false;
  for (const Setting& setting : settings) {
    std::size_t i = 0;
    visit_layer_keys(kind, [&](const LayerKey&, auto& member) {
      if (i++ == setting.key) assign(member, *setting.value.number);
    });
    rope_dims_set = rope_dims_set || kLayerKeys[setting.key].name == "rope_dims";
  }
  if (whole && !rope_dims_set) kind.rope_dims = kind.head_dim;
}

void apply_settings(std::span<const Setting> settings, ModelKind& kind) {
  for (const Setting& setting : settings) {
    std::size_t i = 0;
    visit_model_keys(kind, [&](const LayerKey&, auto& member) {
      if (i++ == setting.key) assign(member, *setting.value.number);
    });
  }
}

}  // namespace qsf::convert
