// The tensors in a recipe's JSON: their names, and the part of each.
#include "converter/recipes/recipe_reader.h"

namespace qsf::convert {

/// Checks that a name has one {} in a layer and none elsewhere. It may have {expert} in tensors of experts.
Status RecipeReader::check_pattern(Role role, const std::string& name) const {
  std::size_t n = 0;
  for (std::size_t at = name.find("{}"); at != name.npos; at = name.find("{}", at + 2)) ++n;
  const std::size_t needed = rule_of(role).scope == RoleScope::layer ? 1 : 0;
  const std::size_t expert = name.find(kExpertMark);
  const bool many = of_experts(rule_of(role)) || of_streams(rule_of(role));
  if (expert != name.npos && (!many || name.find(kExpertMark, expert + 1) != name.npos)) {
    return wrong<std::string, std::string_view>("{:.80}: the name \"{:.60}\" of {} has {{expert}} in the wrong place",
                                                name, role_name(role));
  }
  // A stream is usually normalized at its start.
  const bool first = role == Role::stream_norm || role == Role::stream_norm_bias || role == Role::stream_bias;
  if (n == needed || (first && n == 0)) return {};
  return wrong<std::string, std::string_view, std::size_t, std::size_t>(
      "{:.80}: the name \"{:.60}\" of {} has {} times {{}}, not {}", name, role_name(role), n, needed);
}

Status RecipeReader::part(const Json& json, TensorPart& out) const {
  if (json.contains("transposed")) {
    QSF_LET(is, truth(json["transposed"], "transposed"));
    out.transposed = is;
  }
  for (const auto& [key, to] :
       {std::pair("plus_one", &out.plus_one), std::pair("flat", &out.flat), std::pair("minus_exp", &out.minus_exp),
        std::pair("partial", &out.partial), std::pair("turned_groups", &out.turned_groups)}) {
    if (!json.contains(key)) continue;
    QSF_LET(is, truth(json[key], key));
    *to = is;
  }
  if (out.flat && json.contains("rows")) return wrong("{:.80}: a tensor that is laid flat has no \"rows\"");
  if (json.contains("factors")) {
    QSF_LET(keys, words(json["factors"], "factors"));
    out.factors = std::move(keys);
  }
  if (json.contains("every")) {
    if (!json.contains("rows")) return wrong("{:.80}: \"every\" is possible with \"rows\" only");
    QSF_LET(every, row_sum(json["every"]));
    out.every = std::move(every);
  }
  const bool changes = out.transposed || out.plus_one || out.minus_exp || !out.factors.empty();
  if (out.turned_groups && (!json.contains("every") || changes)) {
    return wrong("{:.80}: \"turned_groups\" needs \"every\", and no other change");
  }
  if (!json.contains("rows")) return {};
  const Json& rows = json["rows"];
  if (!rows.is_array() || rows.size() != 2) {
    return wrong("{:.80}: \"rows\" must be a list of two: the first row and the one after the last");
  }
  QSF_LET(begin, row_sum(rows[0]));
  QSF_LET(end, row_sum(rows[1]));
  out.rows = std::pair(std::move(begin), std::move(end));
  return {};
}

/// Reads a name in GGUF's words, null for none, or an object with the part that holds there.
Status RecipeReader::in_gguf(const Json& json, TensorName& tensor) const {
  if (json.is_null()) {
    tensor.names.gguf.clear();
    return {};
  }
  if (!json.is_object()) {
    QSF_LET(name, word(json, "gguf"));
    tensor.names.gguf = std::move(name);
    return {};
  }
  QSF_TRY(check_keys(json, "gguf", [](const std::string& key) {
    return key != "gguf" && key != "use" && key != "also" && key != "spare" && key != "beside" && key != "without" &&
           std::ranges::find(kTensorKeys, key) != kTensorKeys.end();
  }));
  if (json.contains("name")) {
    QSF_LET(name, word(json["name"], "gguf"));
    tensor.names.gguf = std::move(name);
  }
  tensor.gguf_part.emplace();
  return part(json, *tensor.gguf_part);
}

Status RecipeReader::check_names(const TensorName& tensor) const {
  for (const std::string* name : {&tensor.names.hugging_face, &tensor.names.gguf, &tensor.beside, &tensor.without}) {
    if (!name->empty()) QSF_TRY(check_pattern(tensor.role, *name));
  }
  return {};
}

/// Reads the names of other tensors that a source must have, or must not have, for the line to count.
Status RecipeReader::neighbours(const Json& json, TensorName& tensor) const {
  for (const auto& [key, to] : {std::pair("beside", &tensor.beside), std::pair("without", &tensor.without)}) {
    if (!json.contains(key)) continue;
    QSF_LET(name, word(json[key], key));
    *to = std::move(name);
  }
  return {};
}

/// Returns another name of the tensor that `out` names: a text in Hugging Face's words, or an object with a part of its
/// own.
Result<TensorName> RecipeReader::another(const Json& json, TensorName out) const {
  out.names = {};
  if (!json.is_object()) {
    QSF_LET(name, word(json, "also"));
    out.names.hugging_face = std::move(name);
    return out;
  }
  QSF_TRY(check_keys(json, "also", [](const std::string& key) {
    return key != "use" && key != "also" && key != "spare" && std::ranges::find(kTensorKeys, key) != kTensorKeys.end();
  }));
  out = {out.role, {}};
  for (const auto& [key, to] : {std::pair("name", &out.names.hugging_face), std::pair("gguf", &out.names.gguf)}) {
    if (!json.contains(key)) continue;
    QSF_LET(name, word(json[key], key));
    *to = std::move(name);
  }
  QSF_TRY(neighbours(json, out));
  QSF_TRY(part(json, out.part));
  return out;
}

/// Reads a name in Hugging Face's words, null for none, or an object with names, a part and its use.
Status RecipeReader::tensor(Role role, const Json& json, Recipe& out) const {
  const auto line = std::ranges::find(out.tensors, role, &TensorName::role);
  if (json.is_null()) {
    if (line != out.tensors.end()) out.tensors.erase(line);
    return {};
  }
  TensorName tensor{role, line != out.tensors.end() ? line->names : Words{}, {}};
  if (!json.is_object()) {
    QSF_LET(name, word(json, role_name(role)));
    tensor.names.hugging_face = std::move(name);
  } else {
    QSF_TRY(check_keys(json, role_name(role), [](const std::string& key) {
      return std::ranges::find(kTensorKeys, key) != kTensorKeys.end();
    }));
    if (json.contains("name")) {
      QSF_LET(name, word(json["name"], "name"));
      tensor.names.hugging_face = std::move(name);
    }
    QSF_TRY(part(json, tensor.part));
    QSF_TRY(neighbours(json, tensor));
    if (json.contains("gguf")) QSF_TRY(in_gguf(json["gguf"], tensor));
    if (json.contains("spare")) {
      QSF_LET(is, truth(json["spare"], "spare"));
      tensor.spare = is;
    }
    if (json.contains("use")) {
      QSF_LET(requirement, choice<Requirement>(json["use"], "use"));
      out.uses.push_back({role, requirement});
    }
  }
  QSF_TRY(check_names(tensor));
  std::vector<TensorName> others;
  if (json.is_object() && json.contains("also")) {
    const Json& also = json["also"];
    if (!also.is_array() || also.size() > kMaxIgnored) return wrong("{:.80}: \"also\" must be a short list");
    for (const Json& item : also) {
      QSF_LET(other, another(item, tensor));
      QSF_TRY(check_names(other));
      others.push_back(std::move(other));
    }
  }
  if (line == out.tensors.end()) {
    out.tensors.push_back(std::move(tensor));
  } else {
    *line = std::move(tensor);
  }
  for (TensorName& other : others) out.tensors.push_back(std::move(other));
  return {};
}

Status RecipeReader::tensors(const Json& json, Recipe& out) const {
  const auto role_of = [](const std::string& name) {
    return std::ranges::find(kRoleRules, std::string_view(name), &RoleRule::name);
  };
  if (!json.is_object()) return wrong("{:.80}: \"tensors\" is not an object");
  for (const auto& [key, item] : json.items()) {
    const auto rule = role_of(key);
    if (rule == kRoleRules.end()) return wrong<std::string>("{:.80}: there is no role \"{:.60}\"", key);
    QSF_TRY(tensor(rule->role, item, out));
  }
  return {};
}

}  // namespace qsf::convert
