#include "converter/readers/checkpoints/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "converter/model/sizes.h"
#include "converter/readers/checkpoints/llama2c.h"
#include "converter/recipes/settings.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kHeaderBytes = 256;
constexpr std::uint64_t kMaxTokenizerBytes = 64 << 20;
constexpr FormatId kInt8 = own_type(20);

enum class Stored : std::uint8_t { f32, int8, ternary };

struct Layout {
  const char* source;  // for META
  std::uint32_t magic, version;
  const char* architecture;
  Stored matrices;
  bool qwen;                            // head_dim in the header, norms of queries and keys, RoPE over halves
  float epsilon, final_epsilon, theta;  // of norms, of the last norm (0: the same), of RoPE
};
constexpr std::uint32_t kAk42 = 0x616b3432, kAjc1 = 0x616a6331;
constexpr std::array kLayouts{
    Layout{"llama2.c", kAk42, 1, "llama", Stored::f32, false, 1e-5f, 0, 1e4f},
    Layout{"llama2.c", kAk42, 2, "llama", Stored::int8, false, 1e-5f, 0, 1e4f},
    Layout{"bitllama2.c", kAk42, 1, "bitnet", Stored::ternary, false, 1e-30f, 1e-5f, 1e4f},
    Layout{"qwen3.c", kAjc1, 1, "qwen3", Stored::int8, true, 1e-6f, 0, 1e6f},
};

struct Checkpoint {
  const Layout* layout = nullptr;
  ModelConfig config;
  std::uint32_t group = 0;  // weights that share a scale
  bool tied = true;
};

/// Reads the header; empty if a number is impossible.
std::optional<Checkpoint> read_header(const Layout& layout, std::span<const std::byte> head) {
  ByteReader in(head);
  if (in.read<std::uint32_t>() != layout.magic || in.read<std::uint32_t>() != layout.version) return {};
  Checkpoint out;
  out.layout = &layout;
  ModelConfig& c = out.config;
  bool possible = true;
  const auto size = [&](std::string_view name) {
    const auto n = in.read<std::uint32_t>();
    possible = possible && count_form(name).holds(n);
    return n;
  };
  c.dim = size("dim");
  c.ffn_dim = size("ffn_dim");
  c.n_layers = size("n_layers");
  c.n_heads = size("n_heads");
  c.n_kv_heads = size("n_kv_heads");
  c.vocab_size = size("vocab_size");
  c.max_seq_len = size("max_seq_len");
  if (layout.qwen) {
    c.head_dim = size("head_dim");
    out.tied = in.read<std::uint32_t>() != 0;
  } else {
    possible = possible && c.dim % c.n_heads == 0;
    if (possible) c.head_dim = c.dim / c.n_heads;
    out.tied = in.read<std::uint8_t>() != 0;
  }
  if (layout.matrices == Stored::int8) out.group = size("dim");  // a group is part of a row
  // A row of projections has at most kMaxDim values, so that no size below passes 2^63.
  possible = possible && !in.bad() && std::uint64_t{c.n_heads} * c.head_dim <= kMaxDim &&
             std::uint64_t{c.n_kv_heads} * c.head_dim <= kMaxDim;
  return possible ? std::optional(out) : std::nullopt;
}

struct Part {
  Role role;
  bool in_layers;
  std::uint64_t rows, cols;
  Stored stored;
};

/// Returns the bytes of one tensor; 0 if its shape is impossible.
std::uint64_t stored_bytes(const Part& part, std::uint32_t group) {
  const std::uint64_t n = part.rows * part.cols;
  switch (part.stored) {
    case Stored::f32:
      return n * sizeof(float);
    case Stored::int8:
      return n % group == 0 ? n + n / group * sizeof(float) : 0;
    case Stored::ternary:
      return part.cols % 4 == 0 ? sizeof(float) + n / 4 : 0;
  }
  return 0;
}

