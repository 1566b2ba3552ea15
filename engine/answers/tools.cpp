#include "answers/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include "qsf/base/try.h"

namespace qsf::answers {
namespace {

using json::Document;
using json::Kind;

constexpr std::uint32_t kDeepest = 8;  // references and alternatives in each other
constexpr std::array<std::pair<std::string_view, Types>, 7> kTypes{{{"null", types::kNull},
                                                                    {"boolean", types::kBoolean},
                                                                    {"integer", types::kInteger},
                                                                    {"number", types::kNumber},
                                                                    {"string", types::kString},
                                                                    {"array", types::kArray},
                                                                    {"object", types::kObject}}};

Types type_named(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, [](const auto& row) { return row.first; });
  return found == kTypes.end() ? types::kUnknown : found->second;
}

Types type_of(Kind kind) {
  switch (kind) {
    case Kind::null:
      return types::kNull;
    case Kind::boolean:
      return types::kBoolean;
    case Kind::number:
      return types::kNumber;
    case Kind::string:
      return types::kString;
    case Kind::array:
      return types::kArray;
    case Kind::object:
      break;
  }
  return types::kObject;
}

/// Returns the schema that a reference to a definition of `root` names, or 0.
std::uint32_t referred(const Document& d, std::uint32_t root, std::string_view reference) {
  for (const std::string_view definitions : {"$defs", "definitions"}) {
    if (!reference.starts_with("#/") || !reference.substr(2).starts_with(definitions)) continue;
    reference.remove_prefix(2 + definitions.size());
    const std::uint32_t list = d.member(root, definitions);
    return list != 0 && reference.starts_with('/') ? d.member(list, reference.substr(1)) : 0;
  }
  return 0;
}

/// Returns the types that a schema allows. `root` has the definitions that it may refer to.
Types schema_types(const Document& d, std::uint32_t root, std::uint32_t schema, std::uint32_t depth = 0) {
  if (depth > kDeepest || d[schema].kind != Kind::object) return types::kUnknown;
  if (const std::uint32_t type = d.member(schema, "type"); type != 0) {
    Types out = type_named(d[type].text);
    for (std::uint32_t i = d[type].first; i != 0; i = d[i].next) out |= type_named(d[i].text);
    return out;
  }
  if (const std::uint32_t constant = d.member(schema, "const"); constant != 0) return type_of(d[constant].kind);
  if (const std::uint32_t reference = d.member(schema, "$ref"); reference != 0) {
    const std::uint32_t to = referred(d, root, d[reference].text);
    return to != 0 ? schema_types(d, root, to, depth + 1) : types::kUnknown;
  }
  Types out = types::kUnknown;
  for (std::uint32_t i = d[schema].first; i != 0; i = d[i].next) {
    const std::string_view name = d[i].name;
    const bool lists_schemas = name == "anyOf" || name == "oneOf" || name == "allOf";
    if (!lists_schemas && name != "enum") continue;
    for (std::uint32_t j = d[i].first; j != 0; j = d[j].next) {
      out |= lists_schemas ? schema_types(d, root, j, depth + 1) : type_of(d[j].kind);
    }
  }
  return out;
}

/// Returns a copy of a text, or an empty text if the store is full.
std::string_view copied(std::string_view text, Store& store) {
  char* const copy = reinterpret_cast<char*>(store.take(text.size()));
  if (copy == nullptr) return {};
  std::ranges::copy(text, copy);
  return {copy, text.size()};
}

/// Returns the member `tools` of an object in JSON, or 0.
Result<std::uint32_t> tools_of(std::string_view text, Store& store, Document& document) {
  if (text.find("\"tools\"") == text.npos) return std::uint32_t{0};
  QSF_LET(read, Document::read(text, store));
  document = read;
  const std::uint32_t tools = document.member(Document::kRoot, "tools");
  return document[tools].kind == Kind::array ? tools : 0;
}

}  // namespace

Result<Tools> Tools::read(std::string_view values, std::string_view more, Store& store, Store& scratch) {
  Tools made;
  for (const std::string_view text : {more, values}) {
    Document document;
    QSF_LET(tools, tools_of(text, scratch, document));
    if (tools == 0) continue;
    const auto full = [&] {
      return make_error(ErrorCode::out_of_memory, "the tools need more than the {} bytes for parts of answers",
                        store.size());
    };
    if (!made.names_.init(store) || !made.parameters_.init(store)) return full();
    for (std::uint32_t i = document[tools].first; i != 0; i = document[i].next) {
      made.add(document, i, store);
    }
    if (store.full()) return full();
    break;
  }
  return made;
}

void Tools::add(const Document& d, std::uint32_t tool, Store& store) {
  const std::uint32_t inner = d.member(tool, "function");
  const std::uint32_t function = inner != 0 && d[inner].kind == Kind::object ? inner : tool;
  const std::uint32_t name = d.member(function, "name");
  if (name == 0 || d[name].kind != Kind::string || d[name].text.empty()) return;
  const std::uint32_t id = names_.add(copied(d[name].text, store));
  ++n_tools_;
  const std::uint32_t schema = d.member(function, "parameters");
  if (schema != 0) add_parameters(d, schema, id, store);
}

void Tools::add_parameters(const Document& d, std::uint32_t schema, std::uint32_t tool, Store& store) {
  const std::uint32_t properties = d.member(schema, "properties");
  if (properties == 0) return;
  for (std::uint32_t i = d[properties].first; i != 0; i = d[i].next) {
    parameters_.add({copied(d[i].name, store), tool, schema_types(d, schema, i)});
  }
}

bool Tools::has(std::string_view name) const {
  for (std::uint32_t i = 1; i <= n_tools_ && i < names_.size(); ++i) {
    if (names_[i] == name) return true;
  }
  return false;
}

Types Tools::types_of(std::string_view tool, std::string_view parameter) const {
  if (n_tools_ == 0) return types::kUnknown;
  for (std::uint32_t i = 1; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (p.name == parameter && names_[p.tool] == tool) return p.types;
  }
  return types::kUnknown;
}

}  // namespace qsf::answers
