// Names and sizes of the types that rows of weights are written in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "qsf/file/writer.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// Returns the format of an identifier that is one.
const Format& format_of(FormatId id);
/// Returns the format of a name in any case.
std::optional<FormatId> written_id(std::string_view name);
/// Returns advice for a name of several llama.cpp types in one file, such as Q4_K_M; empty for other names.
std::string mixture_hint(std::string_view name);

/// Returns the text with ASCII letters in lower case.
std::string lowered(std::string_view text);

/// Returns the bytes of a tensor's data in its file.
std::uint64_t written_bytes(const TensorSpec& tensor);

}  // namespace qsf::convert
