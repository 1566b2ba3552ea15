#include "converter/tensors/parts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "qsf/base/exact.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kReadBytes = 256 << 10;  // bytes of rows that are read together
constexpr std::uint64_t kTurnedBytes = 8 << 20;  // of transposed rows, to save reads

/// Calls visit(row, its values) for rows [begin, begin + n) of the source, read run by run.
template <class Visit>
Status visit_rows(const LoadedTensor& tensor, std::uint32_t begin, std::uint32_t n, std::uint32_t cols, Visit visit) {
  const Format& format = *find_format(tensor.format);
  const std::uint64_t size = row_bytes(format, cols);
  const std::uint64_t fit = std::max<std::uint64_t>(1, kReadBytes / std::max<std::uint64_t>(1, size));
  std::vector<std::byte> raw;
  std::vector<float> values(cols);
  for (std::uint32_t done = 0; done < n;) {
    const auto run = static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, n - done));
    raw.resize(run * size);
    QSF_TRY(tensor.rows_of(begin + done, run, raw));
    for (std::uint32_t r = 0; r < run; ++r) {
      dequantize_row(format, std::span<const std::byte>(raw).subspan(r * size, size), values);
      visit(done + r, std::span<const float>(values));
    }
    done += run;
  }
  return {};
}

/// Returns the shape with all extents but the last as rows.
std::optional<std::array<std::uint32_t, 2>> flat_shape(std::span<const std::uint64_t> shape) {
  if (shape.size() < 2) return {};
  std::uint64_t rows = 1;
  for (const std::uint64_t extent : shape.first(shape.size() - 1)) {
    if (extent == 0 || extent > kMaxDim) return {};
    rows *= extent;
    if (rows > kMaxDim) return {};
  }
  return shape.back() == 0 || shape.back() > kMaxDim
             ? std::nullopt
             : std::optional(std::array{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(shape.back())});
}

/// Returns one vector of floats: the rows one after the other, or the columns if `turned`; or minus their powers of e.
LoadedTensor flat_part(const LoadedTensor& tensor, bool turned, bool minus_exp) {
  const auto [rows, cols] = *flat_shape(tensor.shape);
  const std::uint64_t all = std::uint64_t{rows} * cols;
  LoadedTensor out{tensor.name, tensor.type, FormatId::f32, {all}, {}};
  const auto read = [&tensor, turned, minus_exp, rows, cols, all](std::uint32_t, std::uint32_t,
                                                                  std::span<std::byte> to) -> Status {
    if (to.size() != all * sizeof(float)) {
      return make_error(ErrorCode::internal, "{} values of a part were asked of {} bytes", all, to.size());
    }
    return visit_rows(tensor, 0, rows, cols, [&](std::uint32_t r, std::span<const float> row) {
      for (std::size_t c = 0; c < cols; ++c) {
        const std::size_t at = turned ? c * rows + r : std::size_t{r} * cols + c;
        const float value = minus_exp ? static_cast<float>(-exact::exp(double{row[c]})) : row[c];
        std::memcpy(to.data() + at * sizeof(float), &value, sizeof value);
      }
    });
  };
  const auto runs = [&tensor, rows](std::uint32_t, std::uint32_t, std::vector<InputRun>& to) {
    return weaker(tensor.rows_of.runs(0, rows, to), RowsFrom::runs);
  };
  out.rows_of = {read, runs};
  return out;
}

