// Checkpoints with a magic number: made here from fixtures, and the ternary ones that were trained.
#include "converter/readers/checkpoints/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/formats/format.h"
#include "support/seeded.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kAk42 = 0x616b3432, kAjc1 = 0x616a6331;
using Expected = std::map<std::string, std::vector<float>>;  // by Hugging Face's names

struct Form {
  std::uint32_t magic, version;
  std::uint32_t group;  // 0: float32
  bool tied = false;
};

/// A fixture as export.py of llama2.c or of qwen3.c writes it. `expected` gets what its weights are then.
Bytes checkpoint_of(const std::string& directory, const Form& form, Expected& expected) {
  const nlohmann::json config = read_config(directory);
  const std::map<std::string, Weights> weights = hugging_face_weights(directory);
  const auto n = [&](const char* key) { return config[key].get<std::int32_t>(); };
  const bool qwen = form.magic == kAjc1;
  const std::int32_t layers = n("num_hidden_layers");
  const std::int32_t head_dim = qwen ? n("head_dim") : n("hidden_size") / n("num_attention_heads");
  Bytes out;
  put(out, form.magic);
  put(out, form.version);
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "vocab_size", "max_position_embeddings"}) {
    put(out, n(key));
  }
  if (qwen) {
    put(out, head_dim);
    put<std::int32_t>(out, form.tied ? 1 : 0);
  } else {
    put<std::uint8_t>(out, form.tied ? 1 : 0);
  }
  if (form.group != 0) put(out, form.group);
  out.resize(256);

  const auto add = [&](Role role, std::int32_t layer) {
    const std::string name = hugging_face_name(role, static_cast<std::uint32_t>(layer));
    const Weights& w = weights.at(name);
    const bool paired = !qwen && (role == Role::attn_q || role == Role::attn_k);  // RoPE over neighbours
    const auto hd = static_cast<std::uint32_t>(head_dim);
    const auto source = [&](std::uint32_t r) { return paired ? r / hd * hd + r % 2 * (hd / 2) + r % hd / 2 : r; };
    std::vector<float> values;
    for (std::uint32_t r = 0; r < w.rows; ++r) {
      const auto row = w.values.begin() + static_cast<std::ptrdiff_t>(std::size_t{source(r)} * w.cols);
      values.insert(values.end(), row, row + w.cols);
    }
    if (form.group == 0 || w.rows == 1) {
      for (const float value : values) put(out, value);
    } else {
      std::vector<float> scales;
      for (std::size_t i = 0; i < values.size(); i += form.group) {
        float most = 0;
        for (std::size_t k = i; k < i + form.group; ++k) most = std::max(most, std::fabs(values[k]));
        scales.push_back(most / 127);
        for (std::size_t k = i; k < i + form.group; ++k) {
          const auto code = static_cast<std::int8_t>(most == 0 ? 0 : std::lround(values[k] / scales.back()));
          put(out, code);
          values[k] = scales.back() * static_cast<float>(code);
        }
      }
      for (const float scale : scales) put(out, scale);
    }
    std::vector<float>& to = expected[name];
    to.resize(values.size());
    for (std::uint32_t r = 0; r < w.rows; ++r) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(std::size_t{r} * w.cols), w.cols,
                  to.begin() + static_cast<std::ptrdiff_t>(std::size_t{source(r)} * w.cols));
    }
  };
  const auto add_all = [&](std::initializer_list<Role> roles) {
    for (const Role role : roles) {
      for (std::int32_t layer = 0; layer < layers; ++layer) add(role, layer);
    }
  };
  add_all({Role::attn_norm, Role::ffn_norm});
  add(Role::final_norm, 0);
  if (qwen) add_all({Role::attn_q_norm, Role::attn_k_norm});
  add(Role::token_embd, 0);
  add_all({Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_o, Role::ffn_gate, Role::ffn_down, Role::ffn_up});
  if (!form.tied) add(Role::head, 0);
  return out;
}

