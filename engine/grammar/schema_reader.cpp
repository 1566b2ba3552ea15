#include <algorithm>
#include <array>
#include <optional>

#include "grammar/formats.h"
#include "grammar/regex_reader.h"
#include "grammar/schema_parts.h"
#include "qsf/base/try.h"

namespace qsf::grammar {
namespace {

using json::Kind;
using json::Number;

/// Keywords that are refused, unless their value is one that excludes nothing.
constexpr std::array<std::string_view, 5> kRefused{"$dynamicRef", "$recursiveRef", "uniqueItems",
                                                   "unevaluatedProperties", "unevaluatedItems"};

/// Keywords that drafts before the one with this number do not know: to them they are remarks.
struct Since {
  std::string_view keyword;
  std::uint32_t draft;
};
constexpr std::uint32_t kDraft2019 = 2019;
constexpr std::array kSince{Since{"const", 6},
                            Since{"contains", 6},
                            Since{"propertyNames", 6},
                            Since{"if", 7},
                            Since{"dependentRequired", kDraft2019},
                            Since{"dependentSchemas", kDraft2019},
                            Since{"minContains", kDraft2019},
                            Since{"maxContains", kDraft2019},
                            Since{"unevaluatedProperties", kDraft2019},
                            Since{"unevaluatedItems", kDraft2019},
                            Since{"prefixItems", kDraft2019}};

constexpr std::array<std::string_view, kTypes> kTypeNames{"null",   "false", "true",  "number",
                                                          "string", "array", "object"};

class SchemaReader {
 public:
  SchemaReader(const json::Document& document, Integers integers, Store& store, Terms& terms, Checks& checks,
               Schema& schema)
      : p_{document, store, terms, checks, schema, integers} {}

  Status read() {
    nodes_of_ = p_.store.take_values<std::uint32_t>(p_.d.size());
    if (!p_.s.init(p_.store) || !work_.init(p_.store) || !p_.list.init(p_.store) || !p_.by_name.init(p_.store) ||
        nodes_of_ == nullptr) {
      return p_.terms.error();
    }
    if (const std::uint32_t draft = p_.d.member(json::Document::kRoot, "$schema"); draft != 0) {
      if (p_.d[draft].kind != Kind::string) return SchemaParts::wrong("$schema", "a string");
      for (const std::uint32_t old : {4u, 6u, 7u}) {
        const char name[]{'d', 'r', 'a', 'f', 't', '-', '0', static_cast<char>('0' + old)};
        if (p_.d[draft].text.find(std::string_view(name, sizeof name)) != std::string_view::npos) draft_ = old;
      }
    }
    p_.s.root = node_of(json::Document::kRoot);
    for (std::uint32_t i = 1; i < work_.size(); ++i) {  // grows while it is worked through
      QSF_TRY(schema(work_[i], nodes_of_[work_[i]]));
      if (p_.terms.failed()) return p_.terms.error();
    }
    return check_circles(p_);
  }

 private:
  /// Returns the node of a schema, which is read later.
  std::uint32_t node_of(std::uint32_t value) {
    if (p_.d[value].kind == Kind::boolean) return p_.d[value].truth ? kAlwaysNode : kNeverNode;
    if (nodes_of_[value] == 0) {
      nodes_of_[value] = p_.s.nodes.add({NodeOp::all, 0, 0, 0});
      work_.add(value);
    }
    return nodes_of_[value];
  }
  /// Returns the value of a keyword that the schema's draft knows, or 0.
  std::uint32_t find(std::uint32_t schema, std::string_view name) const {
    const auto* const since =
        std::find_if(kSince.begin(), kSince.end(), [&](const Since& s) { return s.keyword == name; });
    return since != kSince.end() && draft_ < since->draft ? 0 : p_.d.member(schema, name);
  }
  Status schema(std::uint32_t value, std::uint32_t node) {
    if (p_.d[value].kind != Kind::object) {
      return make_error(ErrorCode::bad_input, "a schema must be an object, true or false");
    }
    const std::uint32_t begin = p_.list.size();
    const std::uint32_t ref = p_.d.member(value, "$ref");
    if (ref != 0) {
      QSF_LET(target, referred(p_.d, ref, draft_ >= kDraft2019 ? 0 : value));
      p_.list.add(node_of(target));
    }
    if (ref == 0 || draft_ >= kDraft2019) {
      for (const std::string_view name : kRefused) {
        const std::uint32_t found = find(value, name);
        if (found == 0) continue;
        const bool idle = p_.d[found].kind == Kind::boolean && p_.d[found].truth == (name != "uniqueItems");
        if (!idle) return SchemaParts::refused(name, "it depends on more of the text than is followed");
      }
      QSF_TRY(general(value));
      QSF_TRY(strings(value));
      QSF_TRY(numbers(value));
      QSF_TRY(objects(value));
      QSF_TRY(arrays(value));
      QSF_TRY(combinations(value));
    }
    const SchemaParts::List made = p_.list_from(begin);
    p_.s.nodes[node] = {NodeOp::all, made.first, made.count, 0};
    return {};
  }