/// Returns the rows of each group as columns: [groups * cols, rows of a group].
LoadedTensor turned_groups(const LoadedTensor& tensor, const RowRange& range,
                           const std::shared_ptr<TurnedWindow>& window) {
  const auto cols = (*matrix_shape(tensor.shape))[1], width = static_cast<std::uint32_t>(range.end - range.begin);
  LoadedTensor out{tensor.name, tensor.type, FormatId::f32, {range.n_groups * cols, width}, {}};
  const std::shared_ptr<const void> owner = std::make_shared<char>();
  out.rows_of = [&tensor, range, window, owner, cols, width](std::uint32_t begin, std::uint32_t n,
                                                             std::span<std::byte> to) -> Status {
    if (to.size() != std::uint64_t{n} * width * sizeof(float)) {
      return make_error(ErrorCode::internal, "{} rows of a part were requested in {} bytes", n, to.size());
    }
    TurnedWindow& kept = *window;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t row = begin + i, group = row / cols;
      if (kept.owner != owner || row < kept.begin || row - kept.begin >= kept.n) {
        kept.owner = nullptr;
        kept.begin = group * cols;
        kept.n = cols;
        kept.values.resize(std::uint64_t{cols} * width);
        const auto first = static_cast<std::uint32_t>(group * range.every + range.begin);
        QSF_TRY(visit_rows(tensor, first, width, cols, [&](std::uint32_t r, std::span<const float> values) {
          for (std::uint32_t c = 0; c < cols; ++c) kept.values[std::uint64_t{c} * width + r] = values[c];
        }));
        kept.owner = owner;
      }
      std::memcpy(to.data() + std::uint64_t{i} * width * sizeof(float),
                  &kept.values[std::uint64_t{row - kept.begin} * width], width * sizeof(float));
    }
    if (begin + n == range.n_groups * cols) kept = {};
    return {};
  };
  return out;
}

}  // namespace

Result<RowRange> rows_of_part(const LoadedTensor& tensor, const TensorPart& part, const Header& header,
                              const LayerKind& kind) {
  const auto shape = part.flat ? flat_shape(tensor.shape) : matrix_shape(tensor.shape);
  if (part.flat && shape) return RowRange{0, std::uint64_t{(*shape)[0]} * (*shape)[1]};
  if (!shape || (part.transposed && tensor.shape.size() != 2)) {
    return make_error(ErrorCode::bad_input, "tensor {:.100} has {} dimensions, which the recipe does not expect",
                      tensor.name, tensor.shape.size());
  }
  const auto [rows, cols] = *shape;
  const std::uint64_t all = part.transposed || tensor.shape.size() == 1 ? cols : rows;
  if (!part.rows) return RowRange{0, all};
  RowRange range{part.rows->first.value(header, kind), part.rows->second.value(header, kind)};
  range.every = part.every.value(header, kind);
  const bool grouped = !part.every.terms.empty();
  if (grouped && (range.every == 0 || all % range.every != 0 || range.end > range.every)) {
    return make_error(ErrorCode::bad_input, "tensor {:.100} has {} rows, which are not groups of {}", tensor.name, all,
                      range.every);
  }
  if (grouped) range.n_groups = all / range.every;
  if (range.begin < range.end && range.end <= all) return range;
  return make_error(ErrorCode::bad_input, "tensor {:.100} has {} rows, but the recipe takes those from {} to {}",
                    tensor.name, all, range.begin, range.end);
}