void expect_same(const std::string& fixture, const Form& form, const char* format) {
  const Folder folder;
  Expected expected;
  write_bytes(folder.path("m.bin"), checkpoint_of(kSource + "/tests/data/" + fixture, form, expected));
  const Written file = convert(folder.path("m.bin"), {form.group == 0 ? std::optional(FormatId::f32) : std::nullopt});
  ASSERT_EQ(file.weights.size(), expected.size());
  for (const auto& [key, weights] : file.weights) {
    EXPECT_EQ(weights.values, expected.at(hugging_face_name(key.second, key.first - 1)));
  }
  EXPECT_EQ(static_cast<FormatId>(file.tables.header.quant), find_format(std::string_view(format))->id);
  EXPECT_EQ((file.tables.header.flags & kFlagTied) != 0, form.tied);
}

TEST(Checkpoint, Llama2cAsFloats) {
  for (const bool tied : {false, true}) expect_same("llama", {kAk42, 1, 0, tied}, "f32");
}

TEST(Checkpoint, Llama2cAsInt8) {
  for (const bool tied : {false, true}) expect_same("llama", {kAk42, 2, 64, tied}, "q8_f32");
  expect_same("llama", {kAk42, 2, 128}, "q8_f32");
  expect_same("llama", {kAk42, 2, 32}, "f32");
  expect_same("llama", {kAk42, 2, 512}, "f32");  // a group of several rows
}

TEST(Checkpoint, Qwen3) {
  const nlohmann::json config = read_config(kSource + "/tests/data/qwen3");
  const bool tied = config.value("tie_word_embeddings", false);
  expect_same("qwen3", {kAjc1, 1, 64, tied}, "q8_f32");
  expect_same("qwen3", {kAjc1, 1, 32, tied}, "f32");
}

TEST(Checkpoint, IsRecognisedByItsExactSizeOnly) {
  const Folder folder;
  const std::string path = folder.path("m.bin");
  const auto recognised = [&](const Bytes& bytes) {
    write_bytes(path, bytes);
    const Result<convert::ModelLocation> place = convert::local_place(path, std::make_shared<convert::LocalFiles>());
    return place && convert::is_checkpoint(*place);
  };
  for (const Form& form : {Form{kAk42, 1, 0}, Form{kAk42, 2, 64}, Form{kAjc1, 1, 64}}) {
    Expected expected;
    const std::string fixture = form.magic == kAjc1 ? "/tests/data/qwen3" : "/tests/data/llama";
    Form asked = form;
    if (form.magic == kAjc1) asked.tied = read_config(kSource + fixture).value("tie_word_embeddings", false);
    const Bytes good = checkpoint_of(kSource + fixture, asked, expected);
    EXPECT_TRUE(recognised(good));
    Bytes bad = good;
    bad.pop_back();
    EXPECT_FALSE(recognised(bad));
    EXPECT_EQ(convert_error(path).code, ErrorCode::unsupported);
    for (std::size_t field = 0; field < 9; ++field) {
      for (const std::int32_t value : {0, -1, 7, INT32_MAX, INT32_MIN}) {
        if (field == 8 && value == 7) continue;  // the context, which may be any
        bad = good;
        std::memcpy(bad.data() + 4 * field, &value, 4);
        EXPECT_FALSE(recognised(bad)) << field << " = " << value;
      }
    }
    for (const std::int32_t group : {0, -1, 7, INT32_MAX}) {
      if (form.group == 0) break;
      bad = good;
      std::memcpy(bad.data() + (form.magic == kAjc1 ? 44 : 37), &group, 4);
      EXPECT_FALSE(recognised(bad)) << group;
    }
  }
}

