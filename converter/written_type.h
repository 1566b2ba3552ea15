// What rows of weights can be written as: the formats, and what GGUF has beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/decoded.h"
#include "qsf/file/writer.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// One of both. A type that is no format has the id that ggml_type() gives its number, and is of GGUF files alone.
struct WrittenType {
  const Format* format = nullptr;
  const StoredType* stored = nullptr;

  bool quantized() const { return stored != nullptr || format->quantized(); }
  std::string name() const;  // as people write it: "q4_0", "iq2_xxs"
  std::uint64_t row_bytes(std::uint64_t cols) const;
  void read_row(std::span<const std::byte> bytes, std::span<float> weights) const;
};

/// `id`: of a format, or one that written_id() gave.
WrittenType written_type(FormatId id);
/// Empty for names of nothing that can be written.
std::optional<FormatId> written_id(std::string_view name);
/// What a tensor is stored as, where that is no format and can be written.
std::optional<FormatId> stored_id(const SourceTensor& tensor);
/// Of all of them, formats first.
std::vector<std::string> written_names();

/// Of a tensor's data in its file.
std::uint64_t written_bytes(const TensorSource& tensor);

}  // namespace qsf::convert
