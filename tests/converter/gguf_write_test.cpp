// Models as GGUF files: what is written is read back to the same model, by the reader that is held to llama.cpp's own
// files.
#include <cmath>
#include <filesystem>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/types/gguf_form.h"
#include "converter/types/written_type.h"
#include "converter/write/gguf/write.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using convert::Options;

Status write(const std::string& from, Options options, const std::string& to) {
  Result<convert::LoadedModel> model = convert::open_model(from);
  if (!model) return model.error();
  options.gguf = convert::names_gguf(to);
  const Result<convert::Summary> summary = convert_file(*model, options, to);
  return summary ? Status() : Status(summary.error());
}

/// The directory as QSF, by itself or by way of GGUF.
Written converted(const std::string& from, const Options& options, bool by_gguf) {
  const Folder folder;
  const std::string gguf = folder.path("model.gguf"), out = folder.path("model.qsf");
  if (by_gguf) {
    const Status written = write(from, options, gguf);
    EXPECT_TRUE(written) << from << ": " << written.error().sentence;
  }
  const Status read = by_gguf ? write(gguf, {}, out) : write(from, options, out);
  EXPECT_TRUE(read) << from << ": " << read.error().sentence;
  return read_written(out);
}

void expect_same(const Written& one, const Written& other, const std::string& what) {
  EXPECT_EQ(one.layers().kinds.size(), other.layers().kinds.size()) << what;
  EXPECT_TRUE(one.layers().kinds == other.layers().kinds) << what;
  EXPECT_EQ(one.layers().of_layer, other.layers().of_layer) << what;
  EXPECT_TRUE(one.layers().model == other.layers().model) << what;
  EXPECT_EQ(one.section_floats(tag("ROPE")), other.section_floats(tag("ROPE"))) << what;
  ASSERT_EQ(one.weights.size(), other.weights.size()) << what;
  for (const auto& [key, weights] : one.weights) {
    ASSERT_TRUE(other.weights.contains(key)) << what << ": " << role_name(key.second);
    EXPECT_EQ(weights.values, other.weights.at(key).values) << what << ": " << role_name(key.second);
  }
}

const std::string kStories = kSource + "/models/stories";  // whose rows are whole blocks

TEST(GgufWrite, IsReadBackToTheSameModel) {
  for (const char* name :
       {"llama", "llama3-rope", "qwen2", "qwen3", "mixtral", "qwen3-moe", "granite", "granitemoe", "smollm3", "olmo2",
        "starcoder2", "stablelm", "ernie4_5", "glm4", "cohere2", "phi3", "phi4-mini", "minicpm"}) {
    for (const FormatId type : {FormatId::f32, ggml_type(2)}) {
      Options options;
      options.matrices = type;
      const Written one = converted(kData + name, options, false), other = converted(kData + name, options, true);
      expect_same(one, other, name);
    }
  }
}

TEST(GgufWrite, KeepsTheTokenizerAndWhatIsSought) {
  Options options;
  options.matrices = ggml_type(2);
  options.search = true;
  for (const std::string& from : {kData + "llama", kStories}) {
    options.search = from.ends_with("llama");
    const Written one = converted(from, options, false), other = converted(from, options, true);
    expect_same(one, other, from);
    const auto tokenizer = [](const Written& written) {
      const SectionEntry* const section = find_section(written.tables.sections, kTagTokenizer);
      return section == nullptr
                 ? Bytes()
                 : Bytes(written.file.begin() + static_cast<std::ptrdiff_t>(section->offset),
                         written.file.begin() + static_cast<std::ptrdiff_t>(section->offset + section->size));
    };
    EXPECT_FALSE(tokenizer(one).empty()) << from;
    EXPECT_EQ(tokenizer(one), tokenizer(other)) << from;
  }
}

/// As Gemma's own sizes are: scores by the width of a head, windows in five of six layers.
TEST(GgufWrite, WritesGemmaWhereGgufSaysAllOfIt) {
  const Folder folder;
  for (const char* name : {"gemma2", "gemma3"}) {
    const std::string directory = folder.path(name);
    copy_folder(kData + name, directory);
    nlohmann::json config = read_config(directory);
    config["query_pre_attn_scalar"] = config["head_dim"];
    if (std::string(name) == "gemma3") {
      for (auto& type : config["layer_types"]) type = "sliding_attention";  // of six layers the last sees all
    }
    write_text(directory + "/config.json", config.dump());
    Options options;
    options.matrices = FormatId::f32;
    const Status written = write(directory, options, folder.path("model.gguf"));
    ASSERT_TRUE(written) << name << ": " << written.error().sentence;
    ASSERT_TRUE(write(folder.path("model.gguf"), {}, folder.path("model.qsf")));
    Written one = converted(directory, options, false), other = read_written(folder.path("model.qsf"));
    // 0 stands for the scale that the directory says.
    for (const std::uint8_t layer : other.layers().of_layer) {
      const LayerKind kind = other.layers().kinds[layer];
      EXPECT_EQ(kind.attention_scale, 0) << name;
      EXPECT_NEAR(one.layers().kinds[layer].attention_scale, 1 / std::sqrt(kind.head_dim), 1e-7) << name;
    }
    EXPECT_EQ(one.layers().of_layer, other.layers().of_layer) << name;
    ASSERT_EQ(one.weights.size(), other.weights.size()) << name;
    for (const auto& [key, weights] : one.weights) EXPECT_EQ(weights.values, other.weights.at(key).values) << name;
  }
}

