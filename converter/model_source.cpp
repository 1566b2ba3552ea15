#include "converter/model_source.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "qsf/base/try.h"
#include "qsf/formats/format.h"

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

RowsOf rows_made(FormatId format, std::uint32_t cols, std::string name,
                 std::function<Status(std::uint32_t row, std::span<float> weights)> weights_of) {
  return [format, cols, name = std::move(name), weights_of = std::move(weights_of)](
             std::uint32_t first, std::uint32_t n, std::span<std::byte> out) -> Status {
    const Format& to = *find_format(format);
    const std::uint64_t size = row_bytes(to, cols);
    if (out.size() != n * size) {
      return make_error(ErrorCode::internal, "{} rows of {:.80} were asked of {} bytes", n, name, out.size());
    }
    std::vector<float> row(cols);
    for (std::uint32_t r = 0; r < n; ++r) {
      QSF_TRY(weights_of(first + r, row));
      quantize_row(to, row, out.subspan(r * size, size));
    }
    return {};
  };
}

Error not_ternary(std::string_view name, std::uint32_t row) {
  return make_error(ErrorCode::bad_input, "tensor {:.100} has weights that are none of -1, 0 and 1 in row {}", name,
                    row);
}

namespace {

/// How many letters must be put in, taken out or changed.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Result<std::shared_ptr<const Recipe>> recipe_for(std::string_view architecture) {
  if (const Recipe* recipe = find_recipe(architecture)) {
    return std::shared_ptr<const Recipe>(std::shared_ptr<const Recipe>(), recipe);  // owned by nobody
  }
  constexpr std::size_t kShown = 60;
  std::string known, nearest;
  std::size_t least = 3;  // further away it is another word
  for (const Recipe& recipe : known_recipes()) {
    if (!known.empty()) known += ", ";
    known += recipe.name;
    const std::size_t away = distance(architecture.substr(0, kShown), recipe.name);
    if (away < least) nearest = "; did you mean " + recipe.name + "?";
    least = std::min(least, away);
  }
  return make_error(ErrorCode::unsupported, "the architecture \"{:.60}\" is not known{}; known are: {}", architecture,
                    nearest, known);
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
