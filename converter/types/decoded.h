// Types of tensors that are not formats of a file. They are decoded to f32 when they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

struct StoredType {
  std::string_view name;  // in the words of safetensors or GGUF
  std::uint32_t block;    // weights in block_bytes bytes
  std::uint32_t block_bytes;
  FormatId format = FormatId::inherit;                               // the same type as a format of a file, or
  bool (*decode)(const std::byte* block, float* weights) = nullptr;  // returns false if f32 cannot represent a weight
};

std::span<const StoredType> stored_types();
/// Returns null for types that cannot be read.
const StoredType* find_stored_type(std::string_view name);

/// Returns the product of shape and element size; empty if it passes 2^63.
std::optional<std::uint64_t> bytes_of(std::span<const std::uint64_t> shape, std::uint64_t element);

/// Gives a tensor, which has name, type and shape, its format and rows: `size` bytes of `input` from `begin` on. The
/// size must fit the shape. The innermost extent must be a multiple of the type's block.
void place_rows(const StoredType& type, const Input& input, std::uint64_t begin, std::uint64_t size, LoadedTensor& out);

}  // namespace qsf::convert