/// Two layers with seeded codes. `expected`: by GGUF's names, in the file's order of rows.
Bytes ternary_checkpoint(Expected& expected, std::int32_t dim = 128) {
  constexpr std::int32_t kFfn = 256, kLayers = 2, kHeads = 4, kKvHeads = 2, kVocab = 32;
  Bytes out;
  put(out, kAk42);
  put<std::uint32_t>(out, 1);
  for (const std::int32_t value : {dim, kFfn, kLayers, kHeads, kKvHeads, kVocab, 64}) put(out, value);
  put<std::uint8_t>(out, 1);
  out.resize(256);
  Random random(3);
  const auto floats = [&](const std::string& name, std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) {
      expected[name].push_back(random.symmetric());
      put(out, expected[name].back());
    }
  };
  floats("output_norm.weight", dim);
  floats("token_embd.weight", kVocab * dim);
  struct Matrix {
    const char* name;
    std::int32_t rows, cols;
  };
  for (const Matrix& m : {Matrix{"attn_q", dim, dim}, Matrix{"attn_k", dim / 2, dim}, Matrix{"attn_v", dim / 2, dim},
                          Matrix{"attn_output", dim, dim}, Matrix{"ffn_gate", kFfn, dim}, Matrix{"ffn_down", dim, kFfn},
                          Matrix{"ffn_up", kFfn, dim}}) {
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<float>& values = expected["blk." + std::to_string(layer) + "." + m.name + ".weight"];
      const float scale = 1.5f + random.symmetric();
      put(out, scale);
      for (std::int32_t i = 0; i < m.rows * m.cols; i += 4) {
        unsigned byte = 0;
        for (int k = 0; k < 4; ++k) {
          const unsigned code = std::array{0u, 1u, 3u}[random.below(3)];
          byte = byte << 2 | code;
          values.push_back(code == 0 ? 0.0f : (code == 1 ? scale : -scale) / static_cast<float>(m.cols));
        }
        put(out, static_cast<std::uint8_t>(byte));
      }
    }
  }
  return out;
}

convert::ModelLocation place_of(const Bytes& file) {
  convert::ModelLocation place;
  place.name = "m";
  place.file = convert::input_of("m.bin", file);
  place.head.assign(file.begin(), file.begin() + convert::kHeadBytes);
  return place;
}

std::vector<float> values_of(const convert::LoadedTensor& tensor) {
  const auto shape = convert::matrix_shape(tensor.shape);
  const Format& format = *find_format(tensor.format);
  const auto [rows, cols] = *shape;
  const std::uint64_t size = row_bytes(format, cols);
  std::vector<float> out(std::size_t{rows} * cols);
  Bytes row(size);
  for (std::uint32_t r = 0; r < rows; ++r) {
    const Status read = tensor.rows_of(r, 1, row);
    EXPECT_TRUE(read) << read.error().sentence;
    dequantize_row(format, row, std::span(out).subspan(std::size_t{r} * cols, cols));
  }
  return out;
}

TEST(Checkpoint, TernaryWeightsAreKept) {
  Expected expected;
  const Bytes file = ternary_checkpoint(expected);
  const auto tensors = convert::read_checkpoint(place_of(file));
  ASSERT_TRUE(tensors) << tensors.error().sentence;
  std::size_t n_ones = 0;
  for (const convert::LoadedTensor& tensor : *tensors) {
    const std::vector<float> values = values_of(tensor);
    if (expected.contains(tensor.name)) {
      EXPECT_EQ(values, expected.at(tensor.name)) << tensor.name;
      EXPECT_EQ(tensor.format, tensor.name.starts_with("blk.") ? own_type(21) : FormatId::f32);
    } else {
      EXPECT_NE(tensor.name.find("norm"), std::string::npos) << tensor.name;
      EXPECT_TRUE(std::ranges::all_of(values, [](float v) { return v == 1; }));
      ++n_ones;
    }
  }
  EXPECT_EQ(tensors->size(), expected.size() + n_ones);
  EXPECT_EQ(n_ones, 8u);
}

TEST(Checkpoint, ATernaryModelConverts) {
  const Folder folder;
  Expected expected;
  write_bytes(folder.path("m.bin"), ternary_checkpoint(expected));
  const Written file = convert(folder.path("m.bin"), {});
  EXPECT_EQ(file.weights.size(), expected.size() + 8);
  for (const auto& [role, name] :
       {std::pair{Role::ffn_gate, "blk.1.ffn_gate.weight"}, std::pair{Role::attn_v, "blk.1.attn_v.weight"}}) {
    EXPECT_EQ(file.weights.at({2, role}).values, expected.at(name));
  }
  EXPECT_EQ(file.tables.header.activation, Activation::silu);
}

