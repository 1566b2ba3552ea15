// A trial of this machine's speed in products, for hosts to time before they plan.
#include <algorithm>

#include "base/arena.h"
#include "kernels/kernels.h"
#include "qsf/base/try.h"
#include "qsf/engine.h"

namespace qsf {
namespace {

constexpr std::uint32_t kCols = 2048;
constexpr std::uint32_t kTaskRows = 64;
constexpr std::uint64_t kSegment = 1u << 20;
constexpr std::uint32_t kChunk = 32;  // columns of a prompt's pass, if a plan has no reason for another number

}  // namespace

Result<std::uint64_t> try_product(std::span<std::byte> memory, FormatId id, Batch batch, std::string_view isa,
                                  const Workers& workers) {
  const Kernels* kernels = isa.empty() ? &best_kernels() : find_kernels(isa);
  const Format* format = find_format(id);
  if (kernels == nullptr || format == nullptr || batch > Batch::many) {
    return make_error(ErrorCode::bad_argument, "there is no such instruction set, format or batch here");
  }
  const std::uint32_t columns = batch == Batch::one ? 1 : kChunk;
  Arena arena(memory);
  constexpr std::uint32_t kPadded = padded_cols(kCols), kGroups = kPadded / kGroup;
  std::span<float> x, d, sums, half_sums, y;
  std::span<std::int8_t> codes;
  QSF_TRY(arena.take(x, columns * kCols, Region::activations));
  QSF_TRY(arena.take(codes, columns * kPadded, Region::activations));
  QSF_TRY(arena.take(d, columns * kGroups, Region::activations));
  QSF_TRY(arena.take(sums, columns * kGroups, Region::activations));
  QSF_TRY(arena.take(half_sums, 2 * columns * kGroups, Region::activations));
  const std::uint64_t row = row_bytes(*format, kCols);
  const std::uint64_t segment = std::min<std::uint64_t>(kSegment, (arena.size() - arena.used()) / 2);
  const auto rows = static_cast<std::uint32_t>(std::max<std::uint64_t>(segment / row / kTaskRows, 1) * kTaskRows);
  QSF_TRY(arena.take(y, std::uint64_t{columns} * rows, Region::activations));
  const std::uint64_t n = (arena.size() - arena.used()) / align_up(rows * row);
  if (n == 0) {
    return make_error(ErrorCode::out_of_memory, "{} bytes are too few to try a product in", memory.size());
  }
  // The arena would zero these bytes, which would be a part of the caller's measurement.
  const std::span<const std::byte> weights =
      memory.last(static_cast<std::size_t>(arena.size() - arena.used())).first(n * align_up(rows * row));
  std::ranges::fill(x, 1.0f);
  MatmulArgs args{};
  args.xq = {codes.data(), d.data(), sums.data(), half_sums.data(), kPadded};
  args.x = x.data();
  args.x_stride = kCols;
  args.cols = kCols;
  args.n = columns;
  args.y_stride = rows;
  kernels->quantize_columns(x.data(), kCols, kCols, columns, ScaleOf::group, args.xq);
  for (std::uint64_t at = 0; at + rows * row <= weights.size(); at += align_up(rows * row)) {
    parallel_for(workers, rows / kTaskRows, [&](std::uint32_t task) {
      MatmulArgs part = args;
      part.weights = weights.data() + at + task * (kTaskRows * row);
      part.rows = kTaskRows;
      part.y = y.data() + task * kTaskRows;
      kernels->matmul[static_cast<std::size_t>(format_index(id))](part);
    });
  }
  return weights.size() / align_up(rows * row) * (rows * row);
}

}  // namespace qsf
