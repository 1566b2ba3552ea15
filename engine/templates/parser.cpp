#include "templates/parser.h"

#include <algorithm>
#include <utility>

namespace qsf::templates {

Node* Parser::make(Op op, Node* a, Node* b, Node* c) {
  Node* const node = work_.make<Node>();
  if (node == nullptr) return nullptr;
  node->op = op;
  node->at = static_cast<std::uint32_t>(lexer_.at());
  node->a = a;
  node->b = b;
  node->c = c;
  return node;
}

Node* Parser::make_named(Op op) {
  if (token_.kind != TokenKind::name) return unexpected();
  Node* const node = make(op);
  if (node != nullptr) node->value = work_.text_value(token_.text);
  advance();
  return node;
}

Node* Parser::make_target(Op op) { return is_constant(token_.text) ? unexpected() : make_named(op); }

Token Parser::after() const {
  Lexer copy = lexer_;
  return copy.next(tag_);
}

bool Parser::take(std::string_view sign) {
  if (!token_.is(sign)) return false;
  advance();
  return true;
}

bool Parser::take_name(std::string_view name) {
  if (!token_.is_name(name)) return false;
  advance();
  return true;
}

void Parser::expect(std::string_view sign) {
  if (!take(sign)) unexpected();
}

Node* Parser::unexpected() {
  work_.at = static_cast<std::uint32_t>(lexer_.at());
  if (token_.kind == TokenKind::end) {
    work_.fail("it ends inside a tag or a block");
  } else if (token_.kind == TokenKind::tag_end) {
    work_.fail("a tag ends too early");
  } else {
    work_.fail("'{:.40}' is not expected here", token_.text);
  }
  return nullptr;
}

void Parser::end_tag() {
  if (token_.kind != TokenKind::tag_end) unexpected();
}

Node* Parser::parse_block(Ends ends) {
  const Nested nested(work_);
  NodeList list;
  while (nested) {
    std::string_view text;
    bool more = false;
    tag_ = lexer_.read_text(text, more);
    if (tag_ == Tag::unclosed_comment || tag_ == Tag::unclosed_raw) {
      work_.at = static_cast<std::uint32_t>(lexer_.at());
      work_.fail("a {} is not closed", tag_ == Tag::unclosed_raw ? "raw block" : "comment");
      break;
    }
    if (!text.empty()) {
      Node* const output = make(Op::output);
      if (output != nullptr) output->value = work_.text_value(text);
      list.add(output);
    }
    if (more) continue;
    if (tag_ == Tag::end) {
      token_ = {};
      if (ends.size() != 0) unexpected();
      break;
    }
    advance();
    if (tag_ == Tag::print) {
      list.add(make(Op::print, parse_tuple(true, false, {})));
      end_tag();
      continue;
    }
    if (token_.kind != TokenKind::name) {
      unexpected();
      break;
    }
    if (std::ranges::find(ends, token_.text) != ends.end()) break;
    list.add(parse_statement());
    end_tag();
  }
  return list.first;
}

Node* Parser::parse_body(std::string_view end) {
  end_tag();
  Node* const body = parse_block({end});
  advance();
  return body;
}

Node* Parser::parse_statement() {
  struct Statement {
    std::string_view name;
    Op op;
    Node* (Parser::*parse)(Node*);
  };
  constexpr Statement kStatements[]{
      {"for", Op::loop, &Parser::parse_for},   {"if", Op::condition, &Parser::parse_if},
      {"set", Op::set, &Parser::parse_set},    {"macro", Op::macro, &Parser::parse_macro},
      {"with", Op::with, &Parser::parse_with}, {"call", Op::call_block, &Parser::parse_call_block},
      {"filter", Op::filter_block, nullptr},   {"generation", Op::block, nullptr},
      {"break", Op::leave, nullptr},           {"continue", Op::go_on, nullptr},
  };
  const auto* const found = std::ranges::find(kStatements, token_.text, &Statement::name);
  if (found == std::end(kStatements)) {
    work_.at = static_cast<std::uint32_t>(lexer_.at());
    work_.fail("there is no tag '{:.40}' here", token_.text);
    return nullptr;
  }
  Node* const node = make(found->op);
  if (node == nullptr) return nullptr;
  advance();
  if (found->parse != nullptr) return (this->*found->parse)(node);
  switch (found->op) {
    case Op::filter_block:
      node->a = parse_filters(parse_filter(nullptr));
      node->b = parse_body("endfilter");
      break;
    case Op::block:
      node->b = parse_body("endgeneration");
      break;
    default:
      if (loops_ == 0) work_.fail("'{}' is outside of a loop", found->name);
  }
  return node;
}

Node* Parser::parse_for(Node* node) {
  node->a = parse_target(false, "in");
  if (!take_name("in")) return unexpected();
  node->b = parse_tuple(false, false, "recursive");
  node->d = make(Op::block);
  if (node->d == nullptr) return nullptr;
  if (take_name("if")) node->d->b = parse_expression();
  if (take_name("recursive")) node->flags = kRecursive;
  end_tag();
  ++loops_;
  node->c = parse_block({"endfor", "else"});
  --loops_;
  const bool has_else = token_.is_name("else");
  advance();
  if (has_else) node->d->a = parse_body("endfor");
  return node;
}

Node* Parser::parse_if(Node* node) {
  for (Node* at = node; !work_.failed();) {
    at->a = parse_tuple(false, false, {});
    end_tag();
    at->b = parse_block({"elif", "else", "endif"});
    const Token token = token_;
    advance();
    if (token.is_name("else")) at->c = parse_body("endif");
    if (!token.is_name("elif")) break;
    at->d = make(Op::condition);
    if (at->d == nullptr) break;
    at = at->d;
  }
  return node;
}

Node* Parser::parse_set(Node* node) {
  node->a = parse_target(true, {});
  if (take("=")) {
    node->b = parse_tuple(true, false, {});
    return node;
  }
  node->op = Op::set_block;
  if (token_.is("|")) node->c = parse_filters(nullptr);
  node->b = parse_body("endset");
  return node;
}

Node* Parser::parse_with(Node* node) {
  NodeList sets;
  while (token_.kind != TokenKind::tag_end && !work_.failed()) {
    if (sets.first != nullptr) expect(",");
    Node* const set = make(Op::set);
    if (set == nullptr) return nullptr;
    set->a = parse_target(false, {});
    expect("=");
    set->b = parse_expression();
    sets.add(set);
  }
  node->a = sets.first;
  node->b = parse_body("endwith");
  return node;
}

Node* Parser::parse_macro(Node* node) {
  Node* const name = make_target(Op::name);
  if (name == nullptr) return nullptr;
  node->value = name->value;
  const auto names = std::exchange(names_, 0);
  const auto loops = std::exchange(loops_, 0);
  node->a = parse_parameters();
  node->b = parse_body("endmacro");
  node->flags = std::exchange(names_, names);
  loops_ = loops;
  return node;
}

Node* Parser::parse_call_block(Node* node) {
  const auto names = names_;
  const auto loops = std::exchange(loops_, 0);
  if (token_.is("(")) node->c = parse_parameters();
  node->a = parse_expression();
  if (node->a != nullptr && node->a->op != Op::call) work_.fail("a call block needs a call");
  names_ = 0;
  node->b = parse_body("endcall");
  node->flags = names_;
  names_ |= names;
  loops_ = loops;
  return node;
}

Node* Parser::parse_parameters() {
  NodeList list;
  expect("(");
  while (!token_.is(")") && !work_.failed()) {
    if (list.first != nullptr) expect(",");
    Node* const parameter = make_target(Op::parameter);
    if (parameter == nullptr) break;
    const std::string_view name = parameter->value.text->view();
    for (const Node* other = list.first; other != nullptr && work_.spend(1); other = other->next) {
      if (other->value.text->view() == name) work_.fail("'{:.60}' is a parameter twice", name);
    }
    if (take("=")) {
      parameter->a = parse_expression();
    } else if (list.last != nullptr && list.last->a != nullptr) {
      work_.fail("a parameter without a default follows one with a default");
    }
    list.add(parameter);
  }
  expect(")");
  return list.first;
}

Node* Parser::parse_target(bool with_space, std::string_view end) {
  NodeList list;
  bool is_tuple = false;
  do {
    if (list.first != nullptr && (token_.kind == TokenKind::tag_end || token_.is("=") || token_.is_name(end))) break;
    Node* target = nullptr;
    if (take("(")) {
      const Nested nested(work_);
      if (!nested) return nullptr;
      target = parse_target(with_space, {});
      expect(")");
    } else {
      target = make_target(Op::name);
      if (target != nullptr && with_space && take(".")) {
        Node* const name = make_named(Op::name);
        target->op = Op::space_target;
        target->a = name;
      }
    }
    list.add(target);
    is_tuple = is_tuple || token_.is(",");
  } while (take(",") && !work_.failed());
  return is_tuple ? make(Op::tuple, list.first) : list.first;
}

}  // namespace qsf::templates
