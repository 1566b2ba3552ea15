// Types of tensors beside the formats of a file: they are turned to f32 while they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "converter/iq_search.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

struct StoredType {
  std::string_view name;  // as safetensors or GGUF call it
  std::uint32_t block;    // weights that share block_bytes
  std::uint32_t block_bytes;
  FormatId format = FormatId::inherit;                               // the same as a format of a file, or
  bool (*decode)(const std::byte* block, float* weights) = nullptr;  // false where f32 cannot hold one
  EncodeBlock* encode = nullptr;                                     // null where nothing is written in it
};

std::span<const StoredType> stored_types();
/// nullptr for types that cannot be read.
const StoredType* find_stored_type(std::string_view name);

/// The product of shape and element size; empty when it passes 2^63.
std::optional<std::uint64_t> bytes_of(std::span<const std::uint64_t> shape, std::uint64_t element);

/// Gives a tensor, which has name, type and shape, its format and rows: `size` bytes of `input` from `begin` on, which
/// are the shape's. Its innermost extent is a multiple of the type's block.
void place_rows(const StoredType& type, const Input& input, std::uint64_t begin, std::uint64_t size, SourceTensor& out);

}  // namespace qsf::convert
