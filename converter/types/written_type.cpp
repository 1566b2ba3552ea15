#include "converter/types/written_type.h"

#include <algorithm>
#include <array>

#include "converter/types/gguf_form.h"

namespace qsf::convert {
namespace {

/// Calls visit(id, type) for every type that can be written and is not a format.
template <class Visit>
void visit_others(Visit visit) {
  for (const StoredType& type : stored_types()) {
    if (type.encode == nullptr) continue;
    if (const std::optional<std::uint32_t> number = ggml_number_named(type.name)) {
      visit(ggml_type(static_cast<std::uint8_t>(*number)), type);
    }
  }
}

}  // namespace

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string WrittenType::name() const { return stored != nullptr ? lowered(stored->name) : std::string(format->name); }

std::uint64_t WrittenType::row_bytes(std::uint64_t cols) const {
  return stored != nullptr ? cols / stored->block * stored->block_bytes : qsf::row_bytes(*format, cols);
}

void WrittenType::read_row(std::span<const std::byte> bytes, std::span<float> weights) const {
  if (stored == nullptr) return dequantize_row(*format, bytes, weights);
  for (std::size_t block = 0; block < weights.size() / stored->block; ++block) {
    stored->decode(&bytes[block * stored->block_bytes], &weights[block * stored->block]);
  }
}

WrittenType written_type(FormatId id) {
  WrittenType out{find_format(id)};
  if (out.format == nullptr) {
    visit_others([&](FormatId other, const StoredType& type) {
      if (other == id) out.stored = &type;
    });
  }
  return out;
}

std::optional<FormatId> written_id(std::string_view name) {
  const std::string wanted = lowered(name);
  if (const Format* const format = find_format(std::string_view(wanted))) return format->id;
  std::optional<FormatId> out;
  visit_others([&](FormatId id, const StoredType& type) {
    if (lowered(type.name) == wanted) out = id;
  });
  return out;
}

std::string mixture_hint(std::string_view name) {
  const std::size_t last = name.rfind('_');
  if (last == name.npos || written_id(name)) return {};
  const std::optional<FormatId> type = written_id(name.substr(0, last));
  constexpr std::array<std::string_view, 5> kSizes{"_xs", "_s", "_m", "_l", "_xl"};
  if (!type || std::ranges::find(kSizes, lowered(name.substr(last))) == kSizes.end()) return {};
  return std::string(name) + " is one of llama.cpp's mixtures of types: " + written_type(*type).name() +
         " is a type for all matrices, --tensor-type gives some another, and --quant-type mixed chooses one for each";
}

std::optional<FormatId> stored_id(const SourceTensor& tensor) {
  return tensor.stored_rows ? written_id(lowered(tensor.type)) : std::nullopt;
}

std::vector<std::string> written_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  visit_others([&](FormatId, const StoredType& type) { names.push_back(lowered(type.name)); });
  return names;
}

std::uint64_t written_bytes(const TensorSpec& tensor) {
  const WrittenType type = written_type(tensor.format);
  if (type.stored != nullptr) return tensor.rows * type.row_bytes(tensor.cols);
  return tensor_bytes(*type.format, tensor.layout, tensor.rows, tensor.cols);
}

}  // namespace qsf::convert
