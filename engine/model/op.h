// The instructions that a model is made of. An op is a row: its step and what it is measured as. A new one is a file of
// ops/ that defines its row, used by whoever emits it; a new mixer is such a file and a line of layers.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/file/layer_table.h"
#include "qsf/file/roles.h"
#include "qsf/model/work.h"

namespace qsf {

class Pass;
class Builder;
struct Op;

/// The activations of a pass, by name; x is the residual stream.
enum class Buf : std::uint8_t {
  x,
  normed,
  q,
  k,
  v,
  mixed,
  gate,
  up,
  router,       // a logit for each expert
  picked,       // the columns that chose an expert, side by side
  expert_in,    // what router and experts see, where that is not what a dense network sees
  expert_gate,  // of those columns, as is the next
  expert_up,
  expert_out,    // a row for each expert that a column takes
  experts,       // the sum of what a column's experts made
  share,         // the logit of the shared expert's gate
  layer_inputs,  // of all layers, each's own
  layer_input,   // of this one
  layer_gate,
  logits,
  pooled,  // last hidden states as pooling takes them, where that is not as they are
  z,       // of a state: the gate
  decay,   // of each head of a state
  rate,    // of what is added to it
  none
};
inline constexpr std::size_t kBufs = static_cast<std::size_t>(Buf::none);

enum class Advance : std::uint8_t { working, blocked, done };

struct OpRow {
  std::string_view name;
  Work work;
  /// Does one piece of the op, or says that it waits for a segment. Pass::item() is 0 at first and the op's own.
  Advance (*step)(Pass& pass, const Op& op);
  bool chooses = false;  // it uses segments of experts, those that its pass chose
};

/// Tensors are named by role and found in the section that is computed.
struct Op {
  static constexpr std::size_t kArenaBytes = 24;
  const OpRow* row = nullptr;
  Buf in = Buf::none;
  Buf in2 = Buf::none;
  Buf out = Buf::none;
  bool has_weight = false, has_bias = false;
  Role weight{}, bias{};
  float factor = 1;  // of a norm, the epsilon
};

/// What a layer keeps of a sequence: of each position, and of all of them together.
struct LaneNeed {
  std::uint32_t n_kv_heads = 0;  // 0: nothing of a position
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;        // positions that a token sees; 0: all
  std::uint64_t state_floats = 0;  // of a state that each position changes
  bool one_pass = false;           // nothing is kept beyond the op: layers and sequences take turns in one lane
  std::uint32_t from = 0;          // the section whose lane it is; 0: its own
};

/// How a layer's positions see each other.
struct MixerRow {
  /// Emits what turns `in`, the stream or its norm, into what is added to the stream. `out` may be `in`, so a product
  /// of the one goes elsewhere first; where they differ, `in` is left as it is.
  void (*emit)(Builder& builder, Buf in, Buf out);
  LaneNeed (*lane)(const LayerKind& kind, std::uint32_t dim);
};
#define QSF_MIXER(number, name, meaning) extern const MixerRow mixer_##name;
#include "qsf/file/layers.def"
const MixerRow& mixer_row(Mixer mixer);
const OpRow& activation_row(Activation activation);
/// What attention multiplies scores by.
float scale_of_scores(const LayerKind& kind);

extern const OpRow op_embed;
extern const OpRow op_embed_position;
extern const OpRow op_rms_norm;
extern const OpRow op_layer_norm;
extern const OpRow op_product;
extern const OpRow op_rope;
extern const OpRow op_attend;
extern const OpRow op_silu;
extern const OpRow op_gelu;
extern const OpRow op_gelu_erf;
extern const OpRow op_relu;
extern const OpRow op_relu2;
extern const OpRow op_limit;
extern const OpRow op_route;
extern const OpRow op_experts;
extern const OpRow op_shared_expert;
extern const OpRow op_add;
extern const OpRow op_add_vector;
extern const OpRow op_scale;
extern const OpRow op_soft_cap;
extern const OpRow op_mul;
extern const OpRow op_sigmoid_gate;
extern const OpRow op_head_norm;
extern const OpRow op_unit_heads;
extern const OpRow op_conv;
extern const OpRow op_decay;
extern const OpRow op_recur;
extern const OpRow op_hidden;
extern const OpRow op_value_norm;
extern const OpRow op_copy;
extern const OpRow op_scale_by;
extern const OpRow op_layer_inputs;
extern const OpRow op_layer_input;

}  // namespace qsf
