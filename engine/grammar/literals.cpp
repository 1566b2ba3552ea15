// Schemas that name values: "enum" and "const".
#include <algorithm>
#include <optional>

#include "grammar/schema_parts.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"

namespace qsf::grammar {
namespace {

using json::Kind;
using json::Number;
using json::Value;

class Literals {
 public:
  explicit Literals(SchemaParts& parts) : p_(parts) {}

  /// Returns the node of values that equal one of a chain.
  Result<std::uint32_t> one_of(std::uint32_t first, std::string_view keyword) {
    std::uint32_t types = 0, n_strings = 0;
    const std::uint32_t begin = p_.list.size();
    for (std::uint32_t i = first; i != 0; i = p_.d[i].next) {
      const Value& v = p_.d[i];
      if (v.kind == Kind::array || v.kind == Kind::object) {
        QSF_LET(node, literal(i, keyword));
        p_.list.add(node);
      } else {
        types |= bit(type_of(v));
        n_strings += v.kind == Kind::string ? 1 : 0;
      }
    }
    if (types != 0) {
      const std::uint32_t parts = p_.list.size();
      p_.list.add(p_.add(NodeOp::type, types));
      if (n_strings != 0) {
        auto* const texts = p_.store.take_values<std::string_view>(n_strings);
        if (texts == nullptr) return p_.terms.error();
        std::uint32_t n = 0;
        for (std::uint32_t i = first; i != 0; i = p_.d[i].next) {
          if (p_.d[i].kind == Kind::string) texts[n++] = p_.d[i].text;
        }
        heap_sort(std::span(texts, n));
        n = static_cast<std::uint32_t>(std::unique(texts, texts + n) - texts);
        QSF_LET(check, names(keyword, {texts, n}));
        p_.list.add(p_.add(NodeOp::string, check));
      }
      if ((types & bit(Type::number)) != 0) {
        const std::uint32_t mark = p_.terms.mark();
        for (std::uint32_t i = first; i != 0; i = p_.d[i].next) {
          if (p_.d[i].kind != Kind::number) continue;
          const std::optional<Number> number = Number::read(p_.d[i].text);
          if (!number) return SchemaParts::refused(keyword, "a number in it has too many digits");
          p_.terms.push(number_term(*number));
        }
        p_.list.add(p_.add(NodeOp::number, p_.checks.term(p_.terms.join(mark))));
      }
      const std::uint32_t all = p_.combine(NodeOp::all, parts);
      p_.list.add(all);
    }
    if (p_.list.size() == begin) return kNeverNode;
    return p_.combine(NodeOp::any, begin);
  }

  Result<std::uint32_t> names(std::string_view keyword, std::span<std::string_view> texts) {
    std::size_t bytes = 0;
    for (const std::string_view text : texts) bytes = std::max(bytes, text.size());
    if (texts.size() > kMaxNames || bytes > kMaxName)
      return SchemaParts::refused(keyword, "it has too many or too long texts");
    return p_.checks.names(texts);
  }

  static Type type_of(const Value& v) {
    switch (v.kind) {
      case Kind::null:
        return Type::null;
      case Kind::boolean:
        return v.truth ? Type::yes : Type::no;
      case Kind::number:
        return Type::number;
      case Kind::string:
        return Type::string;
      case Kind::array:
        return Type::array;
      default:
        return Type::object;
    }
  }

