#include "converter/gguf_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "qsf/base/half.h"

namespace qsf::test {
namespace {

/// The row of a llama GGUF at which row r of a Hugging Face q or k lies: heads of two halves become neighbouring pairs
/// (convert_hf_to_gguf.py, LlamaModel.permute).
std::uint32_t permuted(std::uint32_t r, std::uint32_t head_dim) {
  const std::uint32_t head = r / head_dim, half = r % head_dim / (head_dim / 2), i = r % (head_dim / 2);
  return head * head_dim + i * 2 + half;
}

struct Name {
  Role role;
  const char* gguf;
};
constexpr std::array kNames{
    Name{Role::attn_q, "attn_q.weight"},           Name{Role::attn_k, "attn_k.weight"},
    Name{Role::attn_v, "attn_v.weight"},           Name{Role::attn_o, "attn_output.weight"},
    Name{Role::ffn_gate, "ffn_gate.weight"},       Name{Role::ffn_up, "ffn_up.weight"},
    Name{Role::ffn_down, "ffn_down.weight"},       Name{Role::attn_norm, "attn_norm.weight"},
    Name{Role::ffn_norm, "ffn_norm.weight"},       Name{Role::attn_q_bias, "attn_q.bias"},
    Name{Role::attn_k_bias, "attn_k.bias"},        Name{Role::attn_v_bias, "attn_v.bias"},
    Name{Role::attn_q_norm, "attn_q_norm.weight"}, Name{Role::attn_k_norm, "attn_k_norm.weight"}};

}  // namespace

Bytes ggml_row(GgmlType type, std::span<const float> row, std::span<float> values) {
  Bytes out;
  if (type == GgmlType::q8_0 || type == GgmlType::q4_0) {
    for (std::size_t b = 0; b < row.size(); b += 32) {
      const std::span<const float> x = row.subspan(b, 32);
      const float largest =
          *std::max_element(x.begin(), x.end(), [](float p, float q) { return std::fabs(p) < std::fabs(q); });
      const bool eight = type == GgmlType::q8_0;
      const std::uint16_t scale = f32_to_f16(eight ? std::fabs(largest) / 127 : largest / -8);
      const float d = f16_to_f32(scale);
      put(out, scale);
      std::array<int, 32> codes{};
      for (std::size_t i = 0; i < 32; ++i) {
        const int code = d == 0 ? 0 : static_cast<int>(std::lround(x[i] / d));
        codes[i] = eight ? std::clamp(code, -127, 127) : std::clamp(code, -8, 7);
        values[b + i] = d * static_cast<float>(codes[i]);
      }
      for (std::size_t i = 0; i < (eight ? 32 : 16); ++i) {
        put(out, static_cast<std::uint8_t>(eight ? codes[i] : (codes[i] + 8) | (codes[i + 16] + 8) << 4));
      }
    }
    return out;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (type == GgmlType::f32) {
      put(out, values[i] = row[i]);
    } else if (type == GgmlType::f16) {
      put(out, f32_to_f16(row[i]));
      values[i] = f16_to_f32(f32_to_f16(row[i]));
    } else {
      put(out, f32_to_bf16(row[i]));
      values[i] = bf16_to_f32(f32_to_bf16(row[i]));
    }
  }
  return out;
}

GgufWriter gguf_of(const std::string& directory, GgmlType type, std::map<std::string, Weights>& weights) {
  const nlohmann::json config = read_config(directory);
  weights = hugging_face_weights(directory);
  const std::string architecture = config["model_type"];
  const auto n = [&](const char* key) { return config[key].get<std::uint32_t>(); };
  const std::uint32_t head_dim =
      config.contains("head_dim") ? n("head_dim") : n("hidden_size") / n("num_attention_heads");
  GgufWriter out;
  out.text("general.architecture", architecture);
  out.u32(architecture + ".block_count", n("num_hidden_layers"));
  out.u32(architecture + ".context_length", n("max_position_embeddings"));
  out.u32(architecture + ".embedding_length", n("hidden_size"));
  out.u32(architecture + ".feed_forward_length", n("intermediate_size"));
  out.u32(architecture + ".attention.head_count", n("num_attention_heads"));
  out.u32(architecture + ".attention.head_count_kv", n("num_key_value_heads"));
  out.u32(architecture + ".attention.key_length", head_dim);
  out.u32(architecture + ".attention.value_length", head_dim);
  out.f32(architecture + ".attention.layer_norm_rms_epsilon", config["rms_norm_eps"]);
  out.f32(architecture + ".rope.freq_base", config["rope_parameters"]["rope_theta"]);

  const auto add = [&](const std::string& name, Role role, std::uint32_t layer) {
    const auto at = weights.find(hugging_face_name(role, layer));
    if (at == weights.end()) return;
    Weights& w = at->second;
    const GgmlType stored = w.rows == 1 ? GgmlType::f32 : type;
    const bool rotated = architecture == "llama" && (role == Role::attn_q || role == Role::attn_k);
    std::vector<Bytes> rows(w.rows);
    for (std::uint32_t r = 0; r < w.rows; ++r) {
      const std::span<float> row = std::span(w.values).subspan(std::size_t{r} * w.cols, w.cols);
      const std::vector<float> source(row.begin(), row.end());
      rows[rotated ? permuted(r, head_dim) : r] = ggml_row(stored, source, row);
    }
    Bytes data;
    for (const Bytes& row : rows) data.insert(data.end(), row.begin(), row.end());
    std::vector<std::uint64_t> shape{w.cols};
    if (w.rows > 1) shape.push_back(w.rows);
    out.tensor(name, stored, shape, std::move(data));
  };
  add("token_embd.weight", Role::token_embd, 0);
  for (std::uint32_t layer = 0; layer < n("num_hidden_layers"); ++layer) {
    for (const Name& name : kNames) add("blk." + std::to_string(layer) + "." + name.gguf, name.role, layer);
  }
  add("output_norm.weight", Role::final_norm, 0);
  add("output.weight", Role::head, 0);
  return out;
}

std::string gguf_encoder_name(std::string name) {
  struct Word {
    const char* from;
    const char* to;
  };
  for (const auto& [from, to] : std::initializer_list<Word>{{"roberta.", ""},
                                                            {"embeddings.word_embeddings", "token_embd"},
                                                            {"embeddings.position_embeddings", "position_embd"},
                                                            {"embeddings.token_type_embeddings", "token_types"},
                                                            {"embeddings.LayerNorm", "token_embd_norm"},
                                                            {"encoder.layer.", "blk."},
                                                            {"attention.self.query", "attn_q"},
                                                            {"attention.self.key", "attn_k"},
                                                            {"attention.self.value", "attn_v"},
                                                            {"attention.output.dense", "attn_output"},
                                                            {"attention.output.LayerNorm", "attn_output_norm"},
                                                            {"intermediate.dense", "ffn_up"},
                                                            {"classifier.dense", "cls"},
                                                            {"classifier.out_proj", "cls.output"},
                                                            {"output.dense", "ffn_down"},
                                                            {"output.LayerNorm", "layer_output_norm"}}) {
    if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, std::strlen(from), to);
  }
  return name;
}

}  // namespace qsf::test
