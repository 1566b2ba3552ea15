// GGUF: carried types, the order of q's and k's rows, scaling, damage.
#include "converter/readers/gguf/gguf.h"

#include <cmath>
#include <cstring>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/base/half.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

struct CarriedType {
  GgmlType type;
  FormatId carried;
};
constexpr std::array kCases{CarriedType{GgmlType::f32, FormatId::f32}, CarriedType{GgmlType::f16, FormatId::f16},
                            CarriedType{GgmlType::bf16, FormatId::bf16}, CarriedType{GgmlType::q8_0, ggml_type(8)},
                            CarriedType{GgmlType::q4_0, ggml_type(2)}};

TEST(Gguf, EveryTypeIsCarriedWithoutLoss) {
  const std::array fixtures{"/tests/data/llama", "/tests/data/qwen2", "/tests/data/qwen3"};
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    const std::string fixture = kSource + fixtures[i % fixtures.size()];
    const Folder folder;
    std::map<std::string, Weights> expected;
    write_bytes(folder.path("model.gguf"), gguf_of(fixture, kCases[i].type, expected).file());
    const Written file = convert(folder.path("model.gguf"), {});
    std::size_t n_used = 0;
    for (const auto& [key, weights] : file.weights) {
      const std::string name = hugging_face_name(key.second, key.first - 1);
      ASSERT_TRUE(expected.contains(name)) << name;
      EXPECT_EQ(weights.values, expected.at(name).values) << fixture << " " << name;
      ++n_used;
    }
    EXPECT_EQ(n_used, expected.size());
    EXPECT_EQ(static_cast<FormatId>(file.tables.header.quant), kCases[i].carried);
  }
}

// Two programs write type 42, with 64 weights in 18 bytes or with 128 in 34.
TEST(Gguf, TheSizeTellsWhichTwoBitBlocksTheyAre) {
  constexpr std::uint64_t kCols = 256, kRows = 32;
  for (const std::string_view name : {"q2_0", "q2_0-128"}) {
    const Format& format = *find_format(name);
    GgufWriter writer;
    const Bytes rows(kRows * row_bytes(format, kCols), std::byte{0x3c});
    writer.tensor("first", static_cast<GgmlType>(42), {kCols, kRows}, rows);
    writer.tensor("second", static_cast<GgmlType>(42), {kCols, kRows}, rows);
    const Bytes file = writer.file();
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", file));
    ASSERT_TRUE(gguf) << gguf.error().sentence;
    for (const convert::LoadedTensor& tensor : gguf->tensors) EXPECT_EQ(tensor.format, format.id) << name;
  }
}

TEST(Gguf, AnotherTypeCanBeAskedFor) {
  const Folder folder;
  std::map<std::string, Weights> expected;
  write_bytes(folder.path("model.gguf"), gguf_of(kSource + "/tests/data/llama", GgmlType::q4_0, expected).file());
  const Written file = convert(folder.path("model.gguf"), {FormatId::f32, Compression::none, 0});
  const auto& q = file.weights.at({1, Role::attn_q});
  EXPECT_EQ(q.values, expected.at("model.layers.0.self_attn.q_proj.weight").values);
  EXPECT_EQ(static_cast<FormatId>(file.tables.header.quant), FormatId::f32);
}

TEST(Gguf, RopeFrequenciesBecomeDivisors) {
  const Folder folder;
  std::map<std::string, Weights> expected;
  GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, expected);
  std::vector<float> divisors(16);
  Bytes bytes;
  for (std::size_t i = 0; i < divisors.size(); ++i) put(bytes, divisors[i] = 1 + 0.5f * static_cast<float>(i));
  writer.tensor("rope_freqs.weight", GgmlType::f32, {16}, bytes);
  write_bytes(folder.path("model.gguf"), writer.file());
  EXPECT_EQ(convert(folder.path("model.gguf"), {}).section_floats(kTagRope), divisors);
}

TEST(Gguf, LinearScalingDividesEveryFrequency) {
  const Folder folder;
  std::map<std::string, Weights> expected;
  GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, expected);
  writer.text("llama.rope.scaling.type", "linear");
  writer.f32("llama.rope.scaling.factor", 4);
  write_bytes(folder.path("model.gguf"), writer.file());
  EXPECT_EQ(convert(folder.path("model.gguf"), {}).section_floats(kTagRope), std::vector<float>(16, 4.0f));
}

