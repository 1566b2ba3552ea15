// The expressions of a template, by the precedence of their operators.
#include <algorithm>

#include "qsf/base/utf8.h"
#include "templates/characters.h"
#include "templates/library.h"
#include "templates/number.h"
#include "templates/parser.h"

namespace qsf::templates {
namespace {

struct Operator {
  std::string_view sign;
  Op op;
  int level;
};

constexpr int kNegation = 2, kComparison = 3, kHighest = 8;
constexpr Operator kOperators[]{
    {"or", Op::either, 0},   {"and", Op::both, 1},   {"+", Op::add, 4},    {"-", Op::subtract, 4},
    {"~", Op::join, 5},      {"*", Op::multiply, 6}, {"/", Op::divide, 6}, {"//", Op::divide_whole, 6},
    {"%", Op::remainder, 6}, {"**", Op::power, 7},
};
constexpr Operator kComparisons[]{
    {"==", Op::equal, 3},  {"!=", Op::unequal, 3},       {"<", Op::less, 3}, {"<=", Op::less_equal, 3},
    {">", Op::greater, 3}, {">=", Op::greater_equal, 3}, {"in", Op::in, 3},
};

struct Word {
  std::string_view name;
  Kind kind;
  bool value;
};
constexpr Word kWords[]{{"true", Kind::boolean, true},   {"True", Kind::boolean, true}, {"false", Kind::boolean, false},
                        {"False", Kind::boolean, false}, {"none", Kind::none, false},   {"None", Kind::none, false}};

/// Writes the value of an escape, text[at] being the character after the backslash, and advances past it. Returns the
/// bytes, or 0 if it is none, so that the backslash stays.
std::size_t read_escape(std::string_view text, std::size_t& at, char* out) {
  constexpr std::string_view kNames = "\\'\"abfnrtv", kValues = "\\'\"\a\b\f\n\r\t\v";
  const char c = text[at];
  if (const std::size_t name = kNames.find(c); name != kNames.npos) {
    ++at;
    out[0] = kValues[name];
    return 1;
  }
  const std::size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 3;
  const int base = wanted == 3 ? 8 : 16;
  std::size_t end = at + (wanted == 3 ? 0 : 1);
  const std::size_t begin = end;
  char32_t code = 0;
  while (end < text.size() && end - begin < wanted && digit_value(text[end]) < base) {
    code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(text[end++]));
  }
  const bool whole = wanted == 3 ? end > begin : end - begin == wanted;
  if (!whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
  at = end;
  return utf8::encode(code, out);
}

}  // namespace

bool Parser::is_constant(std::string_view name) {
  return std::ranges::find(kWords, name, &Word::name) != std::end(kWords);
}

Node* Parser::parse_tuple(bool with_choice, bool in_brackets, std::string_view end) {
  const auto ends = [&] {
    return token_.kind == TokenKind::tag_end || token_.is(")") || (!end.empty() && token_.is_name(end));
  };
  NodeList list;
  bool is_tuple = false;
  while (!ends() && !work_.failed()) {
    list.add(parse_expression(with_choice));
    if (!take(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && list.first != nullptr) return list.first;
  if (!is_tuple && !in_brackets) return unexpected();
  return make(Op::tuple, list.first);
}

Node* Parser::parse_expression(bool with_choice) {
  const Nested nested(work_);
  Node* node = parse_binary(0);
  while (with_choice && take_name("if")) {
    Node* const condition = parse_binary(0);
    Node* const other = take_name("else") ? parse_expression() : nullptr;
    node = make(Op::choice, condition, node, other);
  }
  return node;
}

Op Parser::comparison_here() {
  if (token_.is_name("not") && after().is_name("in")) {
    advance();
    return Op::not_in;
  }
  if (token_.kind != TokenKind::sign && token_.kind != TokenKind::name) return Op::constant;
  const auto* const found = std::ranges::find(kComparisons, token_.text, &Operator::sign);
  return found == std::end(kComparisons) ? Op::constant : found->op;
}

Node* Parser::parse_comparison(Node* left) {
  NodeList operands;
  for (Op op = comparison_here(); op != Op::constant && !work_.failed(); op = comparison_here()) {
    advance();
    operands.add(make(op, parse_binary(kComparison + 1)));
  }
  return operands.first == nullptr ? left : make(Op::comparison, left, operands.first);
}

Node* Parser::parse_binary(int least) {
  const Nested nested(work_);
  if (!nested) return nullptr;
  Node* left = nullptr;
  if (least <= kNegation && take_name("not")) {
    left = make(Op::negation, parse_binary(kNegation));
  } else {
    left = parse_unary(true);
  }
  int level = kHighest;  // of the last operator: one that binds more tightly cannot follow it
  while (!work_.failed()) {
    if (level >= kComparison && least <= kComparison) {
      Node* const compared = parse_comparison(left);
      if (compared != left) {
        left = compared;
        level = kComparison;
        continue;
      }
    }
    if (token_.kind != TokenKind::sign && token_.kind != TokenKind::name) break;
    const auto* const found = std::ranges::find(kOperators, token_.text, &Operator::sign);
    if (found == std::end(kOperators) || found->level < least) break;
    level = found->level;
    advance();
    left = make(found->op, left, parse_binary(level + 1));
  }
  return left;
}

Node* Parser::parse_unary(bool with_filters) {
  const Nested nested(work_);
  if (!nested) return nullptr;
  Node* node = nullptr;
  if (take("-")) {
    node = make(Op::negative, parse_unary(false));
  } else if (take("+")) {
    node = make(Op::positive, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(node);
  return with_filters ? parse_filters(node) : node;
}

Node* Parser::parse_primary() {
  if (token_.kind == TokenKind::text) return parse_text();
  if (token_.kind == TokenKind::integer || token_.kind == TokenKind::real) return parse_number();
  if (take("[")) return parse_items(Op::list, "]");
  if (take("{")) return parse_items(Op::dict, "}");
  if (take("(")) {
    Node* const inside = parse_tuple(true, true, {});
    expect(")");
    return inside;
  }
  Node* const node = make_named(Op::name);
  if (node == nullptr || work_.failed()) return node;
  const std::string_view name = node->value.text->view();
  if (const auto* word = std::ranges::find(kWords, name, &Word::name); word != std::end(kWords)) {
    node->op = Op::constant;
    node->value = Value(word->kind);
    node->value.boolean = word->value;
  }
  names_ |= name == "caller" ? kUsesCaller : name == "varargs" ? kUsesVarargs : name == "kwargs" ? kUsesKwargs : 0;
  return node;
}

Node* Parser::parse_text() {
  Node* const node = make(Op::constant);
  std::size_t size = 0;
  Lexer ahead = lexer_;
  for (Token token = token_; token.kind == TokenKind::text; token = ahead.next(tag_)) size += token.text.size() - 2;
  char* const bytes = size == 0 ? nullptr : static_cast<char*>(work_.pool.take(size));
  if (size != 0 && bytes == nullptr) work_.out_of_memory();
  if (node == nullptr || work_.failed()) return nullptr;
  std::size_t n = 0;
  for (; token_.kind == TokenKind::text; advance()) {
    const std::string_view inside = token_.text.substr(1, token_.text.size() - 2);
    for (std::size_t i = 0; i < inside.size();) {
      const char c = inside[i++];
      if (c == '\\' && i < inside.size() && inside[i] == '\n') {
        ++i;
        continue;
      }
      const std::size_t escaped = c == '\\' && i < inside.size() ? read_escape(inside, i, bytes + n) : 0;
      if (escaped == 0) bytes[n] = c;
      n += escaped == 0 ? 1 : escaped;
    }
  }
  node->value = work_.text_value({bytes, n});
  return node;
}

Node* Parser::parse_number() {
  Node* const node = make(Op::constant);
  if (node == nullptr) return nullptr;
  node->value = token_.kind == TokenKind::real ? read_real(work_, token_.text) : read_whole(work_, token_.text, 0);
  const Kind kind = token_.kind == TokenKind::real ? Kind::real : Kind::integer;
  if (!node->value.is(kind)) work_.fail("the number {:.40} is too large", token_.text);
  advance();
  return node;
}

Node* Parser::parse_items(Op op, std::string_view close) {
  NodeList list;
  while (!token_.is(close) && !work_.failed()) {
    if (list.first != nullptr) expect(",");
    if (token_.is(close)) break;
    Node* const item = parse_expression();
    if (op == Op::dict) {
      expect(":");
      list.add(make(Op::pair, item, parse_expression()));
    } else {
      list.add(make(Op::argument, item));
    }
  }
  expect(close);
  return make(op, list.first);
}

Node* Parser::parse_postfix(Node* node) {
  while (!work_.failed()) {
    if (take(".")) {
      if (token_.kind == TokenKind::integer) {
        node = make(Op::item, node, parse_number());
        continue;
      }
      Node* const name = make_named(Op::attribute);
      if (name == nullptr) return nullptr;
      name->a = node;
      node = name;
    } else if (take("[")) {
      node = parse_subscript(node);
    } else if (token_.is("(")) {
      Node* const call = make(Op::call, node);
      Node* const arguments = parse_arguments();
      if (call == nullptr) return nullptr;
      call->b = arguments;
      node = call;
    } else {
      break;
    }
  }
  return node;
}

Node* Parser::parse_subscript(Node* object) {
  Node* key = nullptr;
  const auto part = [&]() -> Node* {
    return token_.is(":") || token_.is("]") || token_.is(",") ? nullptr : parse_expression();
  };
  key = part();
  if (take(":")) {
    Node* const slice = make(Op::slice, key);
    if (slice == nullptr) return nullptr;
    slice->b = part();
    if (take(":")) slice->c = part();
    key = slice;
  } else if (key == nullptr) {
    return unexpected();
  }
  expect("]");
  return make(Op::item, object, key);
}

Node* Parser::parse_filters(Node* node) {
  while (!work_.failed()) {
    if (take("|")) {
      node = parse_filter(node);
    } else if (take_name("is")) {
      node = parse_test(node);
    } else if (token_.is("(")) {
      node = make(Op::call, node, parse_arguments());
    } else {
      break;
    }
  }
  return node;
}

Node* Parser::parse_filter(Node* operand) {
  Node* const node = make_named(Op::filter);
  if (node == nullptr || work_.failed()) return node;
  node->a = operand;
  node->row = find_filter(node->value.text->view());
  if (token_.is("(")) node->b = parse_arguments();
  return node;
}

Node* Parser::parse_test(Node* operand) {
  const bool negated = take_name("not");
  Node* const node = make_named(Op::test);
  if (node == nullptr || work_.failed()) return node;
  node->a = operand;
  node->row = find_row(tests(), node->value.text->view());
  const bool has_operand =
      token_.kind == TokenKind::text || token_.kind == TokenKind::integer || token_.kind == TokenKind::real ||
      token_.is("[") || token_.is("{") ||
      (token_.kind == TokenKind::name && !token_.is_name("else") && !token_.is_name("or") && !token_.is_name("and"));
  if (token_.is("(")) {
    node->b = parse_arguments();
  } else if (token_.is_name("is")) {
    work_.fail("a test follows a test");
  } else if (has_operand) {
    node->b = make(Op::argument, parse_postfix(parse_primary()));
  }
  return negated ? make(Op::negation, node) : node;
}

Node* Parser::parse_arguments() {
  NodeList list;
  expect("(");
  while (!token_.is(")") && !work_.failed()) {
    if (list.first != nullptr) expect(",");
    if (token_.is(")")) break;
    const bool named = token_.kind == TokenKind::name && after().is("=");
    Node* argument = nullptr;
    if (named) {
      argument = make_named(Op::argument);
      expect("=");
    } else {
      argument = make(take("**") ? Op::spread_named : take("*") ? Op::spread : Op::argument);
    }
    if (argument == nullptr) break;
    argument->a = parse_expression();
    list.add(argument);
  }
  expect(")");
  return list.first;
}

}  // namespace qsf::templates