TEST(GgufWrite, IsWhatAnIndependentWriterSays) {
  for (const char* name : {"llama", "qwen3"}) {
    const Folder folder;
    std::map<std::string, Weights> weights;
    write_bytes(folder.path("other.gguf"), gguf_of(kData + name, GgmlType::f32, weights).file());
    ASSERT_TRUE(write(folder.path("other.gguf"), {}, folder.path("other.qsf")));
    Options options;
    options.matrices = FormatId::f32;
    expect_same(read_written(folder.path("other.qsf")), converted(kData + name, options, true), name);
  }
}

TEST(GgufWrite, AGgufBecomesItselfAgain) {
  const Folder folder;
  std::map<std::string, Weights> weights;
  write_bytes(folder.path("one.gguf"), gguf_of(kData + "llama", GgmlType::q4_0, weights).file());
  ASSERT_TRUE(write(folder.path("one.gguf"), {}, folder.path("two.gguf")));
  ASSERT_TRUE(write(folder.path("two.gguf"), {}, folder.path("three.gguf")));
  EXPECT_EQ(read_bytes(folder.path("two.gguf")), read_bytes(folder.path("three.gguf")));
  ASSERT_TRUE(write(folder.path("one.gguf"), {}, folder.path("one.qsf")));
  ASSERT_TRUE(write(folder.path("two.gguf"), {}, folder.path("two.qsf")));
  expect_same(read_written(folder.path("one.qsf")), read_written(folder.path("two.qsf")), "q4_0");
}

/// Of all layers' keys, which are small.
TEST(GgufWrite, WritesTypesThatAreSearchedFor) {
  constexpr std::uint32_t kLayers = 5;
  Options exact;
  exact.matrices = FormatId::f32;
  const Written source = converted(kStories, exact, false);
  for (const Format& type : kFormats) {
    if (type.rounding != Rounding::elsewhere || !convert::ggml_number(type.id)) continue;
    const Folder folder;
    const std::string name(type.name);
    Options options;
    options.matrices = ggml_type(8);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      options.types[{layer + 1, Role::attn_k}] = type.id;
    }
    ASSERT_TRUE(write(kStories, options, folder.path("model.gguf"))) << name;
    const Result<convert::LoadedModel> model = convert::open_model(folder.path("model.gguf"));
    ASSERT_TRUE(model) << model.error().sentence;
    const auto is = [&](const convert::LoadedTensor& t) { return t.format == type.id; };
    EXPECT_EQ(std::ranges::count_if(model->tensors, is), kLayers) << name;
    ASSERT_TRUE(write(folder.path("model.gguf"), exact, folder.path("model.qsf")));
    const Written back = read_written(folder.path("model.qsf"));
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::vector<float>& was = source.weights.at({layer + 1, Role::attn_k}).values;
      const std::vector<float>& now = back.weights.at({layer + 1, Role::attn_k}).values;
      ASSERT_EQ(now.size(), was.size());
      double lost = 0, whole = 0;
      for (std::size_t i = 0; i < now.size(); ++i) {
        lost += std::pow(double{was[i]} - double{now[i]}, 2);
        whole += std::pow(double{was[i]}, 2);
      }
      EXPECT_GT(lost, 0) << name;
      EXPECT_LT(lost, 0.3 * whole) << name;
    }
    ASSERT_TRUE(write(folder.path("model.gguf"), {}, folder.path("again.gguf"))) << name;
    EXPECT_TRUE(read_bytes(folder.path("again.gguf")) == read_bytes(folder.path("model.gguf"))) << name;
    ASSERT_TRUE(write(folder.path("model.gguf"), {}, folder.path("carried.qsf"))) << name;
    const Written carried = read_written(folder.path("carried.qsf"));
    const auto has = [&](const TensorEntry& t) { return t.role == Role::attn_k && t.format == type.id; };
    EXPECT_EQ(std::ranges::count_if(carried.tables.tensors, has), kLayers) << name;
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      EXPECT_EQ(carried.weights.at({layer + 1, Role::attn_k}).values, back.weights.at({layer + 1, Role::attn_k}).values)
          << name;
    }
  }
}

/// Writes mixtral with scales of NVFP4 as llama.cpp has them, and returns the file's path.
std::string with_scales(const Folder& folder, const std::string& name, std::span<const Role> roles,
                        const std::vector<std::pair<std::string, std::vector<float>>>& scales) {
  Options options;
  options.matrices = ggml_type(8);
  for (const Role role : roles) options.types[{role == Role::token_embd ? 0 : 1, role}] = ggml_type(40);
  EXPECT_TRUE(write(kData + "mixtral", options, folder.path("plain.gguf")));
  GgufWriter writer = GgufWriter::of(read_bytes(folder.path("plain.gguf")));
  for (const auto& [of, values] : scales) {
    Bytes data;
    for (const float value : values) put(data, value);
    writer.tensor(of + ".scale", GgmlType::f32, {values.size()}, data);
  }
  write_bytes(folder.path(name), writer.file());
  return folder.path(name);
}