/// Lists every tensor in file order. Returns the size of all of them with the header; 0 if one is impossible.
std::uint64_t list_parts(const Checkpoint& checkpoint, std::vector<std::pair<Part, std::uint64_t>>* out) {
  const ModelConfig& c = checkpoint.config;
  const Stored matrices = checkpoint.layout->matrices;
  const std::uint64_t q = std::uint64_t{c.n_heads} * c.head_dim, kv = std::uint64_t{c.n_kv_heads} * c.head_dim;
  std::uint64_t at = kHeaderBytes;
  const auto add = [&](Role role, bool in_layers, std::uint64_t rows, std::uint64_t cols, Stored stored) {
    const Part part{role, in_layers, rows, cols, stored};
    const std::uint64_t size = stored_bytes(part, checkpoint.group);
    if (at == 0 || size == 0) {
      at = 0;
      return;
    }
    if (out) out->emplace_back(part, at);
    at += (in_layers ? c.n_layers : 1) * size;
  };
  const bool weighted = matrices != Stored::ternary;  // otherwise only the last norm has weights
  if (weighted) {
    add(Role::attn_norm, true, 1, c.dim, Stored::f32);
    add(Role::ffn_norm, true, 1, c.dim, Stored::f32);
  }
  add(Role::final_norm, false, 1, c.dim, Stored::f32);
  if (checkpoint.layout->qwen) {
    add(Role::attn_q_norm, true, 1, c.head_dim, Stored::f32);
    add(Role::attn_k_norm, true, 1, c.head_dim, Stored::f32);
  }
  add(Role::token_embd, false, c.vocab_size, c.dim, weighted ? matrices : Stored::f32);
  add(Role::attn_q, true, q, c.dim, matrices);
  add(Role::attn_k, true, kv, c.dim, matrices);
  add(Role::attn_v, true, kv, c.dim, matrices);
  add(Role::attn_o, true, c.dim, q, matrices);
  add(Role::ffn_gate, true, c.ffn_dim, c.dim, matrices);
  add(Role::ffn_down, true, c.dim, c.ffn_dim, matrices);
  add(Role::ffn_up, true, c.ffn_dim, c.dim, matrices);
  if (!checkpoint.tied) add(Role::head, false, c.vocab_size, c.dim, weighted ? matrices : Stored::f32);
  return at;
}

std::optional<Checkpoint> recognise(const ModelLocation& place) {
  if (!place.file) return {};
  for (const Layout& layout : kLayouts) {
    const std::optional<Checkpoint> found = read_header(layout, place.head);
    if (found && list_parts(*found, nullptr) == place.file->size) return found;
  }
  return {};
}

/// Int8 codes of a whole tensor, then a float scale for every `group` of them.
struct Int8Rows {
  Input input;
  std::uint64_t begin, n;
  std::uint32_t cols, group;
  const Format* format;  // f32 or q8_f32

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    const std::uint64_t from = std::uint64_t{first} * cols, count = std::uint64_t{rows} * cols;
    if (from > n || count > n - from || out.size() != rows * row_bytes(*format, cols)) {
      return make_error(ErrorCode::internal, "rows {} + {} were asked of {} weights", first, rows, n);
    }
    QSF_LET(codes, read_range(input, begin + from, count));
    const std::uint64_t first_scale = from / group, end_scale = (from + count + group - 1) / group;
    QSF_LET(scales,
            read_range(input, begin + n + first_scale * sizeof(float), (end_scale - first_scale) * sizeof(float)));
    const auto scale_of = [&](std::uint64_t i) {
      return load_le<float>(&scales[((from + i) / group - first_scale) * sizeof(float)]);
    };
    std::byte* at = out.data();
    for (std::uint64_t i = 0; i < count; i += format->block, at += format->block_bytes) {
      const float scale = scale_of(i);
      if (format->quantized()) {
        store_le(at, scale);
        std::memcpy(at + format->scale.at + sizeof scale, &codes[i], format->block);
      } else {
        store_le(at, scale * static_cast<float>(load_le<std::int8_t>(&codes[i])));
      }
    }
    return {};
  }
};