  // References

  // Keywords

  Status general(std::uint32_t value) {
    if (const std::uint32_t type = find(value, "type"); type != 0) {
      std::uint32_t mask = 0;
      bool integer = false;
      const bool list = p_.d[type].kind == Kind::array;
      for (std::uint32_t i = list ? p_.d[type].first : type; i != 0; i = list ? p_.d[i].next : 0) {
        const std::string_view name = p_.d[i].text;
        const auto* const found = std::find(kTypeNames.begin(), kTypeNames.end(), name);
        if (name == "boolean") {
          mask |= kBooleans;
        } else if (name == "integer") {
          integer = true;
        } else if (p_.d[i].kind == Kind::string && found != kTypeNames.end() && name != "true" && name != "false") {
          mask |= 1u << (found - kTypeNames.begin());
        } else {
          return SchemaParts::wrong("type", "a name of a type, or a list of such names");
        }
      }
      if (integer && (mask & bit(Type::number)) == 0) {
        mask |= bit(Type::number);
        NumberCheck check;
        check.op = NumberOp::integer;
        check.whole = draft_ == 4 || p_.integers == Integers::without_point;
        p_.list.add(p_.add(NodeOp::number, p_.checks.number(check)));
      }
      p_.list.add(mask == 0 ? kNeverNode : p_.add(NodeOp::type, mask));
    }
    if (const std::uint32_t values = find(value, "enum"); values != 0) {
      if (p_.d[values].kind != Kind::array) return SchemaParts::wrong("enum", "a list");
      QSF_LET(node, literals(p_, p_.d[values].first, "enum"));
      p_.list.add(node);
    }
    if (const std::uint32_t only = find(value, "const"); only != 0) {
      QSF_LET(node, literal(p_, only, "const"));
      p_.list.add(node);
    }
    return {};
  }

  /// Reads a count such as minItems into `to`, if the schema has it. A count above 2^32 - 2 is as good as that.
  Status count(std::uint32_t value, std::string_view keyword, std::uint32_t& to) {
    const std::uint32_t found = find(value, keyword);
    if (found == 0) return {};
    const std::optional<Number> n = p_.d[found].kind == Kind::number ? Number::read(p_.d[found].text) : std::nullopt;
    if (!n || n->negative || !n->is_integer())
      return SchemaParts::wrong(keyword, "a whole number that is not negative");
    std::uint64_t made = 0;
    for (std::int32_t i = 0; i < n->point; ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      made = std::min<std::uint64_t>(made * 10 + (at < n->count ? static_cast<std::uint64_t>(n->digits[at] - '0') : 0),
                                     kNoLimit - 1);
    }
    to = static_cast<std::uint32_t>(made);
    return {};
  }

  Status strings(std::uint32_t value) {
    std::uint32_t least = 0, most = kNoLimit;
    QSF_TRY(count(value, "minLength", least));
    QSF_TRY(count(value, "maxLength", most));
    if (least != 0 || most != kNoLimit) p_.list.add(p_.add(NodeOp::length, least, most));
    if (const std::uint32_t pattern = find(value, "pattern"); pattern != 0) {
      QSF_LET(check, pattern_check(pattern, "pattern", p_.d[pattern].text));
      p_.list.add(p_.add(NodeOp::string, check));
    }
    const std::uint32_t format = find(value, "format");
    if (format == 0 || p_.d[format].kind != Kind::string) return {};
    const FormatUse use = use_of_format(p_.d[format].text);
    if (use == FormatUse::refused) return SchemaParts::refused("format", p_.d[format].text);
    if (use == FormatUse::held) {
      QSF_LET(term, format_term(p_.d[format].text, p_.terms));
      p_.list.add(p_.add(NodeOp::string, p_.checks.term(term)));
    }
    return {};
  }

  Result<std::uint32_t> pattern_check(std::uint32_t value, std::string_view keyword, std::string_view text) {
    if (p_.d[value].kind != Kind::string && keyword == "pattern") return SchemaParts::wrong(keyword, "a string");
    const Result<std::uint32_t> term = read_regex(text, Match::anywhere, p_.terms);
    if (!term) return make_error(term.error().code, "the schema's keyword '{}': {}", keyword, term.error().sentence);
    return p_.checks.term(*term);
  }

