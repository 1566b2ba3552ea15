// The bytes of a model, read by ranges from any kind of storage.
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
  std::string name;  // for error sentences
  std::uint64_t size = 0;
  /// Fills `into` with the bytes from `offset` on. The range must be within the size.
  std::function<Status(std::uint64_t offset, std::span<std::byte> into)> read_at;
  std::uint32_t number = 0;  // of the file, as in InputRun

  /// Reads any range. Returns truncated, with the input's name, if the range passes the end.
  Status read(std::uint64_t offset, std::span<std::byte> into) const;
};

/// Returns an input over bytes in memory, which must outlive the input and all its copies.
Input input_of(std::string name, std::span<const std::byte> bytes);

/// Returns the bytes of a range, or truncated if the input does not have it.
Result<std::vector<std::byte>> read_range(const Input& input, std::uint64_t offset, std::uint64_t size);
/// Returns the first `size` bytes, or all if there are fewer.
Result<std::vector<std::byte>> read_head(const Input& input, std::uint64_t size);

/// Files by their names.
struct InputFolder {
  std::string name;  // for error sentences
  /// Empty if no file has the name; an error if it exists but cannot be read.
  std::function<Result<std::optional<Input>>(const std::string& file)> find;
};

/// The storage order of a GGUF file's I2_S tensors; see readers/gguf/ternary.cpp.
enum class TernaryLayout : std::uint8_t {
  automatic,  // decided by the tensors' sizes
  microsoft,  // 128 weights in 32 bytes; one scale in the last 32 bytes
  qk256,      // 256 weights in 64 bytes, no scale
  split32,    // 32 weights in 8 bytes, scales in a tensor of their own
  inline32,   // 32 weights in 8 bytes, followed by their f16 scale
};

/// The file or folder that a user named as the model.
struct ModelLocation {
  std::string name;                           // without folders and extension
  std::optional<Input> file;                  // empty for a folder
  std::vector<std::byte> head;                // the file's first kHeadBytes, or fewer if it is shorter
  InputFolder folder;                         // the folder itself, or the one that contains the file
  std::shared_ptr<const Recipe> recipe = {};  // empty for the recipe of the model's architecture
  TernaryLayout ternary = TernaryLayout::automatic;
};
inline constexpr std::uint64_t kHeadBytes = 64;

}  // namespace qsf::convert
