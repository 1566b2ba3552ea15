// The tables of filters, tests, global functions and methods. A row is one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "templates/value.h"

namespace qsf::templates {

class Machine;

/// The arguments of a call as given; keys of `named` are texts.
struct Arguments {
  const Value* values = nullptr;
  std::uint32_t n = 0;
  const Pair* named = nullptr;
  std::uint32_t n_named = 0;

  Value operator[](std::uint32_t i) const { return i < n ? values[i] : Value(); }
  /// Returns the arguments after the first.
  Arguments rest() const { return n == 0 ? *this : Arguments{values + 1, n - 1, named, n_named}; }
};

/// The most parameters of a row.
inline constexpr std::uint32_t kMostParameters = 6;

struct Call {
  Value self;                                 // the operand of a filter or test, or the object of a method
  const Value (&arguments)[kMostParameters];  // by parameter; missing if not given
  const Arguments& all;
  const Row& row;

  Value operator[](std::uint32_t i) const { return arguments[i]; }
};

struct Row {
  std::string_view name;
  std::string_view parameters;  // names; `?` is before an optional one, `*` stands for any further arguments
  Value (*run)(Machine&, const Call&);
};

/// Returns the row of a name, or null.
const Row* find_row(std::span<const Row> rows, std::string_view name);

const Row* find_filter(std::string_view name);
std::span<const Row> text_filters();
std::span<const Row> method_filters();  // those of texts that are methods too
std::span<const Row> list_filters();
std::span<const Row> tests();
std::span<const Row> functions();
std::span<const Row> text_methods();
std::span<const Row> list_methods();
std::span<const Row> dict_methods();
std::span<const Row> loop_methods();
std::span<const Row> cycler_methods();

}  // namespace qsf::templates