LoadedTensor part_of(const LoadedTensor& tensor, const TensorPart& part, const RowRange& range,
                     const std::shared_ptr<TurnedWindow>& window) {
  if (part.flat) return flat_part(tensor, part.transposed, part.minus_exp);
  if (part.turned_groups) return turned_groups(tensor, range, window);
  const auto [rows, cols] = *matrix_shape(tensor.shape);
  const bool vector = tensor.shape.size() == 1;
  const std::uint64_t n_rows = range.count();
  LoadedTensor out;
  out.name = tensor.name;
  out.type = tensor.type;
  if (vector) {
    out.shape = {n_rows};
  } else {
    out.shape = {n_rows, part.transposed ? rows : cols};
  }
  if (!vector && !part.transposed && !part.plus_one && !part.minus_exp && part.factor == 1) {
    out.format = tensor.format;
    // Calls visit(row of the tensor, n, rows before them) for each run of neighbours.
    const auto visit = [range](std::uint32_t begin, std::uint32_t n, const auto& each) {
      const std::uint64_t group = range.end - range.begin;
      for (std::uint32_t done = 0; done < n;) {
        const auto left = static_cast<std::uint32_t>(group - (begin + done) % group), run = std::min(n - done, left);
        if (!each(static_cast<std::uint32_t>(range.source(begin + done)), run, done)) return;
        done += run;
      }
    };
    const auto read = [&tensor, visit, size = row_bytes(*find_format(tensor.format), cols)](
                          std::uint32_t begin, std::uint32_t n, std::span<std::byte> to) -> Status {
      Status status;
      visit(begin, n, [&](std::uint32_t row, std::uint32_t run, std::uint32_t done) {
        status = tensor.rows_of(row, run, to.subspan(done * size, run * size));
        return static_cast<bool>(status);
      });
      return status;
    };
    const auto runs = [&tensor, visit](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& to) {
      RowsFrom from = RowsFrom::stored;
      visit(begin, n, [&](std::uint32_t row, std::uint32_t run, std::uint32_t) {
        from = weaker(from, tensor.rows_of.runs(row, run, to));
        return true;
      });
      return from;
    };
    out.rows_of = {read, runs};
    return out;
  }
  out.format = FormatId::f32;
  const auto width = static_cast<std::uint32_t>(out.shape.back());
  const std::shared_ptr<const void> owner = std::make_shared<char>();
  const auto read = [&tensor, vector, range, width, cols, source_rows = rows, n_rows, owner,
                     kept = part.transposed ? window : nullptr, add = part.plus_one ? 1.0f : 0.0f,
                     by = static_cast<float>(part.factor), minus_exp = part.minus_exp](
                        std::uint32_t begin, std::uint32_t n, std::span<std::byte> to) -> Status {
    if (to.size() != std::uint64_t{n} * width * sizeof(float)) {
      return make_error(ErrorCode::internal, "{} rows of a part were asked of {} bytes", n, to.size());
    }
    const auto put = [&](std::uint64_t at, float value) {
      const float sum = minus_exp ? static_cast<float>(-exact::exp(double{value})) : (value + add) * by;
      std::memcpy(to.data() + at * sizeof(float), &sum, sizeof sum);
    };
    if (kept) {
      if (kept->owner != owner || begin < kept->begin || begin + n > kept->begin + kept->n) {
        kept->owner = nullptr;
        const std::uint64_t fit = std::max<std::uint64_t>(n, kTurnedBytes / sizeof(float) / width);
        kept->begin = begin;
        kept->n = static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, n_rows - begin));
        kept->values.resize(std::uint64_t{kept->n} * width);
        QSF_TRY(visit_rows(tensor, 0, source_rows, cols, [&](std::uint32_t r, std::span<const float> row) {
          for (std::uint32_t i = 0; i < kept->n; ++i) {
            kept->values[std::uint64_t{i} * width + r] = row[range.source(begin + i)];
          }
        }));
        kept->owner = owner;
      }
      const std::uint64_t skipped = std::uint64_t{begin - kept->begin} * width;
      for (std::uint64_t i = 0; i < std::uint64_t{n} * width; ++i) put(i, kept->values[skipped + i]);
      if (begin + n == n_rows) *kept = {};
      return {};
    }
    if (vector) {
      return visit_rows(tensor, 0, 1, cols, [&](std::uint32_t, std::span<const float> row) {
        for (std::uint32_t c = 0; c < width; ++c) put(c, row[range.source(c)]);
      });
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::uint32_t>(range.source(begin + i));
      QSF_TRY(visit_rows(tensor, at, 1, cols, [&](std::uint32_t, std::span<const float> row) {
        for (std::uint32_t c = 0; c < width; ++c) put(std::uint64_t{i} * width + c, row[c]);
      }));
    }
    return {};
  };
  const auto runs = [&tensor, vector, range](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& to) {
    if (vector) return weaker(tensor.rows_of.runs(0, 1, to), RowsFrom::runs);
    RowsFrom from = RowsFrom::runs;
    for (std::uint32_t i = 0; i < n; ++i) {
      from = weaker(from, tensor.rows_of.runs(static_cast<std::uint32_t>(range.source(begin + i)), 1, to));
    }
    return from;
  };
  out.rows_of = part.transposed ? RowsOf(read) : RowsOf(read, runs);
  return out;
}

}  // namespace qsf::convert
