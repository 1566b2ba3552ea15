// Parts of the converter that the maker does not have. This file is linked before the libraries that have the same
// functions, and saves a fifth of the module. Functions that trap are never called, because nothing was measured, and
// types whose rounding needs a search are refused.
#include "converter/readers/checkpoints/checkpoint.h"
#include "converter/readers/checkpoints/llama2c.h"
#include "converter/readers/hugging_face/pytorch.h"
#include "converter/readers/qsf/qsf.h"
#include "converter/rounding/measure.h"
#include "engine/formats/trellis.h"

namespace qsf {

void trellis_levels(std::uint32_t, std::span<std::uint8_t>) { __builtin_trap(); }
ChainCost chain_cost(std::uint32_t, std::span<const float>, const float*, std::size_t) { __builtin_trap(); }
void least_path(std::uint32_t, std::span<const float>, const ChainCost&, const ChainPath&) { __builtin_trap(); }

namespace convert {

RowCost RowCost::plain(std::uint32_t) { __builtin_trap(); }
RowCost RowCost::of(const Moments&) { __builtin_trap(); }
void RowCost::quantize(const Format&, std::span<const float>, std::span<std::byte>) const { __builtin_trap(); }

// Kinds of one file that the page leaves to the engine.
bool is_checkpoint(const ModelLocation&) { return false; }
Result<LoadedModel> open_checkpoint(const ModelLocation&, bool) { __builtin_trap(); }
bool is_llama2c(const ModelLocation&) { return false; }
Result<LoadedModel> open_llama2c(const ModelLocation&, bool) { __builtin_trap(); }
bool is_qsf(const ModelLocation&) { return false; }
Result<LoadedModel> open_qsf(const ModelLocation&, bool) { __builtin_trap(); }

Status read_pytorch(const Input& file, std::vector<LoadedTensor>&) {
  return make_error(ErrorCode::unsupported,
                    "{:.160} has pickles, which are not read here; safetensors are, and qsf-convert reads both",
                    file.name);
}

}  // namespace convert
}  // namespace qsf