TEST(GgufWrite, KeepsTheScalesOfExperts) {
  const Folder folder;
  const std::vector<float> factors{0.5f, -2.0f, 0.37f, 1e-3f, 1.0f, 7.0f, -0.125f, 3e4f};
  const std::string path = with_scales(folder, "one.gguf", std::array{Role::expert_up, Role::attn_k},
                                       {{"blk.0.ffn_up_exps", factors}, {"blk.0.attn_k", {3.25f}}});
  ASSERT_TRUE(write(path, {}, folder.path("two.gguf")));
  const Written one = converted(path, {}, false), two = converted(path, {}, true);
  expect_same(one, two, "scales");
  // The scales are in the weights.
  const Written plain = converted(folder.path("plain.gguf"), {}, false);
  const std::pair<std::uint32_t, Role> up{1, Role::expert_up};
  const std::vector<float>&was = plain.weights.at(up).values, &now = two.weights.at(up).values;
  for (std::size_t i = 0; i < was.size(); ++i) {
    ASSERT_NEAR(now[i], was[i] * factors[i * factors.size() / was.size()], std::abs(now[i]) * 0x1p-22) << i;
  }
}

TEST(GgufWrite, RefusesScalesThatLlamaCppDoesNotRead) {
  const Folder folder;
  const std::string path = with_scales(folder, "one.gguf", std::array{Role::token_embd}, {{"token_embd", {3.25f}}});
  const Status status = write(path, {}, folder.path("two.gguf"));
  ASSERT_FALSE(status);
  EXPECT_NE(std::string_view(status.error().sentence).find("token_embd.weight is nvfp4_f32, and llama.cpp reads no"),
            std::string_view::npos)
      << status.error().sentence;
  // Blocks that were rounded each by itself have scales of their own.
  Options options;
  options.matrices = ggml_type(8);
  options.types[{1, Role::attn_k}] = *convert::written_id("nvfp4_f32");
  ASSERT_TRUE(write(kStories, options, folder.path("rounded.qsf")));
  const Status rounded = write(folder.path("rounded.qsf"), {}, folder.path("rounded.gguf"));
  ASSERT_FALSE(rounded);
  EXPECT_NE(std::string_view(rounded.error().sentence).find("scales that differ inside of it"), std::string_view::npos)
      << rounded.error().sentence;
}

TEST(GgufWrite, RefusesWhatGgufCannotSay) {
  const auto refusal = [](const std::string& from, std::optional<FormatId> type) {
    const Folder folder;
    Options options;
    options.matrices = type;
    const Status status = write(from, options, folder.path("model.gguf"));
    EXPECT_FALSE(status) << from;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << from;
    return status ? std::string() : std::string(status.error().sentence);
  };
  EXPECT_NE(refusal(kData + "mistral", {}).find("differs in window"), std::string::npos);
  EXPECT_NE(refusal(kData + "yarn", {}).find("differs in rope_scale"), std::string::npos);
  EXPECT_NE(refusal(kData + "gemma2", {}).find("differs in attention_scale"), std::string::npos);
  EXPECT_NE(refusal(kData + "bitnet", {}).find("differs in activation"), std::string::npos);
  EXPECT_NE(refusal(kData + "bert", {}).find("has no GGUF name for"), std::string::npos);
  for (const char* reranker : {"qwen3-reranker", "bert-reranker"}) {
    EXPECT_NE(refusal(kData + reranker, {}).find("the model is a reranker, whose score"), std::string::npos);
  }
  EXPECT_NE(refusal(kData + "llama", FormatId::q4).find("GGUF has no type 4bit; it has f32, f16, bf16, q4_0"),
            std::string::npos);
}

TEST(GgufWrite, TypesAreWholeBlocks) {
  const auto form = [](FormatId format, std::uint32_t cols) { return *convert::ggml_form(format, cols); };
  EXPECT_EQ(form(ggml_type(12), 512), ggml_type(12));
  EXPECT_EQ(form(ggml_type(12), 160), ggml_type(6));
  EXPECT_EQ(form(ggml_type(10), 160), ggml_type(20));
  EXPECT_EQ(form(ggml_type(12), 100), FormatId::f16);
  EXPECT_EQ(form(FormatId::bf16, 100), FormatId::bf16);
  EXPECT_EQ(form(ggml_type(16), 512), ggml_type(16));  // iq2_xxs
  EXPECT_EQ(form(ggml_type(16), 160), ggml_type(20));
  EXPECT_EQ(form(ggml_type(16), 100), FormatId::f16);
  for (const Format& f : kFormats) {
    const auto number = convert::ggml_number(f.id);
    if (number) {
      EXPECT_EQ(convert::ggml_format(*number), f.id) << f.name;
    }
    EXPECT_EQ(number.has_value(), static_cast<bool>(convert::ggml_form(f.id, 256))) << f.name;
  }
}

}  // namespace
}  // namespace qsf::test
