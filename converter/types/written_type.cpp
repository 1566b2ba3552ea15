#include "converter/types/written_type.h"

#include <algorithm>
#include <array>

namespace qsf::convert {
std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

const Format& format_of(FormatId id) { return *find_format(id); }

std::optional<FormatId> written_id(std::string_view name) {
  const std::string wanted = lowered(name);
  const Format* const format = find_format(std::string_view(wanted));
  return format != nullptr ? std::optional(format->id) : std::nullopt;
}

std::string mixture_hint(std::string_view name) {
  const std::size_t last = name.rfind('_');
  if (last == name.npos || written_id(name)) return {};
  const std::optional<FormatId> type = written_id(name.substr(0, last));
  constexpr std::array<std::string_view, 5> kSizes{"_xs", "_s", "_m", "_l", "_xl"};
  if (!type || std::ranges::find(kSizes, lowered(name.substr(last))) == kSizes.end()) return {};
  return std::string(name) + " is one of llama.cpp's mixtures of types: " + std::string(format_of(*type).name) +
         " is a type for all matrices, --tensor-type gives some another, and --quant-type mixed chooses one for each";
}

std::uint64_t written_bytes(const TensorSpec& tensor) {
  return tensor_bytes(format_of(tensor.format), tensor.layout, tensor.rows, tensor.cols);
}

}  // namespace qsf::convert
