// The kernels, written once over a vocabulary (vec/<isa>.h, included before this file), as one table.
#include "formats/tile.h"
#include "kernels/kernels.h"

// Order matters: each uses those above it.
#include "kernels/exact.inl"
#include "kernels/matmul.inl"
#include "kernels/quantize.inl"
#include "kernels/vectors.inl"
// softmax and the int8 scale serve attention
#include "kernels/attend.inl"

namespace qsf {
namespace {

template <std::size_t... kFormat>
constexpr Kernels make_table(std::string_view isa, std::index_sequence<kFormat...>) {
  return {.isa = isa,
          .quantize_columns = quantize_columns,
          .matmul = {matmul<kFormat>...},
          .rms_norm = rms_norm,
          .add = add,
          .silu_mul = silu_mul,
          .softmax = softmax,
          .rope = rope,
          .kv_store = {kv_store_f16, kv_store_q8, kv_store_f32},
          .attend = {attend<KvF16>, attend<KvQ8>, attend<KvF32>},
          .argmax = argmax};
}
constexpr Kernels make_table(std::string_view isa) {
  return make_table(isa, std::make_index_sequence<kFormats.size()>{});
}

}  // namespace
}  // namespace qsf