  Status numbers(std::uint32_t value) {
    const auto bound = [&](std::string_view keyword, NumberOp op) -> Status {
      const std::uint32_t found = find(value, keyword);
      if (found == 0) return {};
      if (p_.d[found].kind != Kind::number) return SchemaParts::wrong(keyword, "a number");
      const std::optional<Number> n = Number::read(p_.d[found].text);
      if (!n) return SchemaParts::refused(keyword, "the number has too many digits");
      NumberCheck check;
      check.op = op;
      check.bound = *n;
      p_.list.add(p_.add(NodeOp::number, p_.checks.number(check)));
      return {};
    };
    // In draft 4, the exclusive keywords are true or false.
    const auto exclusive = [&](std::string_view keyword, NumberOp op, bool& flag) -> Status {
      const std::uint32_t found = find(value, keyword);
      flag = found != 0 && p_.d[found].kind == Kind::boolean;
      if (!flag) return bound(keyword, op);
      flag = p_.d[found].truth;
      return {};
    };
    bool above = false, below = false;
    QSF_TRY(exclusive("exclusiveMinimum", NumberOp::more, above));
    QSF_TRY(exclusive("exclusiveMaximum", NumberOp::less, below));
    QSF_TRY(bound("minimum", above ? NumberOp::more : NumberOp::at_least));
    QSF_TRY(bound("maximum", below ? NumberOp::less : NumberOp::at_most));
    if (const std::uint32_t found = find(value, "multipleOf"); found != 0) {
      const std::optional<Number> n = p_.d[found].kind == Kind::number ? Number::read(p_.d[found].text) : std::nullopt;
      if (p_.d[found].kind != Kind::number || (n && (n->negative || n->count == 0))) {
        return SchemaParts::wrong("multipleOf", "a number above 0");
      }
      const std::optional<NumberCheck> check = n ? NumberCheck::multiple_of(*n) : std::nullopt;
      if (!check) return SchemaParts::refused("multipleOf", "the number has too many digits");
      p_.list.add(p_.add(NodeOp::number, p_.checks.number(*check)));
    }
    return {};
  }

  Status objects(std::uint32_t value) {
    ObjectRule rule;
    rule.others = rule.names = kAlwaysNode;
    bool used = false;
    const auto object = [&](std::string_view keyword, std::uint32_t& found) -> Status {
      found = find(value, keyword);
      if (found != 0 && p_.d[found].kind != Kind::object) return SchemaParts::wrong(keyword, "an object");
      used = used || found != 0;
      return {};
    };
    std::uint32_t properties = 0, patterns = 0;
    QSF_TRY(object("properties", properties));
    QSF_TRY(object("patternProperties", patterns));
    rule.first_member = p_.s.members.size();
    for (std::uint32_t i = properties == 0 ? 0 : p_.d[properties].first; i != 0; i = p_.d[i].next) {
      p_.s.members.add({p_.name_of(p_.d[i].name), node_of(i)});
      ++rule.n_members;
    }
    rule.first_pattern = p_.s.members.size();
    for (std::uint32_t i = patterns == 0 ? 0 : p_.d[patterns].first; i != 0; i = p_.d[i].next) {
      QSF_LET(check, pattern_check(i, "patternProperties", p_.d[i].name));
      p_.s.members.add({check, node_of(i)});
      ++rule.n_patterns;
    }
    const auto sub = [&](std::string_view keyword, std::uint32_t& to) {
      if (const std::uint32_t found = find(value, keyword); found != 0) {
        to = node_of(found);
        used = true;
      }
    };
    sub("additionalProperties", rule.others);
    sub("propertyNames", rule.names);
    QSF_TRY(count(value, "minProperties", rule.least));
    QSF_TRY(count(value, "maxProperties", rule.most));
    used = used || rule.least != 0 || rule.most != kNoLimit;
    if (const std::uint32_t required = find(value, "required"); required != 0) {
      QSF_LET(names, names_in(required, "required"));
      rule.first_required = names.first;
      rule.n_required = names.count;
      used = used || names.count != 0;
    }
    if (used) p_.list.add(p_.add(NodeOp::object, p_.s.objects.add(rule)));
    for (const std::string_view keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
      std::uint32_t found = 0;
      QSF_TRY(object(keyword, found));
      for (std::uint32_t i = found == 0 ? 0 : p_.d[found].first; i != 0; i = p_.d[i].next) {
        std::uint32_t then = 0;
        if (p_.d[i].kind == Kind::array) {
          QSF_LET(names, names_in(i, keyword));
          ObjectRule needs;
          needs.others = needs.names = kAlwaysNode;
          needs.first_required = names.first;
          needs.n_required = names.count;
          then = p_.add(NodeOp::object, p_.s.objects.add(needs));
        } else {
          then = node_of(i);
        }
        p_.list.add(p_.add(NodeOp::branch, p_.add(NodeOp::has, p_.name_of(p_.d[i].name)), then, kAlwaysNode));
      }
    }
    return {};
  }

