#include "converter/readers/checkpoints/llama2c.h"

#include <array>

#include "converter/model/sizes.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kHeaderBytes = 28;
constexpr float kEpsilon = 1e-5f;   // run.c's rmsnorm
constexpr float kTheta = 10000.0f;  // run.c's RoPE
constexpr std::uint32_t kBos = 1, kEos = 2;

struct Checkpoint {
  ModelConfig config;
  bool tied = true;
};

/// Reads the header; empty if a number is impossible.
std::optional<Checkpoint> read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return {};
  std::array<std::int32_t, 7> n{};
  std::memcpy(n.data(), bytes.data(), sizeof n);
  Checkpoint out;
  out.tied = n[5] > 0;
  if (n[5] < 0 && n[5] >= -static_cast<std::int32_t>(kMaxVocab)) n[5] = -n[5];
  constexpr std::array<std::string_view, 7> kNames{"dim",        "ffn_dim",    "n_layers",   "n_heads",
                                                   "n_kv_heads", "vocab_size", "max_seq_len"};
  for (std::size_t i = 0; i < n.size(); ++i) {
    if (!count_form(kNames[i]).holds(n[i])) return {};
  }
  ModelConfig& c = out.config;
  const auto u = [&](std::size_t i) { return static_cast<std::uint32_t>(n[i]); };
  c.dim = u(0);
  c.ffn_dim = u(1);
  c.n_layers = u(2);
  c.n_heads = u(3);
  c.n_kv_heads = u(4);
  c.vocab_size = u(5);
  c.max_seq_len = u(6);
  if (c.dim % c.n_heads != 0) return {};
  c.head_dim = c.dim / c.n_heads;
  return out;
}

struct Part {
  Role role;
  bool in_layers;
  std::uint64_t rows, cols;
};

/// Lists every tensor in file order. Returns the size of all of them with the header. Limits of read_header keep the
/// sums below 2^63.
std::uint64_t list_parts(const Checkpoint& checkpoint, std::vector<std::pair<Part, std::uint64_t>>* out) {
  const ModelConfig& c = checkpoint.config;
  const std::uint64_t kv = std::uint64_t{c.n_kv_heads} * c.head_dim;
  std::uint64_t at = kHeaderBytes;
  const auto add = [&](const Part& part) {
    if (out) out->emplace_back(part, at);
    at += (part.in_layers ? c.n_layers : 1) * part.rows * part.cols * sizeof(float);
  };
  add({Role::token_embd, false, c.vocab_size, c.dim});
  add({Role::attn_norm, true, 1, c.dim});
  add({Role::attn_q, true, c.dim, c.dim});
  add({Role::attn_k, true, kv, c.dim});
  add({Role::attn_v, true, kv, c.dim});
  add({Role::attn_o, true, c.dim, c.dim});
  add({Role::ffn_norm, true, 1, c.dim});
  add({Role::ffn_gate, true, c.ffn_dim, c.dim});
  add({Role::ffn_down, true, c.dim, c.ffn_dim});
  add({Role::ffn_up, true, c.ffn_dim, c.dim});
  add({Role::final_norm, false, 1, c.dim});
  at += std::uint64_t{c.max_seq_len} * (c.head_dim / 2) * 2 * sizeof(float);  // RoPE tables, unused
  if (!checkpoint.tied) add({Role::head, false, c.vocab_size, c.dim});
  return at;
}

/// Returns whether the sizes fit the file. kv_dim may be up to 2^40, too much for a file.
bool sizes_fit(const Checkpoint& checkpoint, std::uint64_t file_size) {
  const ModelConfig& c = checkpoint.config;
  return std::uint64_t{c.n_kv_heads} * c.head_dim <= c.dim && list_parts(checkpoint, nullptr) == file_size;
}

}  // namespace

bool is_llama2c(const ModelLocation& place) {
  if (!place.file) return false;
  const std::optional<Checkpoint> checkpoint = read_header(place.head);
  return checkpoint && sizes_fit(*checkpoint, place.file->size);
}

Result<LoadedModel> open_llama2c(const ModelLocation& place, bool with_tokenizer) {
  if (!is_llama2c(place)) return make_error(ErrorCode::bad_input, "{:.100} is no llama2.c checkpoint", place.name);
  const std::optional<Checkpoint> checkpoint = read_header(place.head);
  LoadedModel out;
  out.kind = "llama2.c";
  if (place.recipe) {
    return make_error(ErrorCode::bad_argument,
                      "a llama2.c checkpoint has no names of tensors that a recipe could give");
  }
  QSF_LET(recipe, recipe_for("llama"));
  out.recipe = std::move(recipe);
  out.naming = Naming::gguf;
  out.interleaved_rope = true;
  out.config = checkpoint->config;
  out.config.name = place.name;
  out.config.tied = checkpoint->tied;
  out.config.norm_epsilon = kEpsilon;
  out.config.rope_theta = kTheta;

  std::vector<std::pair<Part, std::uint64_t>> parts;
  list_parts(*checkpoint, &parts);
  for (const auto& [part, begin] : parts) {
    const std::uint64_t row_size = part.cols * sizeof(float);
    const std::uint64_t size = part.rows * row_size;
    for (std::uint32_t layer = 0; layer < (part.in_layers ? out.config.n_layers : 1); ++layer) {
      LoadedTensor tensor;
      tensor.name = name_of(*out.recipe, out.naming, part.role, layer);
      tensor.type = "F32";
      tensor.format = FormatId::f32;
      tensor.shape = {part.rows, part.cols};
      tensor.rows_of = rows_in(*place.file, begin + layer * size, size, row_size);
      out.tensors.push_back(std::move(tensor));
    }
  }

  QSF_TRY(add_llama2c_tokens(place, with_tokenizer, out));
  return out;
}

Status add_llama2c_tokens(const ModelLocation& place, bool with_tokenizer, LoadedModel& out) {
  out.config.bos = kBos;
  out.config.eos = kEos;
  if (!with_tokenizer) return {};
  const std::string numbered = "tok" + std::to_string(out.config.vocab_size);
  for (const std::string& name : {std::string("tokenizer.bin"), numbered + ".bin"}) {
    QSF_LET(file, place.folder.find(name));
    if (file) return read_tokenizer(*file, out);
  }
  out.warnings.push_back("there is no tokenizer.bin or " + numbered +
                         ".bin next to the checkpoint: the file will only take token ids (--tokenizer FILE names one)");
  return {};
}

}  // namespace qsf::convert
