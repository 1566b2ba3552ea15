// The tools that an answer may call, and the types of their parameters, from definitions in JSON.
#pragma once

#include <cstdint>
#include <string_view>

#include "qsf/base/json.h"
#include "qsf/base/result.h"
#include "qsf/base/store.h"

namespace qsf::answers {

/// A set of the types that a JSON schema names.
using Types = std::uint8_t;
namespace types {
inline constexpr Types kUnknown = 0, kNull = 1, kBoolean = 2, kInteger = 4, kNumber = 8, kString = 16, kArray = 32,
                       kObject = 64;
}

class Tools {
 public:
  /// Returns a conversation's tools, which are the list `tools` of `more`, or else of `values`: JSON objects, or empty.
  /// Definitions are those of OpenAI's interface, with or without {"type": "function", "function": ...}; others are for
  /// the template only. Copies names into `store`, and uses `scratch` during the call. Fails with bad_input for a text
  /// that is not JSON, and with out_of_memory.
  static Result<Tools> read(std::string_view values, std::string_view more, Store& store, Store& scratch);

  bool any() const { return n_tools_ != 0; }
  bool has(std::string_view name) const;
  /// Returns the types that a parameter of a tool may have, or kUnknown.
  Types types_of(std::string_view tool, std::string_view parameter) const;

 private:
  struct Parameter {
    std::string_view name;
    std::uint32_t tool = 0;
    Types types = types::kUnknown;
  };

  void add(const json::Document& document, std::uint32_t tool, Store& store);
  void add_parameters(const json::Document& document, std::uint32_t schema, std::uint32_t tool, Store& store);

  Table<std::string_view> names_;
  Table<Parameter> parameters_;
  std::uint32_t n_tools_ = 0;
};

}  // namespace qsf::answers
