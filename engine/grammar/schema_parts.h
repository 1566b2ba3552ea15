// The parts that readers of a schema share: its nodes in the making, and its errors.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/schema.h"
#include "qsf/base/json.h"

namespace qsf::grammar {

struct SchemaParts {
  struct List {
    std::uint32_t first, count;
  };

  static Error refused(std::string_view keyword, std::string_view why) {
    return make_error(ErrorCode::unsupported, "the schema's keyword '{:.60}' is not supported here: {}", keyword, why);
  }
  static Error wrong(std::string_view keyword, std::string_view wanted) {
    return make_error(ErrorCode::bad_input, "the schema's keyword '{:.60}' must be {}", keyword, wanted);
  }

  std::uint32_t add(NodeOp op, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
    return s.nodes.add({op, a, b, c});
  }
  /// Ends a list of nodes that began at a size of list.
  List list_from(std::uint32_t begin) {
    const List made{s.lists.size(), list.size() - begin};
    for (std::uint32_t i = begin; i < list.size(); ++i) s.lists.add(list[i]);
    list.shrink(begin);
    return made;
  }
  std::uint32_t combine(NodeOp op, std::uint32_t begin) {
    if (list.size() == begin + 1) {
      const std::uint32_t only = list[begin];
      list.shrink(begin);
      return only;
    }
    const List made = list_from(begin);
    return add(op, made.first, made.count);
  }
  std::uint32_t name_of(std::string_view name) {
    std::uint64_t hash = 0;
    for (const char c : name) hash = mix(hash, static_cast<std::uint8_t>(c));
    return by_name.find_or(
        hash, [&](std::uint32_t i) { return s.names[i] == name; }, [&] { return s.names.add(name); });
  }

  const json::Document& d;
  Store& store;
  Terms& terms;
  Checks& checks;
  Schema& s;
  Integers integers;
  Table<std::uint32_t> list = {};  // nodes that are being gathered
  Index by_name = {};              // of s.names
};

/// Returns the node of values that equal one of the chain that begins with `first`.
Result<std::uint32_t> literals(SchemaParts& parts, std::uint32_t first, std::string_view keyword);
/// Returns the node of values that equal one.
Result<std::uint32_t> literal(SchemaParts& parts, std::uint32_t value, std::string_view keyword);
/// Returns the schema that the value of $ref refers to. Fails with unsupported if it is not in the document. `unnamed`
/// is the schema with the $ref if its own $id does not count, else 0.
Result<std::uint32_t> referred(const json::Document& document, std::uint32_t ref, std::uint32_t unnamed);
/// Refuses schemas that apply to a value only if they apply to it.
Status check_circles(SchemaParts& parts);

}  // namespace qsf::grammar
