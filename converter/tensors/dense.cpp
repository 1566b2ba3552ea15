#include "converter/tensors/dense.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "converter/tensors/rows.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kMostWeights = std::uint64_t{1} << 26;  // of a matrix in memory

/// A row-major matrix.
struct Floats {
  std::uint32_t rows = 0, cols = 0;
  std::vector<float> values;
};

struct Product {
  LoadedTensor last;
  std::vector<Floats> before;  // the nearest to the last first

  Status operator()(std::uint32_t first, std::uint32_t n, std::span<std::byte> out) const {
    const std::uint32_t cols = before.back().cols, inner = before.front().rows;
    if (out.size() != std::size_t{n} * cols * sizeof(float)) {
      return make_error(ErrorCode::internal, "{} rows of {:.80} were asked of {} bytes", n, last.name, out.size());
    }
    std::vector<float> rows(std::size_t{n} * inner), result(cols);
    const RowsOf floats = rows_as(last, FormatId::f32, static_cast<std::uint32_t>(last.shape[0]), inner, {}).rows_of;
    QSF_TRY(floats(first, n, std::as_writable_bytes(std::span(rows))));
    for (std::uint32_t r = 0; r < n; ++r) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{r} * inner);
      std::vector<double> row(begin, begin + inner);
      for (const Floats& matrix : before) {
        std::vector<double> next(matrix.cols);
        for (std::uint32_t i = 0; i < matrix.rows; ++i) {
          const float* weights = &matrix.values[std::size_t{i} * matrix.cols];
          for (std::uint32_t c = 0; c < matrix.cols; ++c) next[c] += row[i] * double{weights[c]};
        }
        row = std::move(next);
      }
      for (std::uint32_t c = 0; c < cols; ++c) result[c] = static_cast<float>(row[c]);
      const auto bytes = std::as_bytes(std::span(result));
      std::ranges::copy(bytes, out.begin() + static_cast<std::ptrdiff_t>(r * bytes.size()));
    }
    return {};
  }
};

}  // namespace

Result<LoadedTensor> fold_dense(std::string name, std::vector<LoadedTensor> matrices) {
  std::uint64_t width = 0;
  for (const LoadedTensor& matrix : matrices) {
    if (matrix.format == FormatId::inherit) {
      return make_error(ErrorCode::unsupported, "tensor {:.100} is stored as {:.20}, which cannot be read", matrix.name,
                        matrix.type);
    }
    const auto shape = matrix.shape.size() == 2 ? matrix_shape(matrix.shape) : std::nullopt;
    if (!shape || (width != 0 && (*shape)[1] != width)) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} is no matrix for the {} values before it", matrix.name,
                        width);
    }
    if (matrices.size() > 1 && std::uint64_t{(*shape)[0]} * (*shape)[1] > kMostWeights) {
      return make_error(ErrorCode::unsupported, "tensor {:.100} has more than {} weights", matrix.name, kMostWeights);
    }
    width = (*shape)[0];
  }
  LoadedTensor out;
  if (matrices.size() == 1) {
    out = std::move(matrices.front());
  } else {
    out.type = "F32";
    out.format = FormatId::f32;
    out.shape = {width, matrices.front().shape[1]};
    Product product{std::move(matrices.back()), {}};
    matrices.pop_back();
    for (auto matrix = matrices.rbegin(); matrix != matrices.rend(); ++matrix) {
      Floats floats{static_cast<std::uint32_t>(matrix->shape[0]), static_cast<std::uint32_t>(matrix->shape[1]), {}};
      floats.values.resize(std::size_t{floats.rows} * floats.cols);
      QSF_TRY(rows_as(*matrix, FormatId::f32, floats.rows, floats.cols, {})
                  .rows_of(0, floats.rows, std::as_writable_bytes(std::span(floats.values))));
      product.before.push_back(std::move(floats));
    }
    // All copies share the matrices, because rows are read in many pieces.
    out.rows_of = [shared = std::make_shared<const Product>(std::move(product))](std::uint32_t first, std::uint32_t n,
                                                                                 std::span<std::byte> to) {
      return (*shared)(first, n, to);
    };
  }
  out.name = std::move(name);
  return out;
}

}  // namespace qsf::convert
