// Where a model's bytes come from: read by ranges, whatever holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::convert {

struct Recipe;

struct Input {
  std::string name;  // for sentences
  std::uint64_t size = 0;
  /// Fills `into` with the bytes from `offset` on; both lie within the size.
  std::function<Status(std::uint64_t offset, std::span<std::byte> into)> read_at;

  /// The same for any range: truncated, naming the input, when it passes the end.
  Status read(std::uint64_t offset, std::span<std::byte> into) const;
};

/// Bytes in memory, which must outlive the input and all its copies.
Input input_of(std::string name, std::span<const std::byte> bytes);

/// The bytes of a range; truncated when the input does not have it.
Result<std::vector<std::byte>> read_range(const Input& input, std::uint64_t offset, std::uint64_t size);
/// The first `size` bytes, or all where there are fewer.
Result<std::vector<std::byte>> read_head(const Input& input, std::uint64_t size);

/// Files by their names.
struct InputFolder {
  std::string name;  // for sentences
  /// Empty when there is nothing of that name; an error when it is there but cannot be read.
  std::function<Result<std::optional<Input>>(const std::string& file)> find;
};

/// How a GGUF file's I2_S tensors lie; see gguf_ternary.cpp.
enum class TernaryLayout : std::uint8_t {
  automatic,  // as their sizes say
  microsoft,  // 128 weights to 32 bytes, one scale in the 32 bytes behind them all
  qk256,      // 256 weights to 64 bytes, no scale
  split32,    // 32 weights to 8 bytes, scales in a tensor of their own
  inline32,   // the same with an f16 scale behind each 8 bytes
};

/// What a user named as the model: a file or a folder.
struct ModelPlace {
  std::string name;                           // without folders and extension
  std::optional<Input> file;                  // empty: a folder
  std::vector<std::byte> head;                // the file's first kHeadBytes, or fewer where it is shorter
  InputFolder folder;                         // itself, or the one in which the file lies
  std::shared_ptr<const Recipe> recipe = {};  // empty: the one of the architecture that the model names
  TernaryLayout ternary = TernaryLayout::automatic;
};
inline constexpr std::uint64_t kHeadBytes = 64;

}  // namespace qsf::convert
