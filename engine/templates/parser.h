// Builds the tree of a template.
#pragma once

#include <initializer_list>
#include <string_view>

#include "templates/lexer.h"
#include "templates/node.h"
#include "templates/work.h"

namespace qsf::templates {

/// Nodes in the order in which they are added.
struct NodeList {
  Node* first = nullptr;
  Node* last = nullptr;

  void add(Node* node) {
    if (node == nullptr) return;
    (last == nullptr ? first : last->next) = node;
    last = node;
  }
};

class Parser {
 public:
  Parser(Work& work, std::string_view source) : work_(work), lexer_(source) {}

  /// Returns the first statement, or null if there is none or after a failure of the work.
  Node* parse() { return parse_block({}); }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // statements (parser.cpp)
  Node* parse_block(Ends ends);
  Node* parse_body(std::string_view end);
  Node* parse_statement();
  Node* parse_for(Node* node);
  Node* parse_if(Node* node);
  Node* parse_set(Node* node);
  Node* parse_with(Node* node);
  Node* parse_macro(Node* node);
  Node* parse_call_block(Node* node);
  Node* parse_target(bool with_space, std::string_view end);
  Node* parse_parameters();
  void end_tag();

  // expressions (expressions.cpp)
  Node* parse_tuple(bool with_choice, bool in_brackets, std::string_view end);
  Node* parse_expression(bool with_choice = true);
  Node* parse_binary(int least);
  Node* parse_comparison(Node* left);
  Node* parse_unary(bool with_filters);
  Node* parse_primary();
  Node* parse_text();
  Node* parse_number();
  Node* parse_items(Op op, std::string_view close);
  Node* parse_postfix(Node* node);
  Node* parse_subscript(Node* object);
  Node* parse_filters(Node* node);
  Node* parse_filter(Node* operand);
  Node* parse_test(Node* operand);
  Node* parse_arguments();
  Op comparison_here();

  Node* make(Op op, Node* a = nullptr, Node* b = nullptr, Node* c = nullptr);
  Node* make_named(Op op);   // with the current name, which it takes
  Node* make_target(Op op);  // the same, for a name that gets a value
  static bool is_constant(std::string_view name);
  void advance() { token_ = lexer_.next(tag_); }
  bool take(std::string_view sign);
  bool take_name(std::string_view name);
  void expect(std::string_view sign);
  Node* unexpected();
  Token after() const;

  Work& work_;
  Lexer lexer_;
  Token token_;
  Tag tag_ = Tag::end;
  std::uint32_t loops_ = 0;  // around the statement, in the same macro
  std::uint8_t names_ = 0;   // flags of the special names in the macro's body
};

}  // namespace qsf::templates
