// What each architecture calls its tensors and which it has: tables only. A new architecture is one line of kRecipes,
// and lines of kTensorNames when its names are new.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "qsf/file/layout.h"

namespace qsf::convert {

enum class Naming : std::uint8_t { hugging_face, gguf };

struct TensorName {
  Role role;
  std::string_view hugging_face;  // {} stands for the layer's number
  std::string_view gguf;
};

inline constexpr std::array kTensorNames{
    TensorName{Role::token_embd, "model.embed_tokens.weight", "token_embd.weight"},
    TensorName{Role::attn_norm, "model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    TensorName{Role::attn_q, "model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    TensorName{Role::attn_k, "model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    TensorName{Role::attn_v, "model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    TensorName{Role::attn_o, "model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    TensorName{Role::attn_q_bias, "model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    TensorName{Role::attn_k_bias, "model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
    TensorName{Role::attn_v_bias, "model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    TensorName{Role::attn_o_bias, "model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
    TensorName{Role::attn_q_norm, "model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    TensorName{Role::attn_k_norm, "model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    TensorName{Role::ffn_norm, "model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    TensorName{Role::ffn_gate, "model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    TensorName{Role::ffn_up, "model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    TensorName{Role::ffn_down, "model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    TensorName{Role::final_norm, "model.norm.weight", "output_norm.weight"},
    TensorName{Role::head, "lm_head.weight", "output.weight"},
};

/// Names that end so carry nothing that a model needs: RoPE's frequencies, which are computed.
inline constexpr std::array<std::string_view, 2> kIgnoredEndings{"rotary_emb.inv_freq", "rope_freqs.weight"};

enum class Use : std::uint8_t { never, optional, always };

/// Where a Hugging Face configuration says how far attention looks back.
enum class WindowRule : std::uint8_t {
  none,
  sliding_window,      // the key of that name; null: no window
  use_sliding_window,  // the same, and only when the key use_sliding_window is true
};

struct Recipe {
  std::string_view name;  // config.json's model_type, GGUF's general.architecture
  Arch arch;
  Use qkv_bias;
  Use o_bias;
  Use qk_norm;
  bool gguf_interleaved;  // GGUF stores q and k for RoPE over neighbouring pairs (2i, 2i + 1)
  WindowRule window;
  std::uint32_t default_window;  // when the key is missing, as transformers has it
};

inline constexpr std::array kRecipes{
    Recipe{"llama", Arch::llama, Use::optional, Use::optional, Use::never, true, WindowRule::none, 0},
    Recipe{"mistral", Arch::mistral, Use::never, Use::never, Use::never, true, WindowRule::sliding_window, 4096},
    Recipe{"qwen2", Arch::custom, Use::always, Use::never, Use::never, false, WindowRule::use_sliding_window, 4096},
    Recipe{"qwen3", Arch::custom, Use::optional, Use::optional, Use::always, false, WindowRule::use_sliding_window,
           4096},
};

/// nullptr when there is none.
const Recipe* find_recipe(std::string_view name);

/// What a recipe says of a role.
Use use_of(const Recipe& recipe, Role role);

struct TensorPlace {
  std::uint32_t layer = 0;  // 0 for tensors outside the layers
  Role role = Role::attn_q;
};
/// Empty when no line of kTensorNames has this name.
std::optional<TensorPlace> place_of_name(Naming naming, std::string_view name);
/// The inverse, for sentences; cut to fit.
struct NameText {
  char text[96];
};
NameText name_of(Naming naming, Role role, std::uint32_t layer);
bool ignored_name(std::string_view name);

}  // namespace qsf::convert
