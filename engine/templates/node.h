// The tree of a template.
#pragma once

#include <cstdint>

#include "templates/value.h"

namespace qsf::templates {

enum class Op : std::uint8_t {
  // Expressions
  constant,   // value
  name,       // value.text
  list,       // a: the first item
  tuple,      // a: the first item
  dict,       // a: the first pair
  pair,       // a: key, b: value
  attribute,  // a: object, value.text: name
  item,       // a: object, b: key or a slice
  slice,      // a: start, b: stop, c: step; each may be null
  call,       // a: function, b: the first argument
  filter,     // a: operand, or null in a filter block; b: the first argument, row
  test,       // as a filter
  argument,   // a: expression, value.text: name or null
  spread,     // a: a list of further arguments
  spread_named,
  negative,  // a
  positive,
  negation,
  both,  // a and b
  either,
  choice,  // a: condition, b: value, c: other value or null
  // Binary operators, a and b
  add,
  subtract,
  multiply,
  divide,
  divide_whole,
  remainder,
  power,
  join,
  // A comparison is a chain: a, then the operands in b, each an operator with its value in a
  comparison,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  // Statements
  output,        // value.text
  print,         // a
  condition,     // a: condition, b: body, c: body of else, d: the condition of elif
  loop,          // a: target, b: iterable, c: body, d: a node with a: body of else, b: condition of items
  set,           // a: target, b: expression
  set_block,     // a: target, b: body, c: filters or null
  space_target,  // value.text: namespace, a: a name
  macro,         // value.text: name, a: the first parameter, b: body
  parameter,     // value.text: name, a: default or null
  call_block,    // a: call, b: body, c: the first parameter
  filter_block,  // a: filters, b: body
  with,          // a: the first `set`, b: body
  block,         // b: body, with variables of its own
  leave,         // break
  go_on,         // continue
};

/// Flags of a node.
enum : std::uint8_t {
  kRecursive = 1,   // a loop that may be called
  kUsesCaller = 2,  // a macro whose body has these names
  kUsesVarargs = 4,
  kUsesKwargs = 8,
};

struct Node {
  Op op;
  std::uint8_t flags;
  std::uint32_t at;  // bytes before it in the template
  Node *a, *b, *c, *d;
  Node* next;  // the next node of the same list
  Value value;
  const Row* row;
};

}  // namespace qsf::templates
