// A GGUF file as a model: its architecture's keys, its tokenizer.
#include <cmath>

#include "converter/gguf.h"
#include "converter/rope_scaling.h"
#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kRopeFrequencies = "rope_freqs.weight";

Error missing(const std::string& key) {
  return make_error(ErrorCode::bad_input, "GGUF: the key {:.80} is missing or no whole number", key);
}

/// rope_freqs.weight: what the inverse frequencies are divided by, f32 [head_dim / 2].
Status read_rope_frequencies(const Gguf& gguf, ModelConfig& config) {
  for (const SourceTensor& tensor : gguf.tensors) {
    if (tensor.name != kRopeFrequencies) continue;
    if (tensor.format != FormatId::f32 || tensor.shape.size() != 1 || tensor.shape[0] != config.head_dim / 2) {
      return make_error(ErrorCode::bad_input, "GGUF: rope_freqs.weight is not an F32 vector of head_dim / 2 = {}",
                        config.head_dim / 2);
    }
    std::vector<float> divisors(tensor.shape[0]);
    QSF_TRY(tensor.rows_of(0, 1, std::as_writable_bytes(std::span(divisors))));
    for (const float divisor : divisors) {
      if (!(divisor > 0) || !std::isfinite(divisor)) {
        return make_error(ErrorCode::bad_input, "GGUF: rope_freqs.weight holds {}", divisor);
      }
    }
    config.rope_divisors = std::move(divisors);
  }
  return {};
}

Status read_scaling(const Gguf& gguf, const std::string& prefix, ModelConfig& config) {
  const std::string_view type = gguf.text(prefix + "rope.scaling.type").value_or("none");
  if (type == "linear") {
    const double factor = gguf.number(prefix + "rope.scaling.factor").value_or(1);
    Result<std::vector<float>> divisors = linear_divisors(factor, config.head_dim);
    if (!divisors) return divisors.error();
    config.rope_divisors = std::move(*divisors);
  } else if (type != "none") {
    return make_error(ErrorCode::unsupported, "GGUF: the RoPE scaling \"{:.40}\" is not supported", type);
  }
  return read_rope_frequencies(gguf, config);
}

Status read_config(const Gguf& gguf, ModelSource& out) {
  const std::optional<std::string_view> architecture = gguf.text("general.architecture");
  if (!architecture) return make_error(ErrorCode::bad_input, "GGUF: the key general.architecture is missing");
  const Result<const Recipe*> recipe = recipe_for(*architecture);
  if (!recipe) return recipe.error();
  out.recipe = *recipe;
  out.interleaved_rope = (*recipe)->gguf_interleaved;

  const std::string prefix = std::string(*architecture) + ".";
  ModelConfig& config = out.config;
  config.name = gguf.text("general.name").value_or("");
  struct Line {
    const char* key;
    std::uint32_t* out;
  };
  for (const Line& line : {Line{"block_count", &config.n_layers}, Line{"embedding_length", &config.dim},
                           Line{"attention.head_count", &config.n_heads}, Line{"feed_forward_length", &config.ffn_dim},
                           Line{"context_length", &config.max_seq_len}}) {
    const std::optional<std::uint32_t> value = gguf.u32(prefix + line.key);
    if (!value) return missing(prefix + line.key);
    *line.out = *value;
  }
  if (config.n_heads == 0) return missing(prefix + "attention.head_count");
  config.n_kv_heads = gguf.u32(prefix + "attention.head_count_kv").value_or(config.n_heads);
  config.head_dim = gguf.u32(prefix + "attention.key_length").value_or(config.dim / config.n_heads);
  const std::uint32_t value_dim = gguf.u32(prefix + "attention.value_length").value_or(config.head_dim);
  const std::uint32_t rope_dim = gguf.u32(prefix + "rope.dimension_count").value_or(config.head_dim);
  if (value_dim != config.head_dim || rope_dim != config.head_dim) {
    return make_error(
        ErrorCode::unsupported,
        "GGUF: keys of {}, values of {} and RoPE over {} dimensions are not supported: they must be equal",
        config.head_dim, value_dim, rope_dim);
  }
  if (config.head_dim > kMaxDim) return missing(prefix + "attention.key_length");
  const std::uint32_t n_experts = gguf.u32(prefix + "expert_count").value_or(0);
  if (n_experts != 0) {
    return make_error(ErrorCode::unsupported, "GGUF: a mixture of {} experts is not supported", n_experts);
  }
  const std::optional<double> epsilon = gguf.number(prefix + "attention.layer_norm_rms_epsilon");
  if (!epsilon) return missing(prefix + "attention.layer_norm_rms_epsilon");
  config.norm_epsilon = static_cast<float>(*epsilon);
  config.rope_theta = static_cast<float>(gguf.number(prefix + "rope.freq_base").value_or(10000));
  config.window = gguf.u32(prefix + "attention.sliding_window").value_or(0);
  config.bos = gguf.u32("tokenizer.ggml.bos_token_id").value_or(kNoToken);
  config.eos = gguf.u32("tokenizer.ggml.eos_token_id").value_or(kNoToken);
  config.pad = gguf.u32("tokenizer.ggml.padding_token_id").value_or(kNoToken);
  return read_scaling(gguf, prefix, config);
}