  Result<SchemaParts::List> names_in(std::uint32_t value, std::string_view keyword) {
    if (p_.d[value].kind != Kind::array) return SchemaParts::wrong(keyword, "a list of names");
    const std::uint32_t begin = p_.list.size();
    for (std::uint32_t i = p_.d[value].first; i != 0; i = p_.d[i].next) {
      if (p_.d[i].kind != Kind::string) return SchemaParts::wrong(keyword, "a list of names");
      const std::uint32_t name = p_.name_of(p_.d[i].text);
      bool known = false;
      for (std::uint32_t j = begin; j < p_.list.size() && !known; ++j) known = p_.list[j] == name;
      if (!known) p_.list.add(name);
    }
    return p_.list_from(begin);
  }

  Status arrays(std::uint32_t value) {
    ArrayRule rule;
    rule.others = kAlwaysNode;
    std::uint32_t first = find(value, "prefixItems"), rest = find(value, "items");
    if (rest != 0 && p_.d[rest].kind == Kind::array) {  // before draft 2020-12
      first = rest;
      rest = find(value, "additionalItems");
    }
    if (first != 0 && p_.d[first].kind != Kind::array) return SchemaParts::wrong("prefixItems", "a list of schemas");
    const std::uint32_t begin = p_.list.size();
    for (std::uint32_t i = first == 0 ? 0 : p_.d[first].first; i != 0; i = p_.d[i].next) {
      const std::uint32_t node = node_of(i);
      p_.list.add(node);
    }
    const SchemaParts::List items = p_.list_from(begin);
    rule.first_item = items.first;
    rule.n_items = items.count;
    if (rest != 0) rule.others = node_of(rest);
    QSF_TRY(count(value, "minItems", rule.least));
    QSF_TRY(count(value, "maxItems", rule.most));
    if (const std::uint32_t contains = find(value, "contains"); contains != 0) {
      rule.contains = node_of(contains);
      rule.least_contained = 1;
      QSF_TRY(count(value, "minContains", rule.least_contained));
      QSF_TRY(count(value, "maxContains", rule.most_contained));
    }
    const bool used = first != 0 || rest != 0 || rule.least != 0 || rule.most != kNoLimit || rule.contains != 0;
    if (used) p_.list.add(p_.add(NodeOp::array, p_.s.arrays.add(rule)));
    return {};
  }

  Status combinations(std::uint32_t value) {
    struct Keyword {
      std::string_view name;
      NodeOp op;
    };
    for (const Keyword& keyword :
         {Keyword{"allOf", NodeOp::all}, Keyword{"anyOf", NodeOp::any}, Keyword{"oneOf", NodeOp::one}}) {
      const std::uint32_t found = p_.d.member(value, keyword.name);
      if (found == 0) continue;
      if (p_.d[found].kind != Kind::array || p_.d[found].count == 0)
        return SchemaParts::wrong(keyword.name, "a list of schemas");
      const std::uint32_t begin = p_.list.size();
      for (std::uint32_t i = p_.d[found].first; i != 0; i = p_.d[i].next) {
        const std::uint32_t node = node_of(i);
        p_.list.add(node);
      }
      const std::uint32_t node = p_.combine(keyword.op, begin);
      p_.list.add(node);
    }
    if (const std::uint32_t found = find(value, "not"); found != 0) p_.list.add(p_.add(NodeOp::other, node_of(found)));
    if (const std::uint32_t found = find(value, "if"); found != 0) {
      const std::uint32_t yes = find(value, "then"), no = find(value, "else");
      const std::uint32_t condition = node_of(found);
      const std::uint32_t then = yes == 0 ? kAlwaysNode : node_of(yes);
      p_.list.add(p_.add(NodeOp::branch, condition, then, no == 0 ? kAlwaysNode : node_of(no)));
    }
    return {};
  }

  SchemaParts p_;
  std::uint32_t* nodes_of_ = nullptr;  // by value; 0: not asked for
  Table<std::uint32_t> work_;
  // Before 2019, keywords next to $ref are remarks. In draft 4, an integer has no fraction, not even of zeros.
  std::uint32_t draft_ = 2020;
};

}  // namespace

bool Schema::init(Store& store) {
  return nodes.init(store) && lists.init(store) && members.init(store) && objects.init(store) && arrays.init(store) &&
         names.init(store) && nodes.add({NodeOp::always, 0, 0, 0}) == kAlwaysNode &&
         nodes.add({NodeOp::never, 0, 0, 0}) == kNeverNode;
}

Status read_schema(const json::Document& document, Integers integers, Store& store, Terms& terms, Checks& checks,
                   Schema& schema) {
  return SchemaReader(document, integers, store, terms, checks, schema).read();
}

}  // namespace qsf::grammar
