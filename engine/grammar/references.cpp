// References of a schema to its parts.
#include <array>

#include "grammar/schema_parts.h"
#include "qsf/base/try.h"

namespace qsf::grammar {
namespace {

using json::Kind;

constexpr std::uint32_t kMaxNested = 256;  // references and choices in one another, each a level of recursion

/// Returns the member or element that a part of a JSON pointer, in a URI, names; 0 if there is none.
std::uint32_t member_at(const json::Document& d, std::uint32_t parent, std::string_view part) {
  std::array<char, 512> buffer;
  std::size_t n = 0;
  for (std::size_t i = 0; i < part.size() && n < buffer.size(); ++i) {
    const auto hex = [](char c) {
      return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
    };
    if (part[i] == '%' && i + 2 < part.size() && hex(part[i + 1]) >= 0 && hex(part[i + 2]) >= 0) {
      buffer[n++] = static_cast<char>(hex(part[i + 1]) * 16 + hex(part[i + 2]));
      i += 2;
    } else {
      buffer[n++] = part[i];
    }
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool escaped = buffer[i] == '~' && i + 1 < n && (buffer[i + 1] == '0' || buffer[i + 1] == '1');
    buffer[length++] = !escaped ? buffer[i] : buffer[++i] == '0' ? '~' : '/';
  }
  const std::string_view name(buffer.data(), length);
  if (d[parent].kind != Kind::array) return d.member(parent, name);
  std::uint32_t index = 0;
  for (const char c : name) {
    if (c < '0' || c > '9' || index > 1'000'000) return 0;
    index = index * 10 + static_cast<std::uint32_t>(c - '0');
  }
  std::uint32_t at = d[parent].first;
  while (at != 0 && index-- > 0) at = d[at].next;
  return at;
}

/// Returns the innermost schema around `ref` that has a name of its own, from which a place in it is counted. Up to
/// draft 7 `unnamed`, the schema that refers, has none.
std::uint32_t resource_of(const json::Document& d, std::uint32_t ref, std::uint32_t unnamed) {
  std::uint32_t found = json::Document::kRoot;
  for (std::uint32_t at = found; at != ref;) {
    const std::uint32_t id = at == unnamed || d[at].kind != Kind::object ? 0 : d.member(at, "$id");
    if (id != 0 && d[id].kind == Kind::string && !d[id].text.starts_with('#')) found = at;
    // Values are in the order of the text, so the last part that begins before `ref` holds it.
    for (at = d[at].first; d[at].next != 0 && d[at].next <= ref;) at = d[at].next;
  }
  return found;
}

class Circles {
 public:
  explicit Circles(SchemaParts& parts) : p_(parts) {}

  /// Refuses schemas that apply to a value only if they apply to it.
  Status check() {
    const std::uint32_t n = p_.s.nodes.size();
    auto* const visits = p_.store.take_values<std::uint8_t>(n);  // 1: on the way, 2: done
    if (visits == nullptr) return p_.terms.error();
    for (std::uint32_t i = 1; i < n; ++i) QSF_TRY(check_node(i, visits, 0));
    return {};
  }
  Status check_node(std::uint32_t id, std::uint8_t* visits, std::uint32_t depth) {
    if (visits[id] == 2) return {};
    if (visits[id] == 1 || depth > kMaxNested) {
      return SchemaParts::refused(
          "$ref", visits[id] == 1 ? "it leads back to itself" : "references and choices are nested too deep");
    }
    visits[id] = 1;
    const SchemaNode node = p_.s.nodes[id];
    if (node.op == NodeOp::all || node.op == NodeOp::any || node.op == NodeOp::one) {
      for (std::uint32_t i = 0; i < node.b; ++i) QSF_TRY(check_node(p_.s.lists[node.a + i], visits, depth + 1));
    } else if (node.op == NodeOp::other) {
      QSF_TRY(check_node(node.a, visits, depth + 1));
    } else if (node.op == NodeOp::branch) {
      for (const std::uint32_t part : {node.a, node.b, node.c}) QSF_TRY(check_node(part, visits, depth + 1));
    }
    visits[id] = 2;
    return {};
  }

 private:
  SchemaParts& p_;
};

}  // namespace

Result<std::uint32_t> referred(const json::Document& d, std::uint32_t ref, std::uint32_t unnamed) {
  if (d[ref].kind != Kind::string) return SchemaParts::wrong("$ref", "a string");
  std::string_view text = d[ref].text;
  const std::size_t hash = text.find('#');
  const std::string_view base = text.substr(0, hash);
  std::uint32_t at = base.empty() ? resource_of(d, ref, unnamed) : 0;
  if (!base.empty()) {
    for (std::uint32_t i = 1; i < d.size() && at == 0; ++i) {
      for (const std::string_view id : {"$id", "id"}) {
        const std::uint32_t member = d[i].kind == Kind::object ? d.member(i, id) : 0;
        if (member == 0 || d[member].kind != Kind::string) continue;
        std::string_view own = d[member].text;
        if (own.ends_with('#')) own.remove_suffix(1);
        if (own == base) at = i;
      }
    }
    if (at == 0) return SchemaParts::refused("$ref", "it refers to another document");
  }
  text = hash == text.npos ? std::string_view() : text.substr(hash + 1);
  if (!text.empty() && text[0] != '/') {
    for (std::uint32_t i = 1; i < d.size(); ++i) {
      for (const std::string_view key : {"$anchor", "$dynamicAnchor"}) {
        const std::uint32_t anchor = d[i].kind == Kind::object ? d.member(i, key) : 0;
        if (anchor != 0 && d[anchor].text == text) return i;
      }
    }
    return SchemaParts::refused("$ref", "it refers to an anchor that the schema does not have");
  }
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view part = text.substr(0, text.find('/'));
    text.remove_prefix(part.size());
    at = member_at(d, at, part);
    if (at == 0) return SchemaParts::refused("$ref", "it refers to a part that the schema does not have");
  }
  return at;
}

Status check_circles(SchemaParts& parts) { return Circles(parts).check(); }

}  // namespace qsf::grammar
