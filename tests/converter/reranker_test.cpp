// Rerankers: heads of directories and of GGUF files, and heads that make no score.
#include <algorithm>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"

namespace qsf::test {
namespace {

using Json = nlohmann::json;

std::string data(const std::string& name) { return kSource + "/tests/data/" + name; }

convert::Options exact() {
  convert::Options options;
  options.matrices = FormatId::f32;
  return options;
}

/// The XLM-RoBERTa of tests/data as a GGUF without a tokenizer, and without the tensors whose name begins with `less`.
GgufWriter xlm_roberta_gguf(std::string_view less = "-", std::uint64_t labels = 1) {
  GgufWriter out;
  out.text("general.architecture", "bert");
  out.u32("bert.block_count", 2);
  out.u32("bert.context_length", 512);
  out.u32("bert.embedding_length", 32);
  out.u32("bert.feed_forward_length", 64);
  out.u32("bert.attention.head_count", 2);
  out.f32("bert.attention.layer_norm_epsilon", 1e-12f);
  out.flag("bert.attention.causal", false);
  for (const auto& [name, weights] : hugging_face_weights(data("xlm-roberta-reranker"))) {
    const std::string own = gguf_encoder_name(name);
    if (own.starts_with(less)) continue;
    const std::size_t left_out = own == "position_embd.weight" ? 2 : 0;
    Bytes bytes;
    for (std::size_t i = left_out * weights.cols; i < weights.values.size(); ++i) put(bytes, weights.values[i]);
    std::vector<std::uint64_t> shape{weights.cols};
    if (weights.rows > 1 || own == "token_types.weight") shape.push_back(weights.rows - left_out);
    if (own == "cls.output.weight" && labels > 1) {
      const Bytes row = bytes;
      for (std::uint64_t i = 1; i < labels; ++i) bytes.insert(bytes.end(), row.begin(), row.end());
      shape.push_back(labels);
    }
    out.tensor(own, GgmlType::f32, shape, std::move(bytes));
  }
  return out;
}

TEST(Rerankers, XlmRobertaIsTheSameFromGguf) {
  const Folder folder;
  write_bytes(folder.path("model.gguf"), xlm_roberta_gguf().file());
  const Written is = convert(folder.path("model.gguf"), exact()), from = convert(data("xlm-roberta-reranker"), exact());
  ASSERT_TRUE(from.weights.contains({3, Role::score}));
  EXPECT_EQ(is.weights.size(), from.weights.size());
  for (const auto& [key, weights] : from.weights) {
    ASSERT_TRUE(is.weights.contains(key)) << role_name(key.second);
    EXPECT_EQ(is.weights.at(key).values, weights.values) << role_name(key.second);
  }
  EXPECT_EQ(is.layers().kinds, from.layers().kinds);
  EXPECT_EQ(is.layers().model, from.layers().model);
  EXPECT_EQ(is.layers().model.score, 1u);
  EXPECT_EQ(is.layers().model.pooling, Pooling::first);
}

TEST(Rerankers, AGgufWhoseHeadIsNotWholeIsRefused) {
  const Folder folder;
  write_bytes(folder.path("model.gguf"), xlm_roberta_gguf("cls.weight").file());
  const Error missing = convert_error(folder.path("model.gguf"));
  EXPECT_NE(std::string(missing.sentence).find("the tensor cls.weight is missing"), std::string::npos)
      << missing.sentence;
  for (const auto& [labels, sentence] :
       {std::pair(2, "are not yes and no"), std::pair(3, "makes 3 values of a text")}) {
    write_bytes(folder.path("model.gguf"), xlm_roberta_gguf("-", static_cast<std::uint64_t>(labels)).file());
    const Error error = convert_error(folder.path("model.gguf"));
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_NE(std::string(error.sentence).find(sentence), std::string::npos) << error.sentence;
  }
}

/// The vector is the difference of two rows of the head, which is tied here.
TEST(Rerankers, YesAndNoAreOneVector) {
  const Written file = convert(data("qwen3-reranker"), exact());
  const Result<convert::LoadedModel> model = convert::open_model(data("qwen3-reranker"), true);
  ASSERT_TRUE(model) << model.error().sentence;
  const auto id_of = [&](std::string_view text) {
    const auto& tokens = model->tokenizer->tokens;
    return static_cast<std::size_t>(std::ranges::find(tokens, text, &TokenizerSource::Token::text) - tokens.begin());
  };
  const Weights rows = hugging_face_weights(data("qwen3-reranker")).at("model.embed_tokens.weight");
  const std::vector<float>& score = file.weights.at({3, Role::score}).values;
  ASSERT_EQ(score.size(), rows.cols);
  for (std::size_t i = 0; i < score.size(); ++i) {
    EXPECT_EQ(score[i], rows.values[id_of("yes") * rows.cols + i] - rows.values[id_of("no") * rows.cols + i]);
  }
  EXPECT_EQ(file.layers().model.score, 2u);
  EXPECT_EQ(file.layers().model.headless, 1u);
  EXPECT_FALSE(file.weights.contains({3, Role::head}));
}

/// Under another name the same files are those of a model that makes text, unless the README says otherwise.
TEST(Rerankers, QwenIsKnownByItsNameOrReadme) {
  const Folder folder;
  copy_folder(data("qwen3-reranker"), folder.path());
  EXPECT_EQ(convert(folder.path(), exact()).layers().model.score, 0u);
  write_text(folder.path("README.md"), "---\nlicense: apache-2.0\n---\n\n# Qwen3-Reranker-0.6B\n");
  EXPECT_EQ(convert(folder.path(), exact()).layers().model.score, 2u);
}

TEST(Rerankers, TheRowOfASecondTextIsKeptIfThereIsOne) {
  const Written bert = convert(data("bert-reranker"), exact());
  const Weights types = hugging_face_weights(data("bert-reranker")).at("bert.embeddings.token_type_embeddings.weight");
  const auto middle = types.values.begin() + static_cast<std::ptrdiff_t>(types.cols);
  EXPECT_EQ(bert.weights.at({1, Role::stream_bias}).values, std::vector<float>(types.values.begin(), middle));
  EXPECT_EQ(bert.weights.at({1, Role::second_bias}).values, std::vector<float>(middle, types.values.end()));
  EXPECT_FALSE(convert(data("xlm-roberta-reranker"), exact()).weights.contains({1, Role::second_bias}));
}

}  // namespace
}  // namespace qsf::test