/// A float scale, then 2-bit codes, the highest bits first. A code is 0, 1 or -1 (3) times the scale divided by the
/// number of columns.
struct TernaryWeights {
  Input input;
  std::uint64_t begin, n_rows;
  std::string name;

  Status operator()(std::uint32_t row, std::span<float> weights) const {
    if (row >= n_rows) return make_error(ErrorCode::internal, "row {} was asked of {} rows", row, n_rows);
    std::array<std::byte, sizeof(float)> front{};
    QSF_TRY(input.read(begin, front));
    const float scale = load_le<float>(front.data()) / static_cast<float>(weights.size());
    std::vector<std::byte> codes(weights.size() / 4);
    QSF_TRY(input.read(begin + sizeof scale + std::uint64_t{row} * codes.size(), codes));
    for (std::size_t c = 0; c < weights.size(); ++c) {
      const unsigned code = std::to_integer<unsigned>(codes[c / 4]) >> (6 - 2 * (c % 4)) & 3;
      if (code == 2) return not_ternary(name, row);
      weights[c] = code == 0 ? 0 : code == 1 ? scale : -scale;
    }
    return {};
  }
};

LoadedTensor tensor_of(const ModelLocation& place, const Part& part, std::uint32_t group, std::uint64_t begin,
                       std::string name) {
  LoadedTensor out;
  out.name = std::move(name);
  out.shape = {part.rows, part.cols};
  const auto cols = static_cast<std::uint32_t>(part.cols);
  const std::uint64_t n = part.rows * part.cols;
  switch (part.stored) {
    case Stored::f32:
      out.type = "F32";
      out.format = FormatId::f32;
      out.rows_of = rows_in(*place.file, begin, n * sizeof(float), part.cols * sizeof(float));
      break;
    case Stored::int8: {
      const std::uint32_t block = find_format(kInt8)->block;
      out.type = "int8";
      out.format = group % block == 0 && cols % group == 0 ? kInt8 : FormatId::f32;
      out.rows_of = Int8Rows{*place.file, begin, n, cols, group, find_format(out.format)};
      break;
    }
    case Stored::ternary:
      out.type = "ternary";
      out.format = kScaledTernary;
      out.rows_of = rows_made(kScaledTernary, cols, out.name, TernaryWeights{*place.file, begin, part.rows, out.name});
      break;
  }
  return out;
}

/// Adds norms of ones, which a file of ternary weights leaves out.
void add_unit_norms(const ModelConfig& config, std::vector<LoadedTensor>& out) {
  struct Norm {
    const char* name;
    std::uint32_t size;
  };
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    for (const Norm& norm : {Norm{"attn_norm", config.dim}, Norm{"attn_sub_norm", config.n_heads * config.head_dim},
                             Norm{"ffn_norm", config.dim}, Norm{"ffn_sub_norm", config.ffn_dim}}) {
      LoadedTensor tensor;
      tensor.name = "blk." + std::to_string(layer) + "." + norm.name + ".weight";
      tensor.type = "F32";
      tensor.format = FormatId::f32;
      tensor.shape = {norm.size};
      tensor.rows_of = [](std::uint32_t, std::uint32_t, std::span<std::byte> to) -> Status {
        for (std::size_t at = 0; at < to.size(); at += sizeof(float)) store_le(&to[at], 1.0f);
        return {};
      };
      out.push_back(std::move(tensor));
    }
  }
}

/// Returns the tensors under GGUF's usual names.
std::vector<LoadedTensor> tensors_of(const ModelLocation& place, const Checkpoint& checkpoint) {
  const Recipe usual;
  const std::uint32_t n_layers = checkpoint.config.n_layers;
  std::vector<std::pair<Part, std::uint64_t>> parts;
  list_parts(checkpoint, &parts);
  std::vector<LoadedTensor> out;
  for (const auto& [part, begin] : parts) {
    const std::uint64_t size = stored_bytes(part, checkpoint.group);
    for (std::uint32_t layer = 0; layer < (part.in_layers ? n_layers : 1); ++layer) {
      out.push_back(tensor_of(place, part, checkpoint.group, begin + layer * size,
                              name_of(usual, Naming::gguf, part.role, layer)));
    }
  }
  if (checkpoint.layout->matrices == Stored::ternary) add_unit_norms(checkpoint.config, out);
  return out;
}

