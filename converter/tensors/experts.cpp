#include "converter/tensors/experts.h"

#include <algorithm>
#include <utility>

#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Reads rows [begin, begin + n) of several tensors of `rows` rows, one after the other. Calls read(tensor, its first
/// row, n, out) for each of them.
template <class Read>
Status read_runs(std::uint64_t rows, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out, Read read) {
  if (n == 0) return {};
  const std::size_t size = out.size() / n;
  for (std::uint32_t done = 0; done < n;) {
    const std::uint64_t at = std::uint64_t{begin} + done, within = at % rows;
    const auto run = static_cast<std::uint32_t>(std::min<std::uint64_t>(n - done, rows - within));
    QSF_TRY(read(at / rows, static_cast<std::uint32_t>(within), run, out.subspan(done * size, run * size)));
    done += run;
  }
  return {};
}

/// Transposed matrices of experts, one at a time.
struct TurnedExperts {
  std::shared_ptr<const LoadedTensor> from;  // [experts, rows, cols]
  std::shared_ptr<TurnedWindow> window;
  std::uint64_t expert = ~std::uint64_t{0};
  LoadedTensor stored = {}, turned = {};

  Status rows(std::uint64_t of, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) {
    if (of != expert) {
      const LoadedTensor& tensor = *from;
      expert = of;
      stored = {};
      stored.name = tensor.name;
      stored.format = tensor.format;
      stored.shape = {tensor.shape[1], tensor.shape[2]};
      const auto first = static_cast<std::uint32_t>(of * tensor.shape[1]);
      stored.rows_of = [this, first](std::uint32_t row, std::uint32_t count, std::span<std::byte> to) {
        return from->rows_of(first + row, count, to);
      };
      turned = part_of(stored, {.transposed = true}, {0, tensor.shape[2]}, window);
    }
    return turned.rows_of(begin, n, out);
  }
};

}  // namespace

Result<std::shared_ptr<const LoadedTensor>> join_experts(std::string name,
                                                         std::span<const LoadedTensor* const> experts) {
  const LoadedTensor& first = *experts.front();
  for (const LoadedTensor* expert : experts) {
    if (expert->shape == first.shape && expert->format == first.format) continue;
    return make_error(ErrorCode::bad_input, "tensor {:.100} is of another shape or type than {:.100}", expert->name,
                      first.name);
  }
  auto out = std::make_shared<LoadedTensor>();
  out->name = std::move(name);
  out->type = first.type;
  out->format = first.format;
  out->shape = first.shape;
  out->shape.insert(out->shape.begin(), experts.size());
  const std::uint64_t rows = first.shape.size() > 1 ? first.shape.front() : 1;
  const auto all = std::make_shared<const std::vector<const LoadedTensor*>>(experts.begin(), experts.end());
  const auto read = [all, rows](std::uint32_t begin, std::uint32_t n, std::span<std::byte> to) -> Status {
    return read_runs(rows, begin, n, to,
                     [&](std::uint64_t expert, std::uint32_t row, std::uint32_t count, std::span<std::byte> part) {
                       return (*all)[expert]->rows_of(row, count, part);
                     });
  };
  const auto runs = [all, rows](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& to) {
    RowsFrom from = RowsFrom::stored;
    for (std::uint32_t done = 0; done < n;) {
      const std::uint64_t at = std::uint64_t{begin} + done, within = at % rows;
      const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(n - done, rows - within));
      from = weaker(from, (*all)[at / rows]->rows_of.runs(static_cast<std::uint32_t>(within), count, to));
      done += count;
    }
    return from;
  };
  out->rows_of = {read, runs};
  return std::shared_ptr<const LoadedTensor>(std::move(out));
}

std::shared_ptr<const LoadedTensor> stack_experts(const std::shared_ptr<const LoadedTensor>& tensor, bool matrix,
                                                  bool transposed, const std::shared_ptr<TurnedWindow>& window) {
  const std::vector<std::uint64_t>& shape = tensor->shape;
  if (shape.size() != (matrix ? 3u : 2u)) return tensor;
  auto out = std::make_shared<LoadedTensor>();
  out->name = tensor->name;
  out->type = tensor->type;
  out->format = tensor->format;
  const std::uint64_t experts = shape[0];
  if (!matrix) {
    out->shape = {experts * shape[1]};
    const auto all = static_cast<std::uint32_t>(experts);
    out->rows_of = {
        [tensor, all](std::uint32_t, std::uint32_t, std::span<std::byte> to) { return tensor->rows_of(0, all, to); },
        [tensor, all](std::uint32_t, std::uint32_t, std::vector<InputRun>& runs) {
          return tensor->rows_of.runs(0, all, runs);
        }};
  } else if (!transposed) {
    out->shape = {experts * shape[1], shape[2]};
    out->rows_of = tensor->rows_of;
    out->stored_rows = tensor->stored_rows;
  } else {
    out->shape = {experts * shape[2], shape[1]};
    out->format = FormatId::f32;
    out->rows_of = [turned = std::make_shared<TurnedExperts>(TurnedExperts{tensor, window}), rows = shape[2]](
                       std::uint32_t begin, std::uint32_t n, std::span<std::byte> to) -> Status {
      return read_runs(rows, begin, n, to,
                       [&](std::uint64_t expert, std::uint32_t row, std::uint32_t count, std::span<std::byte> part) {
                         return turned->rows(expert, row, count, part);
                       });
    };
  }
  return out;
}

}  // namespace qsf::convert
