#include "converter/model_source.h"

#include <algorithm>
#include <limits>

namespace qsf::convert {

RowsOf rows_in(const Input& input, std::uint64_t begin, std::uint64_t size, std::uint64_t row_size) {
  return [=](std::uint32_t first, std::uint32_t n, std::span<std::byte> out) -> Status {
    const std::uint64_t at = first * row_size;
    if (at > size || n * row_size > size - at || out.size() != n * row_size) {
      return make_error(ErrorCode::internal, "rows {} + {} were asked of a tensor of {} bytes", first, n, size);
    }
    return input.read(begin + at, out);
  };
}

Result<std::shared_ptr<const Recipe>> recipe_for(std::string_view architecture) {
  if (const Recipe* recipe = find_recipe(architecture)) {
    return std::shared_ptr<const Recipe>(std::shared_ptr<const Recipe>(), recipe);  // owned by nobody
  }
  std::string known;
  for (const Recipe& recipe : known_recipes()) {
    if (!known.empty()) known += ", ";
    known += recipe.name;
  }
  return make_error(ErrorCode::unsupported, "the architecture \"{:.60}\" is not known; known are: {}", architecture,
                    known);
}

std::optional<std::array<std::uint32_t, 2>> matrix_shape(std::span<const std::uint64_t> shape) {
  if (shape.empty() || shape.size() > 2) return {};
  for (const std::uint64_t extent : shape) {
    if (extent == 0 || extent > std::numeric_limits<std::uint32_t>::max()) return {};
  }
  const auto last = static_cast<std::uint32_t>(shape.back());
  return std::array{shape.size() == 2 ? static_cast<std::uint32_t>(shape[0]) : 1u, last};
}

Status check_no_overlap(std::span<ByteRange> ranges, std::string_view file) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const ByteRange& a = ranges[i - 1];
    const ByteRange& b = ranges[i];
    if (b.begin < a.end) {
      return make_error(ErrorCode::bad_input, "{}: the bytes of {:.60} and {:.60} overlap", file, a.name, b.name);
    }
  }
  return {};
}

}  // namespace qsf::convert