/// GGUF's rows of queries and keys are by halves, its epsilon is one.
TEST(Checkpoint, ATernaryModelBecomesGguf) {
  const Folder folder;
  Expected expected;
  write_bytes(folder.path("m.bin"), ternary_checkpoint(expected, 256));
  const Result<convert::LoadedModel> model = convert::open_model(folder.path("m.bin"));
  ASSERT_TRUE(model) << model.error().sentence;
  for (const FormatId type : {FormatId::f32, ggml_type(34), ggml_type(35)}) {
    convert::Options options;
    options.matrices = type;
    options.types[{0, Role::token_embd}] = FormatId::f32;
    const Written one = convert(folder.path("m.bin"), options);
    options.gguf = true;
    auto writing = convert::Conversion::begin(*model, options, folder.path("m.gguf"));
    ASSERT_TRUE(writing) << writing.error().sentence;
    EXPECT_EQ(writing->warnings(),
              std::vector<std::string>{"GGUF has one epsilon for all norms: the last norm's own is left out"});
    auto step = writing->step();
    while (step && *step != convert::Conversion::Step::done) step = writing->step();
    ASSERT_TRUE(step) << step.error().sentence;
    const Written other = convert(folder.path("m.gguf"), {});
    EXPECT_TRUE(one.layers().kinds == other.layers().kinds);
    EXPECT_EQ(one.layers().model.final_epsilon, 1e-5f);
    EXPECT_EQ(other.layers().model.final_epsilon, 0);
    ASSERT_EQ(one.weights.size(), other.weights.size());
    for (const auto& [key, weights] : one.weights) {
      EXPECT_EQ(weights.values, other.weights.at(key).values) << role_name(key.second);
      if (type == FormatId::f32 && key == std::pair{2u, Role::attn_v}) {
        EXPECT_EQ(weights.values, expected.at("blk.1.attn_v.weight"));
      }
    }
  }
}

TEST(Checkpoint, ACodeThatIsNoneIsAnError) {
  Expected expected;
  Bytes file = ternary_checkpoint(expected);
  file[256 + 4 * (128 + 32 * 128) + 4] = std::byte{0x80};
  const auto tensors = convert::read_checkpoint(place_of(file));
  ASSERT_TRUE(tensors);
  const auto q = std::ranges::find(*tensors, "blk.0.attn_q.weight", &convert::LoadedTensor::name);
  Bytes row(row_bytes(*find_format(q->format), 128));
  const Status read = q->rows_of(0, 1, row);
  ASSERT_FALSE(read);
  EXPECT_NE(std::strstr(error_of(read).sentence, "none of -1, 0 and 1"), nullptr) << read.error().sentence;
}

/// The trained model as GGUF has rows of queries and keys by halves, codes as TQ2_0 and scales apart.
TEST(Checkpoint, TheTrainedTernaryModelEqualsItsGguf) {
  const std::string model = kShared + "/models/bitllama2/bitllama_3M.bin",
                    other = kShared + "/derived/bitllama3M-tq2_0.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "the extra data in ../shared/data is not here";
  const Result<convert::ModelLocation> place = convert::local_place(model, std::make_shared<convert::LocalFiles>());
  ASSERT_TRUE(place);
  const auto tensors = convert::read_checkpoint(*place);
  ASSERT_TRUE(tensors) << tensors.error().sentence;
  const Bytes bytes = read_bytes(other);
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x", bytes));
  ASSERT_TRUE(gguf);
  constexpr std::size_t kHead = 32;
  std::size_t n_scales = 0;
  for (const convert::LoadedTensor& tensor : *tensors) {
    const auto find = [&](const std::string& name) {
      return std::ranges::find(gguf->tensors, name, &convert::LoadedTensor::name);
    };
    std::vector<float> expected = values_of(*find(tensor.name));
    const std::vector<float> values = values_of(tensor);
    ASSERT_EQ(values.size(), expected.size()) << tensor.name;
    const auto scale = find(tensor.name.substr(0, tensor.name.rfind('.')) + ".scale");
    if (scale != gguf->tensors.end()) {
      const float factor = values_of(*scale)[0];
      for (float& value : expected) value *= factor;
      ++n_scales;
    }
    const bool turned =
        tensor.name.find("attn_q.") != std::string::npos || tensor.name.find("attn_k.") != std::string::npos;
    const std::size_t cols = tensor.shape.back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t r = i / cols;
      const std::size_t from = turned ? r / kHead * kHead + r % 2 * (kHead / 2) + r % kHead / 2 : r;
      ASSERT_EQ(values[i], expected[from * cols + i % cols]) << tensor.name << " " << i;
    }
  }
  EXPECT_EQ(n_scales, 56u);
}