/// Reads the tokenizer: the checkpoint's name with .tokenizer appended, or in place of its extension.
Status add_qwen3c_tokens(const ModelLocation& place, bool with_tokenizer, LoadedModel& out) {
  for (const std::string& name : {place.file->name + ".tokenizer", place.name + ".tokenizer"}) {
    QSF_LET(file, place.folder.find(name));
    if (!file) continue;
    if (file->size > kMaxTokenizerBytes) {
      return make_error(ErrorCode::bad_tokenizer, "{:.100} has {} bytes, {} is the most", name, file->size,
                        kMaxTokenizerBytes);
    }
    QSF_LET(bytes, read_head(*file, file->size));
    QSF_LET(tokenizer, read_qwen3c_tokenizer(bytes, out.config.vocab_size));
    out.config.bos = tokenizer.bos;
    out.config.eos = tokenizer.eos;
    if (!with_tokenizer) return {};
    out.tokenizer = std::move(tokenizer.source);
    return fit_tokenizer(out);
  }
  out.warnings.push_back("there is no " + place.file->name +
                         ".tokenizer next to the checkpoint: the file will only take token ids, and no token ends a "
                         "text (--tokenizer FILE names a tokenizer.json)");
  return {};
}

}  // namespace

bool is_checkpoint(const ModelLocation& place) { return recognise(place).has_value(); }

Result<std::vector<LoadedTensor>> read_checkpoint(const ModelLocation& place) {
  const std::optional<Checkpoint> checkpoint = recognise(place);
  if (!checkpoint) return make_error(ErrorCode::bad_input, "{:.100} is no checkpoint that is known", place.name);
  return tensors_of(place, *checkpoint);
}

Result<LoadedModel> open_checkpoint(const ModelLocation& place, bool with_tokenizer) {
  const std::optional<Checkpoint> checkpoint = recognise(place);
  if (!checkpoint) return make_error(ErrorCode::bad_input, "{:.100} is no checkpoint that is known", place.name);
  const Layout& layout = *checkpoint->layout;
  if (place.recipe) {
    return make_error(ErrorCode::bad_argument, "a {} checkpoint has no names of tensors that a recipe could give",
                      layout.source);
  }
  LoadedModel out;
  out.kind = layout.source;
  QSF_LET(recipe, recipe_for(layout.architecture));
  out.recipe = std::move(recipe);
  out.naming = Naming::gguf;
  out.interleaved_rope = !layout.qwen;
  out.carry_formats = layout.matrices != Stored::f32;
  out.config = checkpoint->config;
  out.config.name = place.name;
  out.config.tied = checkpoint->tied;
  out.config.norm_epsilon = layout.epsilon;
  out.config.rope_theta = layout.theta;
  const Lookup nothing{.value = [](const std::string&) { return Json(nullptr); }};
  QSF_LET(layers, resolve(*out.recipe, out.naming, nothing, place.file->name));
  out.layers = std::move(layers);
  if (layout.matrices == Stored::ternary) {  // other models of the architecture square a ReLU
    out.layers.every.push_back(layer_setting("activation", static_cast<double>(Activation::silu)));
  }
  if (layout.final_epsilon != 0) {
    out.layers.model.push_back(model_setting("final_epsilon", layout.final_epsilon));
  }

  out.tensors = tensors_of(place, *checkpoint);
  QSF_TRY(layout.qwen ? add_qwen3c_tokens(place, with_tokenizer, out) : add_llama2c_tokens(place, with_tokenizer, out));
  return out;
}

}  // namespace qsf::convert