TEST(Gguf, LayersThatGuessAreLeftOut) {
  const Folder folder;
  const std::string path = folder.path("model.gguf");
  const auto write = [&](std::uint32_t n_guessing) {
    std::map<std::string, Weights> expected;
    GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, expected);
    writer.u32("llama.nextn_predict_layers", n_guessing);
    write_bytes(path, writer.file());
  };
  write(0);
  const std::uint32_t n = convert(path, {}).tables.header.n_layers;
  write(1);
  EXPECT_EQ(convert(path, {}).tables.header.n_layers, n - 1);
  write(n);
  EXPECT_NE(std::strstr(convert_error(path).sentence, "guess further tokens"), nullptr);
}

// As in DeepSeek's and Mistral's files: the factor is 1 for a multiplier of 1.
TEST(Gguf, AYarnMultiplierDividesTheFactorOfAttention) {
  for (const float m : {1.0f, 0.5f}) {
    const Folder folder;
    std::map<std::string, Weights> expected;
    GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, expected);
    writer.text("llama.rope.scaling.type", "yarn");
    writer.f32("llama.rope.scaling.factor", 4);
    writer.f32("llama.rope.scaling.yarn_log_multiplier", m);
    write_bytes(folder.path("model.gguf"), writer.file());
    const double usual = 0.1 * std::log(4.0) + 1, all = 0.1 * double{m} * std::log(4.0) + 1;
    const Written file = convert(folder.path("model.gguf"), {});
    EXPECT_NEAR(file.layers().kinds.front().rope_scale, usual / all, 1e-6);
  }
}

TEST(Gguf, BiasesOfInterleavedModelsAreReordered) {
  const Folder folder;
  std::map<std::string, Weights> expected;
  GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f32, expected);
  for (int layer = 0; layer < 3; ++layer) {
    Bytes q, k;
    for (int i = 0; i < 128; ++i) put(q, static_cast<float>(i));
    for (int i = 0; i < 64; ++i) put(k, static_cast<float>(i));
    const std::string front = "blk." + std::to_string(layer) + ".";
    writer.tensor(front + "attn_q.bias", GgmlType::f32, {128}, q);
    writer.tensor(front + "attn_k.bias", GgmlType::f32, {64}, k);
  }
  write_bytes(folder.path("model.gguf"), writer.file());
  const Written file = convert(folder.path("model.gguf"), {});
  const std::vector<float>& q = file.weights.at({2, Role::attn_q_bias}).values;
  // Pairs (0, 1), (2, 3) ... of a head become (0, 16), (1, 17) ...
  EXPECT_EQ(q[0], 0);
  EXPECT_EQ(q[16], 1);
  EXPECT_EQ(q[1], 2);
  EXPECT_EQ(q[17], 3);
  EXPECT_EQ(q[32 + 15], 32 + 30);
  EXPECT_EQ(file.weights.at({2, Role::attn_k_bias}).values[63], 63);
}

class Damage : public testing::Test {
 protected:
  void SetUp() override {
    std::map<std::string, Weights> weights;
    writer_ = gguf_of(kSource + "/tests/data/llama", GgmlType::q8_0, weights);
  }
  Error error_of(const Bytes& file) {
    write_bytes(folder_.path("model.gguf"), file);
    return convert_error(folder_.path("model.gguf"));
  }
  Error error() { return error_of(writer_.file()); }

  Folder folder_;
  GgufWriter writer_;
};

void expect(const Error& error, ErrorCode code, const char* part) {
  EXPECT_EQ(error.code, code) << error.sentence;
  EXPECT_NE(std::strstr(error.sentence, part), nullptr) << error.sentence;
}

TEST_F(Damage, WrongVersion) {
  Bytes file = writer_.file();
  file[4] = std::byte{1};
  expect(error_of(file), ErrorCode::bad_version, "version 1");
}

TEST_F(Damage, HugeCounts) {
  for (const std::size_t at : {8u, 16u}) {
    Bytes file = writer_.file();
    std::memset(file.data() + at, 0xff, 8);
    expect(error_of(file), ErrorCode::bad_input, "do not fit");
  }
}