/// What qwen3.c's exporter makes of a tokenizer.json.
Bytes qwen3c_tokenizer(const TokenizerSource& source, std::uint32_t bos, std::uint32_t eos) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t i = 0; i < source.merges.size(); ++i) ranks[source.merges[i].first + source.merges[i].second] = i;
  Bytes out;
  for (const std::uint32_t value : {100u, bos, eos}) put(out, value);
  for (const TokenizerSource::Token& token : source.tokens) {
    const auto rank = ranks.find(token.text);
    put(out, rank == ranks.end() ? -1e6f : static_cast<float>(-std::log(static_cast<double>(rank->second + 1))));
    std::string bytes;
    for (std::size_t i = 0; i < token.text.size(); ++i) {  // GPT-2's alphabet
      const auto c = static_cast<unsigned char>(token.text[i]);
      unsigned code = c;
      if (c >= 0x80) code = (c & 0x1fu) << 6 | (static_cast<unsigned char>(token.text[++i]) & 0x3fu);
      if (code >= 0x100) {
        code -= 0x100;
        code = code < 33 ? code : code < 67 ? code + 94 : 0xad;
      }
      bytes += static_cast<char>(code);
    }
    put(out, static_cast<std::uint32_t>(bytes.size()));
    const auto* at = reinterpret_cast<const std::byte*>(bytes.data());
    out.insert(out.end(), at, at + bytes.size());
  }
  return out;
}

TEST(Qwen3cTokenizer, HasTheMergesThatItWasMadeFrom) {
  const std::string directory = kSource + "/tests/data/qwen3";
  const Result<convert::LoadedModel> hugging_face = convert::open_model(directory);
  ASSERT_TRUE(hugging_face && hugging_face->tokenizer);
  const TokenizerSource& source = *hugging_face->tokenizer;
  const Folder folder;
  Expected expected;
  const bool tied = read_config(directory).value("tie_word_embeddings", false);
  write_bytes(folder.path("m.bin"), checkpoint_of(directory, {kAjc1, 1, 64, tied}, expected));
  for (const char* name : {"m.bin.tokenizer", "m.tokenizer"}) {
    const Bytes bytes = qwen3c_tokenizer(source, 3, 5);
    write_bytes(folder.path(name), bytes);
    const Result<convert::LoadedModel> model = convert::open_model(folder.path("m.bin"));
    ASSERT_TRUE(model) << model.error().sentence;
    ASSERT_TRUE(model->tokenizer);
    EXPECT_EQ(model->tokenizer->merges, source.merges);
    EXPECT_EQ(model->config.bos, 3u);
    EXPECT_EQ(model->config.eos, 5u);
    for (std::size_t i = 0; i < source.tokens.size(); ++i) {
      EXPECT_EQ(model->tokenizer->tokens[i].text, source.tokens[i].text) << i;
    }
    EXPECT_TRUE(build_tokenizer(*model->tokenizer));
    for (std::size_t size = 0; size < bytes.size(); size += 41) {
      const auto cut = convert::read_qwen3c_tokenizer(std::span(bytes).first(size), 512);
      EXPECT_TRUE(cut || cut.error().code == ErrorCode::bad_tokenizer) << size;
    }
    std::filesystem::remove(folder.path(name));
  }
  const Result<convert::LoadedModel> without = convert::open_model(folder.path("m.bin"));
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->tokenizer);
  EXPECT_FALSE(without->warnings.empty());
}

TEST(Qwen3cTokenizer, WhatIsNotMergedIsAnError) {
  Bytes bytes;
  for (const std::uint32_t value : {1000u, 0u, 0u}) put(bytes, value);
  const auto token = [&](float score, const std::string& text) {
    put(bytes, score);
    put(bytes, static_cast<std::uint32_t>(text.size()));
    const auto* at = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), at, at + text.size());
  };
  token(0, "abc");  // of two that are not there
  const auto one = convert::read_qwen3c_tokenizer(bytes, 10);
  ASSERT_FALSE(one);
  EXPECT_NE(std::strstr(error_of(one).sentence, "not two others"), nullptr) << one.error().sentence;
  for (int i = 0; i < 100; ++i) token(-1, std::string(1000, 'a'));
  const auto many = convert::read_qwen3c_tokenizer(bytes, 1000);
  ASSERT_FALSE(many);
  EXPECT_NE(std::strstr(error_of(many).sentence, "steps of merging"), nullptr) << many.error().sentence;
}

}  // namespace
}  // namespace qsf::test
