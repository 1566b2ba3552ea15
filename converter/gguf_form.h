// Formats as GGUF's types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// GGML's name of the type of a number; "type 77" where none is known.
std::string ggml_name(std::uint32_t number);
std::optional<std::uint32_t> ggml_number_named(std::string_view name);

/// GGML's number of a type; empty for formats that it does not have.
std::optional<std::uint32_t> ggml_number(FormatId format);
/// The inverse; FormatId::inherit for types that are no formats.
FormatId ggml_format(std::uint32_t number);

/// What a matrix of `cols` columns is written as where `format` is asked for: itself; where its rows are no whole
/// blocks, as GGUF's must be, what llama.cpp's llama-quantize takes then, and f16 in the end. unsupported, naming what
/// there is, for formats that GGML does not have.
Result<FormatId> ggml_form(FormatId format, std::uint32_t cols);

}  // namespace qsf::convert
