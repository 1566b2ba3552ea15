#include "converter/model/model_source.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

RowsOf rows_in(const Input& input, std::uint64_t begin, std::uint64_t size, std::uint64_t row_size) {
  const auto read = [=](std::uint32_t first, std::uint32_t n, std::span<std::byte> out) -> Status {
    const std::uint64_t at = first * row_size;
    if (at > size || n * row_size > size - at || out.size() != n * row_size) {
      return make_error(ErrorCode::internal, "rows {} + {} were asked of a tensor of {} bytes", first, n, size);
    }
    return input.read(begin + at, out);
  };
  const auto runs = [begin, row_size, number = input.number](std::uint32_t first, std::uint32_t n,
                                                             std::vector<InputRun>& out) {
    out.push_back({number, begin + first * row_size, n * row_size});
    return RowsFrom::stored;
  };
  return {read, runs};
}

RowsOf::Runs same_runs(RowsOf rows) {
  return [rows = std::move(rows)](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& out) {
    return weaker(rows.runs(begin, n, out), RowsFrom::runs);
  };
}

RowsOf rows_made(FormatId format, std::uint32_t cols, std::string name,
                 std::function<Status(std::uint32_t row, std::span<float> weights)> weights_of, RowsOf::Runs runs) {
  auto read = [format, cols, name = std::move(name), weights_of = std::move(weights_of)](
                  std::uint32_t first, std::uint32_t n, std::span<std::byte> out) -> Status {
    const Format& to = *find_format(format);
    const std::uint64_t size = row_bytes(to, cols);
    if (out.size() != n * size) return wrong_size(name, n, out.size());
    std::vector<float> row(cols);
    for (std::uint32_t r = 0; r < n; ++r) {
      QSF_TRY(weights_of(first + r, row));
      QSF_TRY(check_finite(name, first + r, row));
      quantize_row(to, row, out.subspan(r * size, size));
    }
    return {};
  };
  return {std::move(read), std::move(runs)};
}

Status check_finite(std::string_view name, std::uint32_t row, std::span<const float> weights) {
  const auto finite = [](float weight) { return std::isfinite(weight); };
  const auto at = std::ranges::find_if_not(weights, finite);
  if (at == weights.end()) return {};
  return make_error(ErrorCode::bad_input, "tensor {:.100} holds {} in row {}, column {}", name, *at, row,
                    at - weights.begin());
}

Error wrong_size(std::string_view name, std::uint32_t n, std::size_t size) {
  return make_error(ErrorCode::internal, "{} rows of {:.80} were asked of {} bytes", n, name, size);
}

Error not_ternary(std::string_view name, std::uint32_t row) {
  return make_error(ErrorCode::bad_input, "tensor {:.100} has weights that are none of -1, 0 and 1 in row {}", name,
                    row);
}

std::optional<std::array<std::uint32_t, 2>> matrix_shape(std::span<const std::uint64_t> shape) {
  if (shape.empty() || shape.size() > 2) return {};
  for (const std::uint64_t extent : shape) {
    if (extent == 0 || extent > std::numeric_limits<std::uint32_t>::max()) return {};
  }
  const auto last = static_cast<std::uint32_t>(shape.back());
  return std::array{shape.size() == 2 ? static_cast<std::uint32_t>(shape[0]) : 1u, last};
}

}  // namespace qsf::convert
