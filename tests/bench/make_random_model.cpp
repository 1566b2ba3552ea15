// make-random-model SHAPE TYPE OUT.gguf [--seed N] [--layers N]: a GGUF file of random weights in the shape of a known
// model, for measuring speed. Weights are written as they are made, so that any size takes little memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/random_blocks.h"

namespace qsf::test {
namespace {

constexpr float kDeviation = 0.02f;                  // as models are initialized: activations stay near 1
constexpr float kUniform = 1.7320508f * kDeviation;  // either side, of uniform numbers of that deviation
constexpr std::uint32_t kEos = 2;

struct Shape {
  std::string_view name;
  std::uint32_t dim, n_layers, n_heads, n_kv_heads, ffn_dim, vocab_size;
  float rope_theta;
  bool tied;
  // Of mixtures of experts, whose ffn_dim is that of one expert.
  std::uint32_t n_experts = 0, experts_used = 0, wide_head = 0;

  bool mixture() const { return n_experts != 0; }
  std::uint32_t head_dim() const { return wide_head != 0 ? wide_head : dim / n_heads; }
};
constexpr Shape kShapes[] = {
    {"smollm-135m", 576, 30, 9, 3, 1536, 49152, 10000, true},
    {"tinyllama-1.1b", 2048, 22, 32, 4, 5632, 32000, 10000, false},
    {"qwen2.5-0.5b", 896, 24, 14, 2, 4864, 151936, 1000000, true},
    {"llama-7b", 4096, 32, 32, 32, 11008, 32000, 10000, false},
    {"llama-3.2-1b", 2048, 16, 32, 8, 8192, 128256, 500000, true},
    {"qwen3-30b-a3b", 2048, 48, 32, 4, 768, 151936, 1000000, false, 128, 8, 128},
};

enum class Matrix : std::uint8_t { output, attn_v, ffn_down, other };

/// Of `n`, the first and last eighth and every third between: where llama.cpp's mixtures spend more bits.
bool more_bits(std::uint32_t i, std::uint32_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

/// llama.cpp's Q4_K_M. Rows that are no whole number of K-blocks get the types that it falls back to.
GgmlType q4_k_m(Matrix matrix, std::uint32_t layer, std::uint32_t n_layers, std::uint32_t cols) {
  const bool wide = matrix == Matrix::output || (matrix != Matrix::other && more_bits(layer, n_layers));
  if (cols % 256 == 0) return wide ? GgmlType::q6_k : GgmlType::q4_k;
  return wide ? GgmlType::q8_0 : GgmlType::q5_0;
}

template <GgmlType kType>
GgmlType always(Matrix, std::uint32_t, std::uint32_t, std::uint32_t) {
  return kType;
}

struct Type {
  std::string_view name;
  GgmlType (*of)(Matrix matrix, std::uint32_t layer, std::uint32_t n_layers, std::uint32_t cols);
};
constexpr Type kTypes[] = {{"f16", always<GgmlType::f16>},
                           {"q2_0", always<GgmlType::q2_0>},
                           {"q8_0", always<GgmlType::q8_0>},
                           {"q4_0", always<GgmlType::q4_0>},
                           {"q4_k_m", q4_k_m}};

/// A SentencePiece vocabulary of the bytes and the letters, each also as a word of its own: " a b c" is three tokens.
void add_vocabulary(GgufWriter& out, std::uint32_t size) {
  enum Kind : std::int32_t { normal = 1, unknown = 2, control = 3, unused = 5, byte = 6 };
  std::vector<std::string> texts{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> kinds{unknown, control, control};
  for (int i = 0; i < 256; ++i) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", i);
    texts.emplace_back(text);
    kinds.push_back(byte);
  }
  const std::string space = "\u2581";
  for (char c = 'a'; c <= 'z'; ++c) texts.push_back(space + c);
  texts.push_back(space);
  for (char c = 'a'; c <= 'z'; ++c) texts.emplace_back(1, c);
  kinds.resize(texts.size(), normal);
  while (texts.size() < size) texts.push_back("<unused" + std::to_string(texts.size()) + ">");
  kinds.resize(texts.size(), unused);
  std::vector<float> scores(texts.size());
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  out.text("tokenizer.ggml.model", "llama");
  out.text("tokenizer.ggml.pre", "default");
  out.texts("tokenizer.ggml.tokens", texts);
  out.f32s("tokenizer.ggml.scores", scores);
  out.i32s("tokenizer.ggml.token_type", kinds);
  out.u32("tokenizer.ggml.bos_token_id", 1);
  out.u32("tokenizer.ggml.eos_token_id", kEos);
  out.u32("tokenizer.ggml.unknown_token_id", 0);
  out.flag("tokenizer.ggml.add_bos_token", true);
  out.flag("tokenizer.ggml.add_eos_token", false);
  out.flag("tokenizer.ggml.add_space_prefix", true);
}

void add_sizes(GgufWriter& out, const Shape& s) {
  const std::string architecture = s.mixture() ? "qwen3moe" : "llama", prefix = architecture + ".";
  out.text("general.architecture", architecture);
  out.text("general.name", std::string(s.name) + " with random weights");
  out.u32("general.alignment", kGgufAlignment);
  out.u32(prefix + "block_count", s.n_layers);
  out.u32(prefix + "context_length", 2048);
  out.u32(prefix + "embedding_length", s.dim);
  out.u32(prefix + "feed_forward_length", s.ffn_dim);
  out.u32(prefix + "attention.head_count", s.n_heads);
  out.u32(prefix + "attention.head_count_kv", s.n_kv_heads);
  out.u32(prefix + "rope.dimension_count", s.head_dim());
  out.f32(prefix + "rope.freq_base", s.rope_theta);
  out.f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  out.u32(prefix + "vocab_size", s.vocab_size);
  if (!s.mixture()) return;
  out.u32(prefix + "attention.key_length", s.head_dim());
  out.u32(prefix + "attention.value_length", s.head_dim());
  out.u32(prefix + "expert_count", s.n_experts);
  out.u32(prefix + "expert_used_count", s.experts_used);
  out.u32(prefix + "expert_feed_forward_length", s.ffn_dim);
}

struct Tensor {
  std::string name;
  GgmlType type;
  std::uint32_t cols, rows;     // rows 1: a norm
  std::uint32_t n_experts = 0;  // 0: not stacked
  float deviation = kDeviation;
  bool changing = false;  // a norm: in sign

  std::uint64_t total_rows() const { return std::uint64_t{rows} * std::max(n_experts, 1u); }
  std::uint64_t row_bytes() const {
    if (type == GgmlType::f32) return cols * sizeof(float);
    const BlockType& block = block_type(type);
    return std::uint64_t{cols} / block.weights * block.bytes;
  }
};

std::vector<Tensor> tensors_of(const Shape& s, const Type& type) {
  std::vector<Tensor> out;
  const auto matrix = [&](const std::string& name, Matrix kind, std::uint32_t layer, std::uint32_t cols,
                          std::uint32_t rows, std::uint32_t n_experts = 0) {
    out.push_back({name + ".weight", type.of(kind, layer, s.n_layers, cols), cols, rows, n_experts});
  };
  const auto norm = [&](const std::string& name, std::uint32_t cols) {
    out.push_back({name + ".weight", GgmlType::f32, cols, 1, 0, kDeviation, s.mixture()});
  };
  const std::uint32_t q_dim = s.head_dim() * s.n_heads, kv_dim = s.head_dim() * s.n_kv_heads;
  const std::string stacked = s.mixture() ? "_exps" : "";
  matrix("token_embd", s.tied ? Matrix::output : Matrix::other, 0, s.dim, s.vocab_size);
  // Else attention's mean of the context would outweigh the token, and all would choose the same experts.
  if (s.mixture()) out.back().deviation = 1;
  for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    norm(block + "attn_norm", s.dim);
    matrix(block + "attn_q", Matrix::other, layer, s.dim, q_dim);
    matrix(block + "attn_k", Matrix::other, layer, s.dim, kv_dim);
    matrix(block + "attn_v", Matrix::attn_v, layer, s.dim, kv_dim);
    matrix(block + "attn_output", Matrix::other, layer, q_dim, s.dim);
    norm(block + "ffn_norm", s.dim);
    if (s.mixture()) {
      norm(block + "attn_q_norm", s.head_dim());
      norm(block + "attn_k_norm", s.head_dim());
      out.push_back({block + "ffn_gate_inp.weight", GgmlType::f32, s.dim, s.n_experts});
    }
    matrix(block + "ffn_gate" + stacked, Matrix::other, layer, s.dim, s.ffn_dim, s.n_experts);
    matrix(block + "ffn_up" + stacked, Matrix::other, layer, s.dim, s.ffn_dim, s.n_experts);
    matrix(block + "ffn_down" + stacked, Matrix::ffn_down, layer, s.ffn_dim, s.dim, s.n_experts);
  }
  norm("output_norm", s.dim);
  if (!s.tied) matrix("output", Matrix::output, 0, s.dim, s.vocab_size);
  return out;
}

/// A norm, or a router's row. Rounded weights have no mean of quite 0. Norms of changing sign keep it from growing with
/// each layer into a direction that all tokens share, in which they would choose the same experts.
void fill_floats(Random& random, const Tensor& t, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = t.rows > 1 ? kUniform * random.symmetric() : t.changing && i % 2 != 0 ? -1.0f : 1.0f;
  }
}

bool write_tensor(std::FILE* file, const Tensor& t, Random& random) {
  std::vector<std::byte> row(t.row_bytes());
  std::vector<float> values(t.cols);
  const bool to_logits = t.name == "output.weight" || t.name == "token_embd.weight";
  for (std::uint64_t r = 0; r < t.total_rows(); ++r) {
    if (t.type == GgmlType::f32) {
      fill_floats(random, t, values);
      std::memcpy(row.data(), values.data(), row.size());
    } else {
      // The end token's logit is 0, below the largest of thousands: greedy texts do not end.
      fill_random(block_type(t.type), random, to_logits && r == kEos ? 0 : t.deviation, row);
    }
    if (std::fwrite(row.data(), 1, row.size(), file) != row.size()) return false;
  }
  const std::uint64_t size = t.row_bytes() * t.total_rows(), padding = GgufWriter::aligned(size) - size;
  const std::vector<std::byte> zeros(padding);
  return std::fwrite(zeros.data(), 1, padding, file) == padding;
}

bool write(const Shape& shape, const Type& type, const char* path, std::uint64_t seed) {
  GgufWriter writer;
  add_sizes(writer, shape);
  add_vocabulary(writer, shape.vocab_size);
  const std::vector<Tensor> tensors = tensors_of(shape, type);
  for (const Tensor& t : tensors) {
    std::vector<std::uint64_t> extents{t.cols};
    if (t.rows > 1) extents.push_back(t.rows);
    if (t.n_experts > 0) extents.push_back(t.n_experts);
    writer.tensor(t.name, t.type, extents, t.row_bytes() * t.total_rows());
  }
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) return false;
  const Bytes head = writer.head();
  Random random(seed);
  bool good = std::fwrite(head.data(), 1, head.size(), file) == head.size();
  for (const Tensor& t : tensors) good = good && write_tensor(file, t, random);
  return std::fclose(file) == 0 && good;
}

template <class Row, std::size_t kRows>
const Row* find(const Row (&table)[kRows], std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

template <class Row, std::size_t kRows>
std::string names(const Row (&table)[kRows]) {
  std::string out;
  for (const Row& row : table) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

int usage() {
  std::fprintf(stderr,
               "usage: make-random-model SHAPE TYPE OUT.gguf [--seed N] [--layers N]\n"
               "shapes: %s\ntypes: %s\n",
               names(kShapes).c_str(), names(kTypes).c_str());
  return 2;
}

int main(int argc, char** argv) {
  if (argc < 4) return usage();
  const Shape* known = find(kShapes, argv[1]);
  const Type* type = find(kTypes, argv[2]);
  if (known == nullptr || type == nullptr || argc % 2 != 0) return usage();
  Shape shape = *known;
  std::uint64_t seed = 1;
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed") {
      seed = value;
    } else if (option == "--layers" && value > 0) {
      shape.n_layers = static_cast<std::uint32_t>(value);
    } else {
      return usage();
    }
  }
  if (write(shape, *type, argv[3], seed)) return 0;
  std::perror(argv[3]);
  return 1;
}

}  // namespace
}  // namespace qsf::test

int main(int argc, char** argv) { return qsf::test::main(argc, argv); }
