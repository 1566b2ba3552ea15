// .qsf files as inputs: their weights in other types are those of the model that they were made from.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/write/gguf/write.h"
#include "qsf/text/tokenizer_builder.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using convert::Options;

const std::string kStoriesFolder = kSource + "/models/stories";

Options in_type(FormatId type) {
  Options options;
  options.matrices = type;
  return options;
}

Status write(const std::string& from, Options options, const std::string& to) {
  const Result<convert::LoadedModel> model = convert::open_model(from);
  if (!model) return model.error();
  options.gguf = convert::names_gguf(to);
  const Result<convert::Summary> summary = convert_file(*model, options, to);
  return summary ? Status() : Status(summary.error());
}

/// The bytes that a model becomes, by itself or by way of a .qsf file.
struct Both {
  Bytes itself, by_qsf;
};
Both both(const std::string& from, const Options& first, const Options& options, const std::string& ending) {
  const Folder folder;
  const std::string between = folder.path("between.qsf"), out = folder.path("out" + ending);
  Both both;
  for (const bool by_qsf : {false, true}) {
    if (by_qsf) {
      const Status status = write(from, first, between);
      EXPECT_TRUE(status) << from << ": " << status.error().sentence;
    }
    const Status status = write(by_qsf ? between : from, options, out);
    EXPECT_TRUE(status) << from << ": " << status.error().sentence;
    (by_qsf ? both.by_qsf : both.itself) = read_bytes(out);
  }
  return both;
}

// Routers keep their own type, which f32 weights no longer have: these models have none.
TEST(QsfInput, BecomesTheFileOfItsOriginal) {
  for (const char* name : {"llama", "llama3-rope", "gpt2", "falcon", "gemma3", "gemma3n", "mamba2", "bert",
                           "deepseek-v2", "bloom", "minimax", "bert-reranker"}) {
    const bool routed = std::string_view(name) == "minimax" || std::string_view(name) == "deepseek-v2";
    const FormatId exact = routed ? FormatId::bf16 : FormatId::f32;
    const Both files = both(kData + name, in_type(exact), in_type(ggml_type(2)), ".qsf");
    EXPECT_TRUE(files.itself == files.by_qsf) << name;
  }
  Options packed = in_type(FormatId::f16);
  packed.compression = Compression::lz4;
  const Both files = both(kStoriesFolder, packed, in_type(FormatId::q8), ".qsf");
  EXPECT_TRUE(files.itself == files.by_qsf);
}

// Of every format: nothing is lost where the type stays.
TEST(QsfInput, KeepsItsTypes) {
  constexpr std::array kRoles{Role::attn_q, Role::attn_k,   Role::attn_v,  Role::attn_o,
                              Role::ffn_up, Role::ffn_gate, Role::ffn_down};
  constexpr std::size_t kTogether = 3 * kRoles.size();  // in three layers
  for (std::size_t begin = 0; begin < kFormats.size(); begin += kTogether) {
    Options options;
    for (std::size_t i = begin; i < std::min(begin + kTogether, kFormats.size()); ++i) {
      const std::size_t place = i - begin;
      options.types[{1 + place / kRoles.size(), kRoles[place % kRoles.size()]}] = kFormats[i].id;
    }
    const Folder folder;
    const std::string packed = folder.path("packed.qsf"), out = folder.path("out.qsf"),
                      again = folder.path("again.qsf");
    ASSERT_TRUE(write(kLlama, options, out));
    options.compression = Compression::lz4;
    ASSERT_TRUE(write(kLlama, options, packed));
    ASSERT_TRUE(write(packed, {}, again));
    EXPECT_TRUE(read_bytes(again) == read_bytes(out)) << begin;
  }
}

