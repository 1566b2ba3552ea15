// The types that rows of weights can be written in: the formats, and other types of GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/types/decoded.h"
#include "qsf/file/writer.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// A format or another type. A type that is not a format has the id ggml_type() of its number. Only GGUF files can have
/// it.
struct WrittenType {
  const Format* format = nullptr;
  const StoredType* stored = nullptr;

  bool quantized() const { return stored != nullptr || format->quantized(); }
  std::string name() const;  // the name for users: "q4_0", "iq2_xxs"
  std::uint64_t row_bytes(std::uint64_t cols) const;
  void read_row(std::span<const std::byte> bytes, std::span<float> weights) const;
};

/// `id` must be a format's, or a result of written_id().
WrittenType written_type(FormatId id);
/// Returns the type of a name in any case, if it can be written.
std::optional<FormatId> written_id(std::string_view name);
/// Returns advice for a name of several llama.cpp types in one file, such as Q4_K_M; empty for other names.
std::string mixture_hint(std::string_view name);
/// Returns the stored type of a tensor if it can be written and is not a format.
std::optional<FormatId> stored_id(const SourceTensor& tensor);
/// Returns all names, formats first.
std::vector<std::string> written_names();

/// Returns the text with ASCII letters in lower case.
std::string lowered(std::string_view text);

/// Returns the bytes of a tensor's data in its file.
std::uint64_t written_bytes(const TensorSpec& tensor);

}  // namespace qsf::convert
