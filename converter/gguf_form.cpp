#include "converter/gguf_form.h"

#include <algorithm>
#include <array>
#include <string>

namespace qsf::convert {
namespace {

struct Float {
  std::uint32_t number;
  FormatId format;
};
constexpr std::array kFloats{Float{0, FormatId::f32}, Float{1, FormatId::f16}, Float{30, FormatId::bf16}};

constexpr std::uint32_t kQuantized = 64;  // quantized types are 64 + n

/// What takes a type's place where 256 weights do not divide a row, as llama-quantize has it.
struct Narrow {
  FormatId wide, narrow;
};
constexpr std::array kNarrow{
    Narrow{ggml_type(10), ggml_type(20)}, Narrow{ggml_type(11), ggml_type(20)}, Narrow{ggml_type(12), ggml_type(6)},
    Narrow{ggml_type(13), ggml_type(7)},  Narrow{ggml_type(14), ggml_type(8)},  Narrow{ggml_type(34), ggml_type(2)},
    Narrow{ggml_type(35), ggml_type(2)},
};

Error no_type(const Format& format) {
  std::string types;
  for (const Format& other : kFormats) {
    if (!ggml_number(other.id)) continue;
    if (!types.empty()) types += ", ";
    types += other.name;
  }
  return make_error(ErrorCode::unsupported, "GGUF has no type {}; it has {}", format.name, types);
}

}  // namespace

std::optional<std::uint32_t> ggml_number(FormatId format) {
  for (const Float& line : kFloats) {
    if (line.format == format) return line.number;
  }
  const auto id = static_cast<std::uint32_t>(format);
  if (id < kQuantized || id == static_cast<std::uint32_t>(FormatId::inherit) || !find_format(format)) return {};
  return id - kQuantized;
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
  const Format& f = *find_format(format);
  if (!ggml_number(format)) return no_type(f);
  if (cols % f.block == 0) return format;
  const auto narrow = std::ranges::find(kNarrow, format, &Narrow::wide);
  if (narrow != kNarrow.end() && cols % find_format(narrow->narrow)->block == 0) return narrow->narrow;
  return FormatId::f16;
}

}  // namespace qsf::convert
