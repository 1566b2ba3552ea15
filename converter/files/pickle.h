// Pickles as data: the opcodes that torch.save writes (protocol 2), and the names that make up tensors. Nothing is
// called. All other opcodes and names are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::convert {

/// Limits on one pickle: its bytes, and the number of values, stack positions and memo entries.
inline constexpr std::size_t kMaxPickleBytes = 8 << 20;
inline constexpr std::size_t kMaxPickleValues = 1 << 19;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  number,
  text,
  tuple,
  list,
  dict,     // keys and values alternate
  global,   // a line of kPickleGlobals
  storage,  // the meaning of a persistent id. One element: the tuple that names the storage
  tensor,   // one element: the constructor's arguments
};

/// The meaning of a name in a pickle.
enum class PickleGlobal : std::uint8_t { ordered_dict, rebuild_tensor, rebuild_tensor_typed, rebuild_parameter, type };

struct GlobalName {
  std::string_view module, name;
  PickleGlobal meaning = PickleGlobal::type;
  std::string_view type = {};  // of a storage or dtype, in safetensors' words; empty for untyped bytes
};

/// The number of a value. A value may have several uses.
using PickleId = std::uint32_t;

struct Pickle {
  struct Value {
    PickleKind kind = PickleKind::none;
    PickleGlobal global = PickleGlobal::type;  // for a tensor, its constructor
    std::uint32_t begin = 0;  // text: in `bytes`; tuple, storage, tensor: in `items`; list, dict: in `containers`
    std::uint32_t size = 0;
    std::int64_t number = 0;  // for a global, its line
  };
  std::span<const std::byte> bytes;
  std::vector<Value> values;
  std::vector<PickleId> items;
  std::vector<std::vector<PickleId>> containers;
  PickleId root = 0;
  std::size_t end = 0;  // the pickle's size in bytes

  const Value& operator[](PickleId id) const { return values[id]; }
  /// Returns the elements of a value, or none.
  std::span<const PickleId> elements(PickleId id) const;
  std::optional<std::int64_t> number(PickleId id) const;
  std::optional<std::string_view> text(PickleId id) const;
  /// Returns null if the value is not a name.
  const GlobalName* global(PickleId id) const;
};

/// Reads the pickle at the start of `bytes`, which must outlive the result. Returns truncated if the bytes end early,
/// unsupported for refused opcodes and names, bad_input for damage. All errors name `file`.
Result<Pickle> read_pickle(std::span<const std::byte> bytes, std::string_view file);

}  // namespace qsf::convert
