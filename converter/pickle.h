// Pickles as data: the opcodes that torch.save writes (protocol 2) and the names that make up tensors. Nothing is
// called; every other opcode or name is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::convert {

/// Bounds on one pickle: its bytes, and the values, the places of the stack and of the memo that it makes.
inline constexpr std::size_t kMaxPickleBytes = 8 << 20;
inline constexpr std::size_t kMaxPickleValues = 1 << 19;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  number,
  text,
  tuple,
  list,
  dict,     // keys and values in turn
  global,   // a line of kPickleGlobals
  storage,  // what a persistent id stands for: one element, the tuple that names it
  tensor,   // one element: the arguments of the constructor
};

/// What a name in a pickle stands for.
enum class PickleGlobal : std::uint8_t { ordered_dict, rebuild_tensor, rebuild_tensor_typed, rebuild_parameter, type };

struct GlobalName {
  std::string_view module, name;
  PickleGlobal meaning = PickleGlobal::type;
  std::string_view type = {};  // of a storage or dtype, as safetensors calls it; empty for untyped bytes
};

/// Values are numbered, so that one may be in several places.
using PickleId = std::uint32_t;

struct Pickle {
  struct Value {
    PickleKind kind = PickleKind::none;
    PickleGlobal global = PickleGlobal::type;  // of a tensor: its constructor
    std::uint32_t begin = 0;  // text: in the bytes; tuple, storage, tensor: in `items`; list, dict: of `containers`
    std::uint32_t size = 0;
    std::int64_t number = 0;  // also of a global: its line
  };
  std::span<const std::byte> bytes;
  std::vector<Value> values;
  std::vector<PickleId> items;
  std::vector<std::vector<PickleId>> containers;
  PickleId root = 0;
  std::size_t end = 0;  // bytes that the pickle takes

  const Value& operator[](PickleId id) const { return values[id]; }
  /// Of any value with elements; none of others.
  std::span<const PickleId> elements(PickleId id) const;
  std::optional<std::int64_t> number(PickleId id) const;
  std::optional<std::string_view> text(PickleId id) const;
  /// nullptr when the value is no name.
  const GlobalName* global(PickleId id) const;
};

/// Reads the pickle that `bytes`, which must outlive the result, begin with. truncated when they end before it does,
/// unsupported for opcodes and names that are refused, bad_input for damage; all name `file`.
Result<Pickle> read_pickle(std::span<const std::byte> bytes, std::string_view file);

}  // namespace qsf::convert
