#include "converter/tensors/scaled.h"

#include <algorithm>
#include <utility>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

void scale_nvfp4(LoadedTensor& tensor, std::vector<float> factors, std::uint64_t rows_each) {
  const Format &from = *find_format(kNvfp4), &to = *find_format(kScaledNvfp4);
  const std::size_t blocks = row_bytes(from, tensor.shape.back()) / from.block_bytes;
  RowsOf::Runs runs = same_runs(tensor.rows_of);
  auto read = [&from, &to, blocks, rows_each, name = tensor.name, factors = std::move(factors),
               source = std::move(tensor.rows_of)](std::uint32_t first, std::uint32_t n,
                                                   std::span<std::byte> out) -> Status {
    if (out.size() != n * blocks * to.block_bytes) return wrong_size(name, n, out.size());
    std::vector<std::byte> stored(n * blocks * from.block_bytes);
    QSF_TRY(source(first, n, stored));
    for (std::size_t b = 0; b < n * blocks; ++b) {
      std::byte* const block = &out[b * to.block_bytes];
      store_le(block + to.scale.at, factors[(first + b / blocks) / rows_each]);
      std::copy_n(&stored[b * from.block_bytes], from.block_bytes, block + to.sub.at);
    }
    return {};
  };
  tensor.rows_of = {std::move(read), std::move(runs)};
  tensor.stored_rows = nullptr;
  tensor.format = kScaledNvfp4;
}

}  // namespace qsf::convert
