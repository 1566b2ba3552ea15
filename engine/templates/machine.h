// Evaluates the tree of a template.
#pragma once

#include <cstdint>
#include <string_view>

#include "templates/library.h"
#include "templates/node.h"
#include "templates/writer.h"

namespace qsf::templates {

/// How statements ended.
enum class Flow : std::uint8_t { normal, leave, go_on };

/// A form of a value's text.
struct Style {
  enum Of : std::uint8_t { plain, repr, json };

  Of of = plain;
  bool sorted = false;  // the rest is for json
  bool ascii = false;
  const Text* indent = nullptr;     // for each level; null: in one line
  const Text* separator = nullptr;  // between items, ", " or "," if null
  const Text* colon = nullptr;      // after keys, ": " if null
};

/// The values that a loop goes through.
struct Items {
  Value* at = nullptr;
  std::uint32_t n = 0;

  Value* begin() const { return at; }
  Value* end() const { return at + n; }
};

class Machine {
 public:
  Machine(Work& work, const Variables& variables) : work(work), now(variables.now) {}

  /// Reads the variables and runs the statements.
  void run(const Node* body, const Variables& variables, const Sink& sink);

  // Expressions (evaluate.cpp, call.cpp). A missing value means failure.
  Value evaluate(const Node* node);
  Value call(const Value& function, const Arguments& arguments);
  Value call_row(const Row& row, const Value& self, const Arguments& arguments);

  // Operators (operators.cpp)
  Value binary(Op op, const Value& a, const Value& b);
  bool compare(Op op, const Value& a, const Value& b);  // false also after a failure
  bool equal(const Value& a, const Value& b);
  bool contains(const Value& container, const Value& value);
  /// Returns a number below, equal to or above 0; 0 after a failure.
  int order(const Value& a, const Value& b);
  static bool is_true(const Value& value);
  /// Returns the indices of `n` values in ascending or descending order, equal ones as they are; null after a failure.
  std::uint32_t* sorted(const Value* values, std::uint32_t n, bool descending);

  // Parts of values (access.cpp)
  Value attribute(const Value& object, const Text* name);
  Value item(const Value& object, const Value& key);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  /// Follows a path such as "function.name"; an integer is an index.
  Value path(const Value& object, const Value& path);
  /// Returns the items of an iterable value; of a dict, its keys. Fails for any other.
  Items items(const Value& value);
  /// Returns the length, or fails.
  std::uint32_t length(const Value& value);
  /// Finds the value of a text, or returns null, which also means a failure.
  Value* find(const Dict& dict, std::string_view key) {
    const Pair* const found = find(dict.pairs, dict.size, key);
    return found == nullptr ? nullptr : &dict.pairs[found - dict.pairs].value;
  }
  /// Finds the argument of a name, or returns null.
  const Pair* named(const Arguments& arguments, std::string_view name) {
    return find(arguments.named, arguments.n_named, name);
  }
  /// Sets a pair. Fails if the key is a list or a dict.
  void put(Dict& dict, const Value& key, const Value& value);
  Value make_list(Form form, const Value* items, std::uint32_t n);
  Dict* make_dict(std::uint32_t room);

  // Texts (print.cpp, access.cpp)
  void write(Writer& out, const Value& value, const Style& style);
  /// Returns str(value).
  const Text* text_of(const Value& value);
  Value slice_text(const Text& text, std::size_t begin, std::size_t end);
  std::uint32_t points(const Text& text);
  /// Returns the bytes before a character.
  std::size_t offset(const Text& text, std::uint32_t point);

  /// Finds a part of a text as string_view does, and counts the time that it may take.
  std::size_t search(std::string_view text, std::string_view part, std::size_t from = 0);
  std::size_t search_back(std::string_view text, std::string_view part);

  /// Reads a JSON text (json.cpp). Fails with bad_input.
  Value read_json(std::string_view json, Origin origin);
  /// Returns the name of the value's type in Python.
  static std::string_view type_name(const Value& value);
  /// Returns a whole number, or fails with 0.
  std::int64_t whole(const Value& value);

  Work& work;
  const Time now;
  std::string_view refusal;

 private:
  // Statements (run.cpp)
  Flow execute(const Node* list, Writer& out);
  Flow execute_one(const Node& node, Writer& out);
  Flow execute_in_scope(const Node* list, Writer& out);
  Flow execute_loop(const Node& node, Writer& out, const Value& iterable, Scope* scope, std::uint32_t depth);
  void assign(const Node* target, const Value& value);
  Value captured(const Node* body);
  Value filtered(const Node* filters, const Value& operand);
  Value make_macro(const Node& node, const Node* parameters, const Text* name);
  Scope* push();
  void set(const Text* name, const Value& value);

  // Expressions
  Value look_up(const Text* name);
  Value evaluate_dict(const Node& node);
  Value evaluate_list(const Node& node);
  Value evaluate_comparison(const Node& node);
  Value evaluate_item(const Node& node);
  Value evaluate_call(const Node& node, const Node* block);
  Value evaluate_filter(const Node& node);
  bool read_arguments(const Node* list, Arguments& out);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_loop(const Loop& loop, const Value& iterable);
  const Pair* find(const Pair* pairs, std::uint32_t n, std::string_view key);
  Value method(const Value& object, std::span<const Row> rows, std::string_view name);
  Value loop_attribute(const Loop& loop, std::string_view name);
  Value arithmetic(Op op, const Value& a, const Value& b);
  Value repeated(const Value& value, std::int64_t times);
  Value added(const Value& a, const Value& b);
  Value slice_list(const List& list, std::int64_t start, std::int64_t step, std::uint32_t n);
  void write_text(Writer& out, const Text& text, const Style& style);
  void write_list(Writer& out, const List& list, const Style& style);
  void write_dict(Writer& out, const Dict& dict, const Style& style);
  void write_break(Writer& out, const Style& style, std::uint32_t level);

  Scope* scope_ = nullptr;
  Dict* globals_ = nullptr;
  std::uint32_t level_ = 0;  // of the list or dict that is being written
};

}  // namespace qsf::templates
