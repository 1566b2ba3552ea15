#include "converter/types/gguf_form.h"

#include <algorithm>
#include <array>
#include <string>

#include "converter/types/written_type.h"

namespace qsf::convert {
namespace {

struct Float {
  std::uint32_t number;
  FormatId format;
};
constexpr std::array kFloats{Float{0, FormatId::f32}, Float{1, FormatId::f16}, Float{30, FormatId::bf16}};

struct TensorType {
  std::uint32_t number;
  std::string_view name;
};
constexpr std::array kTensorTypes{
    TensorType{0, "F32"},      TensorType{1, "F16"},     TensorType{2, "Q4_0"},     TensorType{3, "Q4_1"},
    TensorType{6, "Q5_0"},     TensorType{7, "Q5_1"},    TensorType{8, "Q8_0"},     TensorType{9, "Q8_1"},
    TensorType{10, "Q2_K"},    TensorType{11, "Q3_K"},   TensorType{12, "Q4_K"},    TensorType{13, "Q5_K"},
    TensorType{14, "Q6_K"},    TensorType{15, "Q8_K"},   TensorType{16, "IQ2_XXS"}, TensorType{17, "IQ2_XS"},
    TensorType{18, "IQ3_XXS"}, TensorType{19, "IQ1_S"},  TensorType{20, "IQ4_NL"},  TensorType{21, "IQ3_S"},
    TensorType{22, "IQ2_S"},   TensorType{23, "IQ4_XS"}, TensorType{24, "I8"},      TensorType{25, "I16"},
    TensorType{26, "I32"},     TensorType{27, "I64"},    TensorType{28, "F64"},     TensorType{29, "IQ1_M"},
    TensorType{30, "BF16"},    TensorType{34, "TQ1_0"},  TensorType{35, "TQ2_0"},   TensorType{36, "I2_S"},
    TensorType{39, "MXFP4"},   TensorType{40, "NVFP4"},  TensorType{41, "Q1_0"},    TensorType{42, "Q2_0"},
};

constexpr std::uint32_t kQuantized = 64;  // quantized types have the id 64 + n

/// The number of a file whose tensors have a type, by the type's number.
struct FileType {
  std::uint32_t type, file;
};
constexpr std::array kFileTypes{
    FileType{0, 0},   FileType{1, 1},   FileType{2, 2},   FileType{3, 3},   FileType{6, 8},   FileType{7, 9},
    FileType{8, 7},   FileType{10, 10}, FileType{11, 11}, FileType{12, 14}, FileType{13, 16}, FileType{14, 18},
    FileType{16, 19}, FileType{17, 20}, FileType{18, 23}, FileType{19, 24}, FileType{20, 25}, FileType{21, 26},
    FileType{22, 28}, FileType{23, 30}, FileType{29, 31}, FileType{30, 32}, FileType{34, 36}, FileType{35, 37},
    FileType{39, 38}, FileType{40, 39}, FileType{41, 40}, FileType{42, 41},
};

/// The replacement of a type if 256 weights do not divide a row, as in llama-quantize.
struct Narrow {
  FormatId wide, narrow;
};
constexpr std::array kNarrow{
    Narrow{ggml_type(10), ggml_type(20)}, Narrow{ggml_type(11), ggml_type(20)}, Narrow{ggml_type(12), ggml_type(6)},
    Narrow{ggml_type(13), ggml_type(7)},  Narrow{ggml_type(14), ggml_type(8)},  Narrow{ggml_type(34), ggml_type(2)},
    Narrow{ggml_type(35), ggml_type(2)},
};

constexpr FormatId kNarrowOfGrids = ggml_type(20);

Error no_type(const Format& type) {
  std::string types;
  for (const Format& format : kFormats) {
    if (!ggml_number(format.id)) continue;
    if (!types.empty()) types += ", ";
    types += format.name;
  }
  return make_error(ErrorCode::unsupported, "GGUF has no type {}; it has {}", type.name, types);
}

}  // namespace

std::string ggml_name(std::uint32_t number) {
  const auto* const at = std::ranges::find(kTensorTypes, number, &TensorType::number);
  return at != kTensorTypes.end() ? std::string(at->name) : "type " + std::to_string(number);
}

std::optional<std::uint32_t> ggml_number_named(std::string_view name) {
  const auto* const at = std::ranges::find(kTensorTypes, name, &TensorType::name);
  return at != kTensorTypes.end() ? std::optional(at->number) : std::nullopt;
}

std::optional<std::uint32_t> ggml_number(FormatId format) {
  for (const Float& line : kFloats) {
    if (line.format == format) return line.number;
  }
  const auto id = static_cast<std::uint32_t>(format);
  if (id < kQuantized || id == static_cast<std::uint32_t>(FormatId::inherit)) return {};
  if (find_format(format) == nullptr) return {};
  return id - kQuantized;
}

std::optional<std::uint32_t> ggml_file_type(FormatId format) {
  const std::optional<std::uint32_t> number = ggml_number(format);
  const auto* const at = number ? std::ranges::find(kFileTypes, *number, &FileType::type) : kFileTypes.end();
  return at != kFileTypes.end() ? std::optional(at->file) : std::nullopt;
}

FormatId ggml_format(std::uint32_t number) {
  for (const Float& line : kFloats) {
    if (line.number == number) return line.format;
  }
  if (number >= 2 * kQuantized) return FormatId::inherit;
  const auto id = static_cast<FormatId>(kQuantized + number);
  return find_format(id) ? id : FormatId::inherit;
}

Result<FormatId> ggml_form(FormatId format, std::uint32_t cols) {
  const Format& type = format_of(format);
  if (!ggml_number(format)) return no_type(type);
  if (cols % type.block == 0) return format;
  const auto at = std::ranges::find(kNarrow, format, &Narrow::wide);
  const FormatId narrow = type.grid != Grid::none ? kNarrowOfGrids : at != kNarrow.end() ? at->narrow : FormatId::f16;
  return cols % find_format(narrow)->block == 0 ? narrow : FormatId::f16;
}

}  // namespace qsf::convert