/// The vocabulary's size is the embedding's: the key vocab_size is often missing.
Status read_vocab_size(const Gguf& gguf, ModelConfig& config) {
  const NameText embedding = name_of(Naming::gguf, Role::token_embd, 0);
  for (const SourceTensor& tensor : gguf.tensors) {
    if (tensor.name != embedding.text) continue;
    const auto shape = matrix_shape(tensor.shape);
    if (!shape) break;
    config.vocab_size = (*shape)[0];
    return {};
  }
  return make_error(ErrorCode::bad_input, "GGUF: there is no tensor {} with a vocabulary", embedding.text);
}

struct Preset {
  std::string_view pre;  // tokenizer.ggml.pre
  bool ignore_merges;
  bool add_bos;
};
// What llama.cpp takes for granted where the keys are missing.
constexpr std::array kPresets{Preset{"llama-bpe", true, true}, Preset{"llama3", true, true},
                              Preset{"llama-v3", true, true}};

Status read_bpe(const Gguf& gguf, TokenizerSource& out) {
  out.kind = TokenizerKind::byte_bpe;
  out.pattern = gguf.text("tokenizer.ggml.pre").value_or("default");
  for (const Preset& preset : kPresets) {
    if (preset.pre != out.pattern) continue;
    out.ignore_merges = preset.ignore_merges;
    out.add_bos = preset.add_bos;
  }
  const std::optional<std::vector<std::string_view>> merges = gguf.texts("tokenizer.ggml.merges");
  if (!merges) return make_error(ErrorCode::bad_tokenizer, "GGUF: the key tokenizer.ggml.merges is missing");
  for (const std::string_view merge : *merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return make_error(ErrorCode::bad_tokenizer, "GGUF: merge {} is not two tokens with a space between",
                        out.merges.size());
    }
    out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return {};
}

}  // namespace

Result<std::optional<TokenizerSource>> read_gguf_tokenizer(const Gguf& gguf) {
  const std::optional<std::string_view> model = gguf.text("tokenizer.ggml.model");
  const std::optional<std::vector<std::string_view>> texts = gguf.texts("tokenizer.ggml.tokens");
  if (!model || *model == "no_vocab") return std::optional<TokenizerSource>();
  if (!texts) {
    return make_error(ErrorCode::bad_tokenizer,
                      "GGUF: the key tokenizer.ggml.tokens is missing or no list of at most {} texts", kMaxVocab);
  }
  TokenizerSource out;
  if (*model == "gpt2") {
    QSF_TRY(read_bpe(gguf, out));
  } else if (*model == "llama") {
    out.kind = TokenizerKind::spm_bpe;
    out.add_bos = true;
    out.add_space_prefix = true;
  } else {
    return make_error(ErrorCode::unsupported,
                      "GGUF: the tokenizer \"{:.40}\" is not supported; \"--tokenizer none\" converts without one",
                      *model);
  }
  out.add_bos = gguf.flag("tokenizer.ggml.add_bos_token").value_or(out.add_bos);
  out.add_space_prefix = gguf.flag("tokenizer.ggml.add_space_prefix").value_or(out.add_space_prefix);
  if (out.kind == TokenizerKind::byte_bpe) out.add_space_prefix = false;

  const std::optional<std::vector<double>> scores = gguf.numbers("tokenizer.ggml.scores");
  const std::optional<std::vector<double>> types = gguf.numbers("tokenizer.ggml.token_type");
  const bool needs_scores = out.kind == TokenizerKind::spm_bpe;
  if ((needs_scores && !scores) || (scores && scores->size() != texts->size()) ||
      (types && types->size() != texts->size())) {
    return make_error(ErrorCode::bad_tokenizer, "GGUF: {} tokens, but {} scores and {} token types", texts->size(),
                      scores ? scores->size() : 0, types ? types->size() : 0);
  }
  out.tokens.resize(texts->size());
  for (std::size_t i = 0; i < texts->size(); ++i) {
    TokenizerSource::Token& token = out.tokens[i];
    token.text = (*texts)[i];
    if (needs_scores) token.score = static_cast<float>((*scores)[i]);
    const double type = types ? (*types)[i] : 1;
    if (!(type >= 1 && type <= 6) || !std::isfinite(token.score)) {
      return make_error(ErrorCode::bad_tokenizer, "GGUF: token {} has the type {} and the score {}", i, type,
                        token.score);
    }
    token.type = static_cast<TokenType>(static_cast<std::uint8_t>(type));
  }
  return std::optional<TokenizerSource>(std::move(out));
}

bool is_gguf_file(const ModelPlace& place) { return place.file && is_gguf(place.head); }

Result<ModelSource> open_gguf(const ModelPlace& place, bool with_tokenizer) {
  QSF_LET(gguf, read_gguf(*place.file));
  if (gguf.u32("split.count").value_or(1) > 1) {
    return make_error(ErrorCode::unsupported, "this GGUF is one of {} parts, which is not supported: merge them first",
                      gguf.u32("split.count").value_or(0));
  }
  ModelSource out;
  out.kind = "GGUF";
  out.naming = Naming::gguf;
  out.carry_formats = true;
  QSF_TRY(read_config(gguf, out));
  QSF_TRY(read_vocab_size(gguf, out.config));
  if (out.config.name.empty()) out.config.name = place.name;
  if (with_tokenizer) {
    Result<std::optional<TokenizerSource>> tokenizer = read_gguf_tokenizer(gguf);
    if (!tokenizer) return tokenizer.error();
    out.tokenizer = std::move(*tokenizer);
    if (!out.tokenizer) out.warnings.push_back("the GGUF has no tokenizer: the file will only take token ids");
    QSF_TRY(fit_tokenizer(out));
  }
  out.tensors = std::move(gguf.tensors);
  return out;
}

}  // namespace qsf::convert
