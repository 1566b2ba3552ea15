// A JSON schema as a graph of conditions. Conditions on one value are combined by `all`, `any`, `one`, `other` and
// `branch`; those on members and elements refer to further nodes.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/checks.h"
#include "qsf/base/json.h"
#include "qsf/base/result.h"
#include "qsf/grammar/grammar.h"

namespace qsf::grammar {

inline constexpr std::uint32_t kNoLimit = 0xFFFFFFFF;

enum class NodeOp : std::uint8_t {
  always,
  never,
  all,     // of the list [a, a + b)
  any,     // at least one of the list
  one,     // exactly one of the list
  other,   // not a
  branch,  // if a then b else c
  type,    // the value's type is one of the bits in a
  string,  // the text of a string passes check a
  length,  // a string has a to b characters
  number,  // a number passes check a
  object,  // an object follows rule a
  array,   // an array follows rule a
  has,     // it is an object with a member named a (of names)
};

/// The types of JSON, as bits of NodeOp::type. An integer is a number that passes a check.
enum class Type : std::uint8_t { null, no, yes, number, string, array, object };
inline constexpr std::uint32_t kTypes = 7;
constexpr std::uint32_t bit(Type type) { return 1u << static_cast<std::uint32_t>(type); }
inline constexpr std::uint32_t kBooleans = bit(Type::no) | bit(Type::yes);

struct SchemaNode {
  NodeOp op = NodeOp::always;
  std::uint32_t a = 0, b = 0, c = 0;
};

/// A member by name, or members whose names pass a check.
struct MemberRule {
  std::uint32_t name = 0;  // of names, or a check
  std::uint32_t node = 0;
};

struct ObjectRule {
  std::uint32_t first_member = 0, n_members = 0;     // of members
  std::uint32_t first_pattern = 0, n_patterns = 0;   // of members
  std::uint32_t others = 0;                          // the node of all other members
  std::uint32_t first_required = 0, n_required = 0;  // of lists: names
  std::uint32_t least = 0, most = kNoLimit;          // members
  std::uint32_t names = 0;                           // the node of names
};

struct ArrayRule {
  std::uint32_t first_item = 0, n_items = 0;  // of lists: nodes of the first elements
  std::uint32_t others = 0;                   // the node of all others
  std::uint32_t least = 0, most = kNoLimit;   // elements
  std::uint32_t contains = 0;                 // a node
  std::uint32_t least_contained = 0, most_contained = kNoLimit;
};

inline constexpr std::uint32_t kAlwaysNode = 1, kNeverNode = 2;

struct Schema {
  Table<SchemaNode> nodes;
  Table<std::uint32_t> lists;
  Table<MemberRule> members;
  Table<ObjectRule> objects;
  Table<ArrayRule> arrays;
  Table<std::string_view> names;  // of members, each once
  std::uint32_t root = 0;

  bool init(Store& store);
};

/// Reads a JSON schema. Fails with bad_input for a mistake, and with unsupported for a keyword or a value of one that
/// cannot be held, which the sentence names. Texts of `document` must outlive the schema.
Status read_schema(const json::Document& document, Integers integers, Store& store, Terms& terms, Checks& checks,
                   Schema& schema);

}  // namespace qsf::grammar
