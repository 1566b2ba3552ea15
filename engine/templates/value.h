// The values of templates. A value is 16 bytes; its data is in the pool and, except for namespaces, cyclers,
// joiners and loops, does not change.
#pragma once

#include <cstdint>
#include <string_view>

namespace qsf::templates {

struct Node;
struct Row;
struct Value;

enum class Kind : std::uint8_t {
  missing,  // no value: an argument that is not given, or a failed evaluation
  undefined,
  none,
  boolean,
  integer,
  real,
  text,
  list,
  dict,
  space,  // a namespace
  macro,
  function,  // a global function, or a method with its object
  loop,
  cycler,
  joiner,
};

/// The source of a text's bytes.
enum class Origin : std::uint8_t {
  own,    // the template or a special token
  input,  // a value of the variables
  mixed,  // `Text::origins` states it for each byte
};

struct Text {
  const char* bytes;
  const Origin* origins;  // one for each byte; only if `origin` is mixed
  std::uint32_t size;
  mutable std::uint32_t points;  // characters; 0 if they have not been counted
  Origin origin;
  bool safe;  // the result of the filters `safe` or `escape`: an addition escapes the other side

  std::string_view view() const { return {bytes, size}; }
};

/// The types of Python that are lists here.
enum class Form : std::uint8_t {
  list,
  tuple,
  range,
  group,  // a tuple of `grouper` and `list`
  view,   // of a dict: has a length but no items
  lazy,   // a generator: always true, and empty after it has been read
};

struct List {
  Value* items;
  std::uint32_t size;
  Form form;
};

struct Pair;
/// Pairs in the order of insertion; no two keys are equal.
struct Dict {
  Pair* pairs;
  std::uint32_t size, room;
};

struct Value {
  Kind kind = Kind::missing;
  union {
    bool boolean;
    std::int64_t integer = 0;
    double real;
    const Text* text;  // of a text; the name of an undefined value, or null
    List* list;
    Dict* dict;  // of a dict or a namespace
    struct Macro* macro;
    struct Function* function;
    struct Loop* loop;
    struct Cycler* cycler;  // or a joiner
  };

  Value() = default;
  explicit Value(Kind of) : kind(of) {}
  explicit Value(const Text* of) : kind(Kind::text), text(of) {}

  explicit operator bool() const { return kind != Kind::missing; }
  bool is(Kind other) const { return kind == other; }
  bool is_text() const { return kind == Kind::text; }
  /// Whether Python counts it as an int; a bool is one.
  bool is_whole() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_whole() || kind == Kind::real; }
  std::int64_t whole() const { return kind == Kind::boolean ? boolean : integer; }
  double number() const { return kind == Kind::real ? real : static_cast<double>(whole()); }
};

inline Value boolean(bool of) {
  Value value(Kind::boolean);
  value.boolean = of;
  return value;
}
inline Value integer(std::int64_t of) {
  Value value(Kind::integer);
  value.integer = of;
  return value;
}
inline Value real(double of) {
  Value value(Kind::real);
  value.real = of;
  return value;
}
inline Value undefined(const Text* name) {
  Value value(Kind::undefined);
  value.text = name;
  return value;
}

struct Pair {
  Value key, value;
};

struct Variable {
  const Text* name;
  Value value;
  Variable* next;
};
/// The variables of a block. Blocks see those of their parents and set their own.
struct Scope {
  Scope* parent;
  Variable* first;
};

struct Macro {
  const Text* name;  // null for the body of a call block
  const Node* node;  // of Op::macro or Op::call_block
  const Node* parameters;
  Scope* scope;  // where it was defined
};

struct Function {
  Value self;  // missing for a global function
  const Row* row;
};

struct Loop {
  const Node* node;
  Scope* scope;  // around the loop
  Value* items;
  std::uint32_t size, at, depth;
  List* changed;  // the arguments of the last changed(), or null
};

/// A cycler returns its items in turn; a joiner nothing at first, then its only item.
struct Cycler {
  List* items;
  std::uint32_t at;
};

}  // namespace qsf::templates