TEST(QsfInput, IsRoundedFromItsWeights) {
  const Folder folder;
  const std::string fine = folder.path("fine.qsf"), coarse = folder.path("coarse.qsf");
  ASSERT_TRUE(write(kLlama, in_type(ggml_type(8)), fine));
  ASSERT_TRUE(write(fine, in_type(ggml_type(2)), coarse));
  const Written before = read_written(fine), after = read_written(coarse);
  const Format& format = *find_format(ggml_type(2));
  std::size_t n = 0;
  for (const TensorEntry& tensor : after.tables.tensors) {
    const Weights &from = before.weights.at({tensor.stage, tensor.role}),
                  &to = after.weights.at({tensor.stage, tensor.role});
    if (tensor.format != format.id) {
      EXPECT_EQ(from.values, to.values);
      continue;
    }
    ++n;
    for (std::uint32_t row = 0; row < from.rows; ++row) {
      Bytes blocks(row_bytes(format, from.cols));
      std::vector<float> expected(from.cols);
      quantize_row(format, std::span(from.values).subspan(std::size_t{row} * from.cols, from.cols), blocks);
      dequantize_row(format, blocks, expected);
      ASSERT_TRUE(std::ranges::equal(expected, std::span(to.values).subspan(std::size_t{row} * to.cols, to.cols)));
    }
  }
  EXPECT_GT(n, 20u);
}

TEST(QsfInput, BecomesTheGgufOfItsOriginal) {
  for (const char* name : {"llama", "llama3-rope", "qwen2", "qwen3", "olmo2", "starcoder2", "stablelm", "phi3"}) {
    const Both files = both(kData + name, in_type(FormatId::f32), in_type(ggml_type(8)), ".gguf");
    EXPECT_TRUE(files.itself == files.by_qsf) << name;
  }
  const Both files = both(kStoriesFolder, in_type(FormatId::f32), in_type(ggml_type(12)), ".gguf");
  EXPECT_TRUE(files.itself == files.by_qsf);
}

TEST(QsfInput, HasTheTokenizerOfItsOriginal) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/tests/data")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const Result<convert::LoadedModel> model = convert::open_model(entry.path().generic_string());
    ASSERT_TRUE(model);
    if (!model->tokenizer) continue;
    const Result<Bytes> section = build_tokenizer(*model->tokenizer);
    ASSERT_TRUE(section);
    const Result<TokenizerSource> source = tokenizer_source(*section, model->config.vocab_size);
    ASSERT_TRUE(source) << source.error().sentence;
    const Result<Bytes> again = build_tokenizer(*source);
    ASSERT_TRUE(again) << entry.path() << again.error().sentence;
    EXPECT_TRUE(*again == *section) << entry.path();
    ++n;
  }
  EXPECT_GT(n, 50u);
}

TEST(QsfInput, RefusesWhatCannotBe) {
  const Folder folder;
  const std::string file = folder.path("model.qsf");
  ASSERT_TRUE(write(kData + "bert-reranker", {}, file));
  const auto refusal = [&](const std::string& to) {
    const Status status = write(file, in_type(ggml_type(2)), folder.path(to));
    EXPECT_FALSE(status);
    return std::string(error_of(status).sentence);
  };
  EXPECT_NE(refusal("out.gguf").find("is a reranker"), std::string::npos);
  ASSERT_TRUE(write(kData + "gptj", {}, file));
  EXPECT_EQ(refusal("out.gguf"), "the recipe gptj has no GGUF name for such models");
  EXPECT_NE(refusal("model.qsf").find("is one of the files that are read"), std::string::npos);
  Bytes bytes = read_bytes(file);
  bytes[bytes.size() - 100] ^= std::byte{1};
  write_bytes(file, bytes.data(), bytes.size());
  EXPECT_NE(refusal("out.qsf").find("has the checksum"), std::string::npos);
  bytes[140] ^= std::byte{1};
  write_bytes(file, bytes.data(), bytes.size());
  EXPECT_NE(refusal("out.qsf"), "");
}

}  // namespace
}  // namespace qsf::test
