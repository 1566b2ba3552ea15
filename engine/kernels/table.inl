// The table of kernels. All kernels are written once, with the vector vocabulary of isa/<name>.h, which is included
// before this file.
#include "formats/tile.h"
#include "kernels/gelu_table.h"
#include "kernels/kernels.h"

// The order matters: each file uses the files above it.
#include "kernels/exact.inl"
#include "kernels/kinds.inl"
// uses kinds
#include "kernels/strips.inl"
// use strips
#include "kernels/grids.inl"
#include "kernels/spans.inl"
#include "kernels/tiles.inl"
// uses strips, spans and tiles
#include "kernels/matmul.inl"
#include "kernels/quantize.inl"
#include "kernels/vectors.inl"
// uses softmax and the int8 scale
#include "kernels/kv.inl"
// use caches
#include "kernels/rings.inl"
// uses rings
#include "kernels/attend.inl"

namespace qsf {
namespace {

template <std::size_t... kFormat, std::size_t... kKvType>
constexpr Kernels make_table(std::string_view isa, std::index_sequence<kFormat...>, std::index_sequence<kKvType...>) {
  return {.isa = isa,
          .quantize_columns = quantize_columns,
          .matmul = {matmul<kFormat>...},
          .rms_norm = rms_norm,
          .layer_norm = layer_norm,
          .add = add,
          .mul = mul,
          .scale = scale,
          .exp = exp,
          .tanh = tanh,
          .soft_cap = soft_cap,
          .sin_cos = sin_cos,
          .silu = activate<silu>,
          .gelu = activate<gelu>,
          .gelu_fast = activate<gelu_fast>,
          .gelu_erf = activate<gelu_erf>,
          .relu = activate<relu>,
          .relu2 = activate<relu2>,
          .softmax = softmax,
          .rope = rope,
          .kv_store = {kv_store<KvF32>, kv_store<KvF16>, kv_store<KvQ8>, kv_store<KvGroups<4>>, kv_store<KvGroups<2>>,
                       kv_store<KvRotated<8>>, kv_store<KvRotated<4>>, kv_store<KvRotated<3>>, kv_store<KvRotated<2>>},
          .attend = {attend_as<kKvType>...},
          .widen_f16 = widen_f16,
          .argmax = argmax};
}
constexpr Kernels make_table(std::string_view isa) {
  return make_table(isa, std::make_index_sequence<kFormats.size()>{}, std::make_index_sequence<kKvNames.size()>{});
}

}  // namespace
}  // namespace qsf
