// One model as llama2.c file, two Hugging Face directories and four GGUFs: all must agree. And llama2.c files made
// here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "converter/readers/checkpoints/llama2c.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/half.h"
#include "qsf/file/roles.h"

namespace qsf::test {
namespace {

/// The llama fixture as export.py of llama2.c writes it: interleaved pairs, fixed order, float32.
Bytes llama2c_of(const std::string& directory, bool tied) {
  const nlohmann::json config = read_config(directory);
  const std::map<std::string, Weights> weights = hugging_face_weights(directory);
  const auto n = [&](const char* key) { return config[key].get<std::int32_t>(); };
  const std::int32_t layers = n("num_hidden_layers"), vocab = n("vocab_size");
  const std::int32_t head_dim = n("hidden_size") / n("num_attention_heads");
  Bytes out;
  for (const std::int32_t value : {n("hidden_size"), n("intermediate_size"), layers, n("num_attention_heads"),
                                   n("num_key_value_heads"), tied ? vocab : -vocab, n("max_position_embeddings")}) {
    put(out, value);
  }
  const auto add = [&](Role role, std::int32_t layer) {
    const Weights& w = weights.at(hugging_face_name(role, static_cast<std::uint32_t>(layer)));
    const bool rotated = role == Role::attn_q || role == Role::attn_k;
    for (std::uint32_t r = 0; r < w.rows; ++r) {
      const auto hd = static_cast<std::uint32_t>(head_dim);
      const std::uint32_t from = rotated ? r / hd * hd + r % 2 * (hd / 2) + r % hd / 2 : r;
      for (std::uint32_t c = 0; c < w.cols; ++c) put(out, w.values[std::size_t{from} * w.cols + c]);
    }
  };
  add(Role::token_embd, 0);
  for (const Role role : {Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_o, Role::ffn_norm,
                          Role::ffn_gate, Role::ffn_down, Role::ffn_up}) {
    for (std::int32_t layer = 0; layer < layers; ++layer) add(role, layer);
  }
  add(Role::final_norm, 0);
  for (std::int32_t i = 0; i < n("max_position_embeddings") * head_dim; ++i) put(out, 0.0f);
  if (!tied) add(Role::head, 0);
  return out;
}

TEST(Llama2c, EqualsTheHuggingFaceModelItWasMadeFrom) {
  const std::string directory = kSource + "/tests/data/llama";
  const Written expected = convert(directory, {FormatId::f32, Compression::none, 0});
  for (const bool tied : {false, true}) {
    const Folder folder;
    write_bytes(folder.path("model.bin"), llama2c_of(directory, tied));
    const Written file = convert(folder.path("model.bin"), {FormatId::f32, Compression::none, 0});
    EXPECT_EQ(file.weights.size(), expected.weights.size() - (tied ? 1 : 0));
    for (const auto& [key, weights] : file.weights) {
      EXPECT_EQ(weights.values, expected.weights.at(key).values) << role_name(key.second);
    }
    EXPECT_EQ((file.tables.header.flags & kFlagTied) != 0, tied);
  }
}

bool is_llama2c(const std::string& path) {
  const Result<convert::ModelLocation> place = convert::local_place(path, std::make_shared<convert::LocalFiles>());
  return place && convert::is_llama2c(*place);
}

TEST(Llama2c, IsRecognisedByItsExactSizeOnly) {
  const Folder folder;
  const Bytes good = llama2c_of(kSource + "/tests/data/llama", false);
  const std::string path = folder.path("model.bin");
  write_bytes(path, good);
  EXPECT_TRUE(is_llama2c(path));
  Bytes bad = good;
  bad.pop_back();
  write_bytes(path, bad);
  EXPECT_EQ(convert_error(path).code, ErrorCode::unsupported);
  for (std::size_t field = 0; field < 7; ++field) {
    for (const std::int32_t value : {0, -1, 1, INT32_MAX, INT32_MIN}) {
      bad = good;
      std::memcpy(bad.data() + 4 * field, &value, 4);
      write_bytes(path, bad);
      EXPECT_FALSE(is_llama2c(path)) << field << " = " << value;
    }
  }
}

class Stories260K : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "the extra data in ../shared/data is not here";
  }
  static Written of(const std::string& name) {
    return convert(kShared + "/" + name, {FormatId::f32, Compression::none, 0});
  }
};

