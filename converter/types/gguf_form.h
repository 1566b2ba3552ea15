// Formats as types of GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// Returns GGML's name of the type with a number; "type 77" for an unknown one.
std::string ggml_name(std::uint32_t number);
std::optional<std::uint32_t> ggml_number_named(std::string_view name);

/// Returns GGML's number of a type; empty for formats that GGML does not have.
std::optional<std::uint32_t> ggml_number(FormatId format);
/// Returns llama.cpp's number of files of that type (llama_ftype); for K-quants, of files with one type for all
/// tensors. Empty if it has none.
std::optional<std::uint32_t> ggml_file_type(FormatId format);
/// Returns the inverse of ggml_number; FormatId::inherit for types that are not formats.
FormatId ggml_format(std::uint32_t number);

/// Returns the type of a matrix of `cols` columns for a requested `format`: the format itself, or if rows are not whole
/// blocks (as GGUF requires), the replacement in llama.cpp's llama-quantize, and f16 as the last resort. Returns
/// unsupported, with a list of formats, for formats that GGML does not have.
Result<FormatId> ggml_form(FormatId format, std::uint32_t cols);

}  // namespace qsf::convert
