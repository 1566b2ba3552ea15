// The instructions of a model. An op is a row: its step and its kind of work. A new op is a file in ops/ with its row.
// A new mixer is such a file and a line of layers.def.
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

/// The activations of a pass by name, with the shape of one column's. x is the residual stream.
enum class Buf : std::uint8_t {
  x,            // [dim]
  normed,       // [dim]
  q,            // [n_heads * head_dim]; of a state [state_keys]; of a convolution [dim]
  k,            // [n_kv_heads * head_dim]; the same
  v,            // [n_kv_heads * head_dim]; of a state [state_values]; of a convolution [dim]
  mixed,        // [dim]
  gate,         // [ffn_dim], or [shared_dim] of the shared expert
  up,           // the same
  router,       // [n_experts]: a logit for each expert
  picked,       // [dim]: the columns that selected one expert, without gaps
  expert_in,    // [dim]: the input of router and experts, if it is not that of the dense network
  expert_gate,  // [expert_dim]: of the picked columns, as the next
  expert_up,
  expert_out,    // [experts_used, dim]: a row for each expert that a column selects
  experts,       // [dim]: the sum of a column's experts
  share,         // [1]: the logit of the shared expert's gate
  layer_inputs,  // [n_layers, layer_input]: the inputs of all layers
  layer_input,   // [layer_input]: the input of this layer
  layer_gate,    // [layer_input]
  logits,        // [vocab_size]
  pooled,        // [dim]: hidden states for pooling, if a dense matrix changes them
  score,         // [1]: the score of a pair of texts
  z,             // a gate: of a state [state_values], or of attention [n_heads * head_dim]
  decay,         // [state_heads]: the factor of a state
  rate,          // [state_heads]: the factor of the addition to a state
  q2,            // of a second mixer, as q; of latent attention [n_heads, still_dims]; or [laurel_rank]
  k2,            // the same as k
  v2,            // the same as v; of latent attention [n_heads, latent_value_dim]
  streams,       // [streams - 1, dim]: the streams other than x
  predicted,     // [dim]: x before the layer
  hidden,        // [dim]: the last hidden states, for the layer that guesses tokens
  joined,        // [2 * dim]: the norms of a token's embedding and of the hidden state before it
  none
};
inline constexpr std::size_t kBufs = static_cast<std::size_t>(Buf::none);

enum class Advance : std::uint8_t { working, blocked, done };

struct OpRow {
  std::string_view name;
  Work work;
  /// Does one piece of the op, or waits for a segment. Pass::item() is 0 at first and belongs to the op.
  Advance (*step)(Pass& pass, const Op& op);
  bool chooses = false;   // it uses the segments of experts that its pass selected
  bool looks_up = false;  // it uses one row of its weight for each column
};

/// An op names its tensors by role; Pass::tensor() finds them.
struct Op {
  static constexpr std::size_t kArenaBytes = 24;
  const OpRow* row = nullptr;
  Buf in = Buf::none;
  Buf in2 = Buf::none;
  Buf out = Buf::none;
  bool has_weight = false, has_bias = false;
  Role weight{}, bias{};
  float factor = 1;  // for a norm, the epsilon
};

/// The memory that a layer needs for a sequence.
struct MemoryNeed {
  std::uint32_t n_kv_heads = 0;  // 0: no memory for positions
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;        // positions that a token sees; 0: all
  std::uint64_t state_floats = 0;  // size of a state that each position changes
  bool one_pass = false;           // nothing is kept after the op: layers and sequences use the memory in turn
  std::uint32_t from = 0;          // the stage whose memory this layer reads; 0: its own
  bool keys_only = false;          // a position's value is the start of its key
};

/// The way in which a layer's positions see each other.
struct MixerRow {
  /// Emits the ops from `in`, the stream or its norm, to `out`, which is added to the stream; both are [dim]. `out` may
  /// be `in`, so a product of `in` must have another output. If they differ, `in` does not change.
  void (*emit)(Builder& builder, Buf in, Buf out);
  MemoryNeed (*memory)(const LayerKind& kind, std::uint32_t dim);
};
#define QSF_MIXER(number, name, meaning) extern const MixerRow mixer_##name;
#include "qsf/file/layers.def"
const MixerRow& mixer_row(Mixer mixer);
const OpRow& activation_row(Activation activation);
/// Returns the factor of attention scores.
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
extern const OpRow op_decay_by_depth;
extern const OpRow op_recur;
extern const OpRow op_hidden;
extern const OpRow op_value_norm;
extern const OpRow op_group_norm;
extern const OpRow op_steps;
extern const OpRow op_scan;
extern const OpRow op_xielu;
extern const OpRow op_by_head;
extern const OpRow op_latent_join;
extern const OpRow op_copy;
extern const OpRow op_scale_by;
extern const OpRow op_layer_inputs;
extern const OpRow op_layer_input;
extern const OpRow op_add_by_text;
extern const OpRow op_mean;
extern const OpRow op_scale_by_vector;
extern const OpRow op_cut_gates;
extern const OpRow op_route_streams;
extern const OpRow op_predict;
extern const OpRow op_correct;
extern const OpRow op_add_to_streams;
extern const OpRow op_level_streams;
extern const OpRow op_join_streams;
extern const OpRow op_score;
extern const OpRow op_join;

}  // namespace qsf