TEST_F(Stories260K, AgreesInAllItsForms) {
  const Written exact = of("derived/stories260K-hf-f32");
  ASSERT_EQ(exact.weights.size(), 47u);
  struct Form {
    const char* name;
    float (*rounded)(float);
  };
  const auto same = [](float x) { return x; };
  const auto fp16 = [](float x) { return f16_to_f32(f32_to_f16(x)); };
  const auto bfloat = [](float x) { return bf16_to_f32(f32_to_bf16(x)); };
  for (const Form& form :
       {Form{"models/stories260K/stories260K.bin", same}, Form{"derived/stories260K-f32.gguf", same},
        Form{"derived/stories260K-f16.gguf", fp16}, Form{"derived/stories260K-hf-bf16-sharded", bfloat}}) {
    const Written file = of(form.name);
    ASSERT_EQ(file.weights.size(), exact.weights.size()) << form.name;
    for (const auto& [key, weights] : file.weights) {
      const Weights& source = exact.weights.at(key);
      const bool norm = source.rows == 1 && form.rounded == +fp16;  // llama.cpp keeps norms in f32
      ASSERT_EQ(weights.values.size(), source.values.size());
      for (std::size_t i = 0; i < source.values.size(); ++i) {
        const float expected = norm ? source.values[i] : form.rounded(source.values[i]);
        ASSERT_EQ(weights.values[i], expected) << form.name << " section " << key.first << " at " << i;
      }
    }
    EXPECT_EQ(file.tables.header.eos, exact.tables.header.eos);
    EXPECT_EQ(file.tables.header.bos, exact.tables.header.bos);
  }
}

TEST_F(Stories260K, QuantizedFormsAreNear) {
  const Written exact = of("derived/stories260K-hf-f32");
  struct Form {
    const char* name;
    float steps;  // of the largest weight of a block of 32
  };
  for (const Form& form : {Form{"derived/stories260K-q8_0.gguf", 127}, Form{"derived/stories260K-q4_0.gguf", 8}}) {
    const Written file = of(form.name);
    ASSERT_EQ(file.weights.size(), exact.weights.size());
    for (const auto& [key, weights] : file.weights) {
      const std::vector<float>& source = exact.weights.at(key).values;
      const std::uint32_t cols = weights.cols;
      for (std::size_t i = 0; i < source.size(); ++i) {
        const std::size_t row = i / cols * cols, begin = row + i % cols / 32 * 32;
        const std::size_t end = std::min<std::size_t>(begin + 32, row + cols);
        float largest = 0;
        for (std::size_t k = begin; k < end; ++k) largest = std::max(largest, std::fabs(source[k]));
        // One step: q4_0's codes reach from -8 to 7, so that one end can be off by a whole one.
        ASSERT_LE(std::fabs(weights.values[i] - source[i]), largest / form.steps * 1.01f) << form.name << " at " << i;
      }
    }
  }
}

TEST_F(Stories260K, TokenizersAgree) {
  const Result<convert::LoadedModel> a = convert::open_model(kShared + "/derived/stories260K-hf-f32");
  const Result<convert::LoadedModel> b = convert::open_model(kShared + "/derived/stories260K-f32.gguf");
  const Result<convert::LoadedModel> c = convert::open_model(kShared + "/models/stories260K/stories260K.bin");
  ASSERT_TRUE(a && b && c);
  for (const auto* other : {&*b, &*c}) {
    const TokenizerSource& x = *a->tokenizer;
    const TokenizerSource& y = *other->tokenizer;
    ASSERT_EQ(x.tokens.size(), y.tokens.size());
    EXPECT_EQ(x.add_bos, y.add_bos);
    EXPECT_EQ(x.add_space_prefix, y.add_space_prefix);
    for (std::size_t i = 0; i < x.tokens.size(); ++i) {
      EXPECT_EQ(x.tokens[i].text, y.tokens[i].text) << i;
      EXPECT_EQ(x.tokens[i].score, y.tokens[i].score) << i;
      EXPECT_EQ(x.tokens[i].type, y.tokens[i].type) << i;
    }
  }
}

/// The trained ternary model: its own file has scales in front of codes, GGUF has them in tensors beside TQ1_0 and
/// TQ2_0.
TEST_F(Stories260K, TernaryGgufsGiveTheWeightsOfTheirCheckpoint) {
  const Written checkpoint = convert(kShared + "/models/bitllama2/bitllama_3M.bin", {});
  for (const char* type : {"tq1_0", "tq2_0"}) {
    const Written gguf = convert(kShared + "/derived/bitllama3M-" + type + ".gguf", {});
    EXPECT_EQ(gguf.tables.header.activation, checkpoint.tables.header.activation);
    ASSERT_EQ(gguf.weights.size(), checkpoint.weights.size()) << type;
    for (const auto& [key, weights] : gguf.weights) {
      EXPECT_EQ(weights.values, checkpoint.weights.at(key).values) << type << " " << role_name(key.second);
    }
  }
}

}  // namespace
}  // namespace qsf::test