  /// Returns the texts of numbers that equal one, without exponents. For texts that are generated it is the shortest
  /// one.
  std::uint32_t number_term(const Number& n) {
    const bool shortest = p_.integers == Integers::without_point;
    ByteSet zero;
    zero.add('0', '0');
    const std::uint32_t zeros = shortest ? kEmpty : p_.terms.repeat(p_.terms.set(zero), 0, kUnlimited);
    std::uint32_t after = zeros;  // of the point
    const std::int32_t places = static_cast<std::int32_t>(n.count) - n.point;
    for (std::int32_t i = places; i-- > 0;) {
      const std::int32_t at = n.point + i;
      after = p_.terms.cat(p_.terms.byte(static_cast<std::uint8_t>(at < 0 ? '0' : n.digits[at])), after);
    }
    std::uint32_t text = p_.terms.cat(p_.terms.byte('.'), after);
    if (places <= 0 && shortest) {
      text = kEmpty;
    } else if (places <= 0) {
      text = p_.terms.alt(kEmpty, p_.terms.cat(p_.terms.byte('.'), p_.terms.repeat(p_.terms.set(zero), 1, kUnlimited)));
    }
    if (n.point <= 0) text = p_.terms.cat(p_.terms.byte('0'), text);
    for (std::int32_t i = n.point; i-- > 0;) {
      const auto at = static_cast<std::uint32_t>(i);
      text = p_.terms.cat(p_.terms.byte(static_cast<std::uint8_t>(at < n.count ? n.digits[at] : '0')), text);
    }
    const std::uint32_t minus = p_.terms.byte('-');
    if (n.count == 0) return p_.terms.cat(p_.terms.alt(kEmpty, minus), text);
    return n.negative ? p_.terms.cat(minus, text) : text;
  }

  /// Returns the node of values that equal one.
  Result<std::uint32_t> literal(std::uint32_t id, std::string_view keyword) {
    const Value v = p_.d[id];
    if (v.kind == Kind::object) {
      ObjectRule rule;
      rule.others = kNeverNode;
      const std::uint32_t begin = p_.list.size();
      for (std::uint32_t i = v.first; i != 0; i = p_.d[i].next) {
        QSF_LET(node, literal(i, keyword));
        p_.list.add(node);
      }
      rule.first_member = p_.s.members.size();
      rule.n_members = v.count;
      std::uint32_t at = begin;
      for (std::uint32_t i = v.first; i != 0; i = p_.d[i].next)
        p_.s.members.add({p_.name_of(p_.d[i].name), p_.list[at++]});
      p_.list.shrink(begin);
      for (std::uint32_t i = v.first; i != 0; i = p_.d[i].next) p_.list.add(p_.name_of(p_.d[i].name));
      const SchemaParts::List required = p_.list_from(begin);
      rule.first_required = required.first;
      rule.n_required = required.count;
      rule.names = kAlwaysNode;
      return both(bit(Type::object), p_.add(NodeOp::object, p_.s.objects.add(rule)));
    }
    if (v.kind == Kind::array) {
      const std::uint32_t begin = p_.list.size();
      for (std::uint32_t i = v.first; i != 0; i = p_.d[i].next) {
        QSF_LET(node, literal(i, keyword));
        p_.list.add(node);
      }
      const SchemaParts::List items = p_.list_from(begin);
      ArrayRule rule;
      rule.first_item = items.first;
      rule.n_items = items.count;
      rule.others = kNeverNode;
      rule.least = rule.most = v.count;
      return both(bit(Type::array), p_.add(NodeOp::array, p_.s.arrays.add(rule)));
    }
    const std::uint32_t type = p_.add(NodeOp::type, bit(type_of(v)));
    if (v.kind == Kind::string) {
      auto* const text = p_.store.take_values<std::string_view>(1);
      if (text == nullptr) return p_.terms.error();
      *text = v.text;
      QSF_LET(check, names(keyword, {text, 1}));
      return both(bit(Type::string), p_.add(NodeOp::string, check));
    }
    if (v.kind == Kind::number) {
      const std::optional<Number> number = Number::read(v.text);
      if (!number) return SchemaParts::refused(keyword, "a number in it has too many digits");
      return both(bit(Type::number), p_.add(NodeOp::number, p_.checks.term(number_term(*number))));
    }
    return type;
  }
  std::uint32_t both(std::uint32_t types, std::uint32_t node) {
    const std::uint32_t begin = p_.list.size();
    p_.list.add(p_.add(NodeOp::type, types));
    p_.list.add(node);
    return p_.combine(NodeOp::all, begin);
  }

 private:
  SchemaParts& p_;
};

}  // namespace

Result<std::uint32_t> literals(SchemaParts& parts, std::uint32_t first, std::string_view keyword) {
  return Literals(parts).one_of(first, keyword);
}

Result<std::uint32_t> literal(SchemaParts& parts, std::uint32_t value, std::string_view keyword) {
  return Literals(parts).literal(value, keyword);
}

}  // namespace qsf::grammar