TEST_F(Damage, HugeTextLength) {
  Bytes file = writer_.file();
  std::memset(file.data() + 24, 0xff, 8);
  EXPECT_EQ(error_of(file).code, ErrorCode::truncated);
}

TEST_F(Damage, EveryTruncationOfTheFront) {
  const Bytes file = writer_.file();
  for (std::size_t size = 0; size < 3000; ++size) {
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", std::span(file).first(size)));
    ASSERT_FALSE(gguf) << size;
    ASSERT_NE(gguf.error().sentence[0], 0);
  }
  ASSERT_FALSE(convert::read_gguf(convert::input_of("x.gguf", std::span(file).first(file.size() - 64))));
}

TEST_F(Damage, FlippedBitsNeverCrash) {
  const Bytes file = writer_.file();
  std::uint32_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    Bytes damaged(file.begin(), file.begin() + 8192);
    random = random * 1664525 + 1013904223;
    damaged[(random >> 8) % 3500] ^= static_cast<std::byte>(1 << (random >> 29));
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", damaged));
    if (!gguf) {
      ASSERT_NE(gguf.error().sentence[0], 0);
    }
  }
}

TEST_F(Damage, UnsupportedTensorType) {
  writer_.tensor("blk.0.attn_output.bias", GgmlType::q8_k, {256}, Bytes(292));
  expect(error(), ErrorCode::unsupported, "Q8_K");
}

TEST_F(Damage, UnknownArchitecture) {
  GgufWriter other;
  other.text("general.architecture", "mamba");
  writer_ = other;
  expect(error(), ErrorCode::unsupported, "mamba");
}

TEST_F(Damage, UnknownTensor) {
  writer_.tensor("blk.0.ffn_gate_exps.weight", GgmlType::f32, {1}, Bytes(4));
  expect(error(), ErrorCode::unsupported, "ffn_gate_exps");
}

TEST_F(Damage, TensorBeyondTheLastLayer) {
  writer_.tensor("blk.3.attn_norm.weight", GgmlType::f32, {128}, Bytes(512));
  expect(error(), ErrorCode::unsupported, "blk.3.attn_norm.weight");
}

TEST_F(Damage, RowsThatAreNoWholeBlocks) {
  writer_.tensor("blk.0.attn_output.bias", GgmlType::q8_0, {33}, Bytes(68));
  expect(error(), ErrorCode::bad_input, "rows of 33");
}

TEST_F(Damage, OverflowingShape) {
  writer_.tensor("blk.0.attn_output.bias", GgmlType::f32, {1ull << 33, 1ull << 33}, Bytes(4));
  EXPECT_EQ(error().code, ErrorCode::bad_input);
}

TEST_F(Damage, UnsupportedScaling) {
  writer_.text("llama.rope.scaling.type", "spiral");
  expect(error(), ErrorCode::unsupported, "spiral");
}

TEST_F(Damage, RopeOverMoreThanAHead) {
  writer_.u32("llama.rope.dimension_count", 2000);
  expect(error(), ErrorCode::bad_input, "rope_dims is 2000, more than head_dim");
}

TEST_F(Damage, RopeOverHalfAPair) {
  writer_.u32("llama.rope.dimension_count", 7);
  expect(error(), ErrorCode::bad_input, "rope_dims is 7; it must be even");
}

TEST_F(Damage, UnknownTokenizer) {
  writer_.text("tokenizer.ggml.model", "rwkv");
  writer_.texts("tokenizer.ggml.tokens", {"a"});
  expect(error(), ErrorCode::unsupported, "rwkv");
}

TEST_F(Damage, TokenTypesThatDoNotMatchTheTokens) {
  writer_.text("tokenizer.ggml.model", "llama");
  writer_.texts("tokenizer.ggml.tokens", {"a", "b"});
  writer_.f32s("tokenizer.ggml.scores", {0, 0});
  writer_.i32s("tokenizer.ggml.token_type", {1});
  expect(error(), ErrorCode::bad_tokenizer, "1 token types");
}

TEST_F(Damage, OneOfSeveralParts) {
  writer_.u32("split.count", 3);
  expect(error(), ErrorCode::unsupported, "3 parts");
}

}  // namespace
}  // namespace qsf::test
