#include "converter/rows.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "qsf/base/half.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Where the file's row (or vector element) `r` lies in the source.
std::uint32_t source_row(std::uint32_t r, std::uint32_t head) {
  if (head == 0) return r;
  const std::uint32_t within = r % head, half = head / 2;
  return r - within + 2 * (within % half) + within / half;
}

struct Conversion {
  const SourceTensor& tensor;
  const Format& from;
  const Format& to;
  std::uint32_t rows, cols;
  std::uint32_t head;
  std::vector<std::byte> raw;
  std::vector<float> floats;

  Status check(std::uint32_t row) const {
    const bool narrow = to.id != FormatId::f32 && to.id != FormatId::bf16;  // has an fp16 in it
    for (std::uint32_t c = 0; c < cols; ++c) {
      const float w = floats[c];
      if (!std::isfinite(w)) {
        return make_error(ErrorCode::bad_input, "tensor {:.100} holds {} in row {}, column {}", tensor.name, w, row, c);
      }
      if (narrow && !std::isfinite(f16_to_f32(f32_to_f16(w)))) {
        return make_error(ErrorCode::bad_input,
                          "tensor {:.100} holds {} in row {}, which {} cannot hold: convert with f32 or bf16",
                          tensor.name, w, row, to.name);
      }
    }
    return {};
  }

  Status row(std::uint32_t r, std::span<std::byte> out) {
    const bool vector = rows == 1;
    QSF_TRY(tensor.rows_of(source_row(r, vector ? 0 : head), 1, raw));
    if (from.id == to.id && from.quantized()) {
      std::memcpy(out.data(), raw.data(), raw.size());
      return {};
    }
    dequantize_row(from, raw, floats);
    QSF_TRY(check(r));
    if (vector && head != 0) {
      const std::vector<float> stored = floats;
      for (std::uint32_t c = 0; c < cols; ++c) floats[c] = stored[source_row(c, head)];
    }
    quantize_row(to, floats, out);
    return {};
  }
};

}  // namespace

std::uint32_t rotated_heads(Role role, std::uint32_t head_dim) {
  switch (role) {
    case Role::attn_q:
    case Role::attn_k:
    case Role::attn_q_bias:
    case Role::attn_k_bias:
    case Role::attn_q_norm:
    case Role::attn_k_norm:
      return head_dim;
    default:
      return 0;
  }
}

RowsOf rows_as(const SourceTensor& tensor, FormatId target, std::uint32_t rows, std::uint32_t cols,
               std::uint32_t interleaved_head) {
  const Format& from = *find_format(tensor.format);
  const Format& to = *find_format(target);
  return [&, rows, cols, interleaved_head](std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) -> Status {
    Conversion conversion{tensor, from, to, rows, cols, interleaved_head, {}, {}};
    conversion.raw.resize(row_bytes(from, cols));
    conversion.floats.resize(cols);
    const std::uint64_t size = row_bytes(to, cols);
    for (std::uint32_t i = 0; i < n; ++i) {
      QSF_TRY(conversion.row(begin + i, out.subspan(i * size, size)));
    }
    return {};
  };
}

}  // namespace qsf::convert
