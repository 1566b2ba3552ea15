// Packed tensors of Hugging Face checkpoints: gpt-oss's microscaling floats, NVFP4 and BitNet's ternary weights.
#include "converter/readers/hugging_face/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "converter/readers/gguf/gguf.h"
#include "converter/readers/hugging_face/safetensors.h"
#include "converter/readers/inputs.h"
#include "converter/safetensors_file.h"
#include "qsf/formats/format.h"
#include "support/seeded.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;

Bytes random_bytes(std::size_t n, std::uint64_t seed, unsigned below = 256) {
  Random random(seed);
  Bytes out(n);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.below(below));
  return out;
}

struct Joined {
  Bytes file;  // rows are read from it
  convert::LoadedModel model;
  Status status;
};
/// The tensors as a checkpoint whose config.json says so.
Joined join(const StoredTensors& tensors, const json& config = json::object()) {
  const Folder folder;
  write_tensors(folder.path("model.safetensors"), tensors);
  Joined out;
  out.file = read_bytes(folder.path("model.safetensors"));
  const Status read = convert::read_safetensors(convert::input_of("x", out.file), out.model.tensors);
  EXPECT_TRUE(read) << read.error().sentence;
  out.status = convert::join_packed(config, out.model);
  return out;
}

TEST(Packed, MicroscalingBlocksAndScalesAreOneTensor) {
  constexpr std::size_t kExperts = 3, kRows = 4, kGroups = 2, kCols = 32 * kGroups;
  const Bytes blocks = random_bytes(kExperts * kRows * kGroups * 16, 1);
  Bytes scales = random_bytes(kExperts * kRows * kGroups, 2, 60);
  for (std::byte& scale : scales) scale = static_cast<std::byte>(std::to_integer<int>(scale) + 100);
  const Joined joined = join({{"experts.up_blocks", {"U8", {kExperts, kRows, kGroups, 16}, blocks}},
                              {"experts.up_scales", {"U8", {kExperts, kRows, kGroups}, scales}},
                              {"experts.up_bias", {"F32", {kRows}, Bytes(4 * kRows)}}});
  ASSERT_TRUE(joined.status) << joined.status.error().sentence;
  ASSERT_EQ(joined.model.tensors.size(), 2u);
  const convert::LoadedTensor& tensor = joined.model.tensors[1];
  EXPECT_EQ(joined.model.tensors[0].name, "experts.up_bias");
  EXPECT_EQ(tensor.name, "experts.up");
  EXPECT_EQ(tensor.shape, (std::vector<std::uint64_t>{kExperts, kRows, kCols}));
  EXPECT_TRUE(tensor.turned);
  ASSERT_EQ(tensor.format, ggml_type(39));

  constexpr std::array kValues{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const Format& format = *find_format(tensor.format);
  Bytes rows(kExperts * kRows * row_bytes(format, kCols));
  ASSERT_TRUE(tensor.rows_of(0, kExperts * kRows, rows));
  for (std::size_t r = 0; r < kExperts * kRows; ++r) {
    std::vector<float> row(kCols);
    const std::size_t size = row_bytes(format, kCols);
    dequantize_row(format, std::span(rows).subspan(r * size, size), row);
    for (std::size_t c = 0; c < kCols; ++c) {
      const auto pair = std::to_integer<unsigned>(blocks[(r * kCols + c) / 2]);
      const unsigned code = c % 2 == 0 ? pair & 15 : pair >> 4;
      const float value = std::ldexp(kValues[code % 8], std::to_integer<int>(scales[r * kGroups + c / 32]) - 127);
      ASSERT_EQ(row[c], code < 8 ? value : -value) << r << " " << c;
    }
  }
  Bytes one(row_bytes(format, kCols));
  ASSERT_TRUE(tensor.rows_of(7, 1, one));
  EXPECT_EQ(std::memcmp(one.data(), &rows[7 * one.size()], one.size()), 0);
  EXPECT_FALSE(tensor.rows_of(0, 2, one));
}

TEST(Packed, PartsThatDoNotFitAreRefused) {
  const StoredTensor blocks{"U8", {2, 3, 16}, Bytes(96)}, scales{"U8", {2, 3}, Bytes(6)};
  for (const auto& [first, second] : {std::pair{blocks, StoredTensor{"U8", {3, 2}, Bytes(6)}},
                                      {blocks, {"F32", {2, 3}, Bytes(24)}},
                                      {StoredTensor{"U8", {2, 3, 8}, Bytes(48)}, scales},
                                      {StoredTensor{"U8", {96}, Bytes(96)}, scales},
                                      {StoredTensor{"I8", {2, 3, 16}, Bytes(96)}, scales}}) {
    const Joined joined = join({{"up_blocks", first}, {"up_scales", second}});
    ASSERT_FALSE(joined.status);
    EXPECT_EQ(error_of(joined.status).code, ErrorCode::bad_input);
    EXPECT_NE(std::strstr(error_of(joined.status).sentence, "up_scales"), nullptr) << joined.status.error().sentence;
  }
  // Either alone stays what it is.
  EXPECT_EQ(join({{"up_blocks", blocks}, {"down_scales", scales}}).model.tensors.size(), 2u);
}

/// A matrix of NVFP4 by the names that a method gives its parts, and its values in double precision.
struct Nvfp4Matrix {
  StoredTensors tensors;
  std::vector<double> values;

  Nvfp4Matrix(const std::string& name, std::size_t rows, std::size_t cols, bool divides, std::uint64_t seed) {
    constexpr std::array kValues{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    const float whole = divides ? 320.0f : 0.0031f;
    const Bytes codes = random_bytes(rows * cols / 2, seed), scales = random_bytes(rows * cols / 16, seed + 1, 127);
    for (std::size_t i = 0; i < rows * cols; ++i) {
      const unsigned code = std::to_integer<unsigned>(codes[i / 2]) >> 4 * (i % 2) & 15;
      const auto scale = std::to_integer<unsigned>(scales[i / 16]);
      const int exponent = static_cast<int>(scale >> 3), fraction = static_cast<int>(scale & 7);
      const double of16 = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
      const double value = kValues[code % 8] * of16 * (divides ? 1 / double{whole} : double{whole});
      values.push_back(code < 8 ? value : -value);
    }
    Bytes number;
    put(number, whole);
    const std::vector<std::uint64_t> one = divides ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>{};
    tensors[name + (divides ? ".weight_packed" : ".weight")] = {"U8", {rows, cols / 2}, codes};
    tensors[name + ".weight_scale"] = {"F8_E4M3", {rows, cols / 16}, scales};
    tensors[name + (divides ? ".weight_global_scale" : ".weight_scale_2")] = {"F32", one, number};
    tensors[name + (divides ? ".input_global_scale" : ".input_scale")] = {"F32", one, number};
    tensors[name + ".k_scale"] = {"F32", one, number};
  }
};

// As modelopt and compressed-tensors write it. The second has rows that are no whole blocks.
TEST(Packed, Nvfp4KeepsItsCodesAndScales) {
  const Format& format = *find_format("nvfp4_f32");
  for (const auto& [divides, cols] : {std::pair{false, 128u}, {true, 80u}}) {
    constexpr std::size_t kRows = 5;
    const Nvfp4Matrix matrix("x", kRows, cols, divides, 3);
    const Joined joined = join(matrix.tensors);
    ASSERT_TRUE(joined.status) << joined.status.error().sentence;
    ASSERT_EQ(joined.model.tensors.size(), 1u);
    const convert::LoadedTensor& tensor = joined.model.tensors[0];
    EXPECT_EQ(tensor.name, "x.weight");
    EXPECT_EQ(tensor.shape, (std::vector<std::uint64_t>{kRows, cols}));
    ASSERT_EQ(tensor.format, format.id);
    const std::size_t size = row_bytes(format, cols);
    Bytes rows(kRows * size);
    ASSERT_TRUE(tensor.rows_of(0, kRows, rows));
    for (std::size_t r = 0; r < kRows; ++r) {
      std::vector<float> row(cols);
      dequantize_row(format, std::span(rows).subspan(r * size, size), row);
      for (std::size_t c = 0; c < cols; ++c) {
        const double value = matrix.values[r * cols + c];
        ASSERT_NEAR(row[c], value, std::abs(value) * 0x1p-22) << r << " " << c;
      }
    }
    Bytes one(size);
    ASSERT_TRUE(tensor.rows_of(3, 1, one));
    EXPECT_TRUE(std::ranges::equal(one, std::span(rows).subspan(3 * size, size)));
    std::vector<InputRun> runs;
    EXPECT_EQ(tensor.rows_of.runs(2, 2, runs), RowsFrom::runs);
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].size, cols);
    EXPECT_EQ(runs[1].size, cols / 8);
  }
}

TEST(Packed, PartsOfNvfp4ThatDoNotFitAreRefused) {
  const StoredTensors good = Nvfp4Matrix("x", 4, 64, false, 3).tensors;
  const auto error = [&](auto change) {
    StoredTensors tensors = good;
    change(tensors);
    Joined joined = join(tensors);
    Bytes rows(4 * 40);
    const Status status = joined.status ? joined.model.tensors[0].rows_of(0, 4, rows) : joined.status;
    EXPECT_FALSE(status);
    EXPECT_EQ(error_of(status).code, ErrorCode::bad_input);
    return std::string(error_of(status).sentence);
  };
  EXPECT_NE(error([](auto& t) { t["x.weight_scale"] = {"F8_E4M3", {2, 8}, Bytes(16)}; }).find("do not fit"),
            std::string::npos);
  EXPECT_NE(error([](auto& t) { t["x.weight_scale"].type = "U8"; }).find("do not fit"), std::string::npos);
  EXPECT_NE(error([](auto& t) { t["x.weight"].type = "I8"; }).find("do not fit"), std::string::npos);
  EXPECT_NE(error([](auto& t) { t["x.weight_scale_2"] = {"F32", {4}, Bytes(16)}; }).find("do not fit"),
            std::string::npos);
  EXPECT_EQ(error([](auto& t) {
              Bytes infinite;
              put(infinite, HUGE_VALF);
              t["x.weight_scale_2"].data = infinite;
            }),
            "tensor x.weight_scale_2 is inf, which is no scale");
  EXPECT_EQ(error([](auto& t) { t["x.weight_scale"].data[9] = std::byte{0x7f}; }),
            "tensor x.weight_scale has a scale that is no positive number in row 2");
}

// A whole model: its matrices are carried, one that is not packed becomes the usual type, and another method is
// refused.
TEST(Packed, ModelsInNvfp4AreConverted) {
  const Folder folder;
  copy_folder(kLlama, folder.path());
  const StoredTensors before = read_tensors(folder.path("model.safetensors"));
  nlohmann::json config = read_config(folder.path());
  for (const bool divides : {false, true}) {
    StoredTensors tensors;
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, tensor] : before) {
      if (name.find("_proj") == std::string::npos || name.find(".bias") != std::string::npos) {
        tensors[name] = tensor;
        continue;
      }
      const Nvfp4Matrix matrix(name.substr(0, name.size() - 7), tensor.shape[0], tensor.shape[1], divides, name.size());
      tensors.insert(matrix.tensors.begin(), matrix.tensors.end());
      values[name] = matrix.values;
    }
    write_tensors(folder.path("model.safetensors"), tensors);
    if (divides)
      config["quantization_config"] = {{"quant_method", "compressed-tensors"}, {"format", "nvfp4-pack-quantized"}};
    else
      config["quantization_config"] = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}};
    write_text(folder.path("config.json"), config.dump());
    const Written file = convert(folder.path(), {});
    std::size_t n = 0;
    for (const TensorEntry& tensor : file.tables.tensors) {
      if (rule_of(tensor.role).matrix) {
        const bool packed = tensor.stage != 0 && tensor.role != Role::head;
        EXPECT_EQ(find_format(tensor.format)->name, packed ? "nvfp4_f32" : "8bit");
      }
    }
    for (const auto& [place, weights] : file.weights) {
      if (place.first == 0) continue;
      const auto expected = values.find(hugging_face_name(place.second, place.first - 1));
      if (expected == values.end()) continue;
      ++n;
      ASSERT_EQ(weights.values.size(), expected->second.size());
      for (std::size_t i = 0; i < weights.values.size(); ++i) {
        ASSERT_NEAR(weights.values[i], expected->second[i], std::abs(expected->second[i]) * 0x1p-22) << i;
      }
    }
    EXPECT_EQ(n, values.size());
    // As GGUF the scales are tensors of their own, which are read back to the same bits.
    const auto write_to = [&](const std::string& from, const std::string& to) {
      const Result<convert::LoadedModel> model = convert::open_model(from);
      ASSERT_TRUE(model) << model.error().sentence;
      convert::Options options;
      options.gguf = true;
      const Result<convert::Summary> written = convert_file(*model, options, to);
      ASSERT_TRUE(written) << written.error().sentence;
    };
    write_to(folder.path(), folder.path("a.gguf"));
    write_to(folder.path("a.gguf"), folder.path("b.gguf"));
    const Bytes gguf = read_bytes(folder.path("a.gguf"));
    EXPECT_TRUE(gguf == read_bytes(folder.path("b.gguf")));
    const Result<convert::Gguf> read = convert::read_gguf(convert::input_of("a.gguf", gguf));
    ASSERT_TRUE(read) << read.error().sentence;
    std::size_t n_scales = 0;
    for (const convert::LoadedTensor& tensor : read->tensors) {
      if (!tensor.name.ends_with(".scale")) continue;
      ++n_scales;
      float scale = 0;
      ASSERT_EQ(tensor.shape, std::vector<std::uint64_t>{1}) << tensor.name;
      ASSERT_TRUE(tensor.rows_of(0, 1, std::as_writable_bytes(std::span(&scale, 1))));
      EXPECT_EQ(scale, divides ? 1 / 320.0f : 0.0031f) << tensor.name;
    }
    EXPECT_EQ(n_scales, values.size());
    const Written back = convert(folder.path("a.gguf"), {});
    for (const auto& [place, weights] : file.weights) {
      if (values.contains(hugging_face_name(place.second, place.first - 1))) {
        EXPECT_EQ(back.weights.at(place).values, weights.values) << place.first;
      }
    }
    std::filesystem::remove(folder.path("a.gguf"));
    std::filesystem::remove(folder.path("b.gguf"));
  }
  config["quantization_config"]["format"] = "pack-quantized";
  write_text(folder.path("config.json"), config.dump());
  EXPECT_STREQ(convert_error(folder.path()).sentence,
               "config.json: of models quantized with \"compressed-tensors\" those whose \"format\" is "
               "\"nvfp4-pack-quantized\" are supported, not \"pack-quantized\"");
}

class PackedBitNet : public testing::Test {
 protected:
  void SetUp() override {
    copy_folder(kSource + "/tests/data/bitnet", folder_.path());
    tensors_ = read_tensors(folder_.path("model.safetensors"));
    config_ = read_config(folder_.path());
  }
  static bool linear(const std::string& name, const StoredTensor& tensor) {
    return name.find(".layers.") != std::string::npos && tensor.shape.size() == 2;
  }
  void say(const std::string& mode, const std::string& linear) {
    config_["quantization_config"] = {
        {"quant_method", "bitnet"}, {"quantization_mode", mode}, {"linear_class", linear}};
    write_text(folder_.path("config.json"), config_.dump());
  }

  Folder folder_;
  StoredTensors tensors_;
  json config_;
};

TEST_F(PackedBitNet, WeightsAreTheirCodesTimesTheScale) {
  constexpr float kScale = 0.25f;
  StoredTensors packed;
  std::map<std::string, std::vector<float>> values;
  std::uint64_t seed = 0;
  for (const auto& [name, tensor] : tensors_) {
    if (!linear(name, tensor)) {
      packed[name] = tensor;
      continue;
    }
    const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
    const Bytes codes = random_bytes(rows * cols, ++seed, 3);
    Bytes bytes(rows / 4 * cols);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      bytes[i % bytes.size()] |= codes[i] << 2 * (i / bytes.size());
      values[name].push_back(kScale * static_cast<float>(std::to_integer<int>(codes[i]) - 1));
    }
    Bytes scale;
    put(scale, kScale);
    packed[name] = {"U8", {rows / 4, cols}, bytes};
    packed[name + "_scale"] = {"F32", {1}, scale};
  }
  write_tensors(folder_.path("model.safetensors"), packed);
  for (const auto& [linear, factor] : {std::pair{"autobitlinear", 1.0f}, {"bitlinear", 1 / (kScale * kScale)}}) {
    say("offline", linear);
    const Written file = convert(folder_.path(), {});
    std::size_t n = 0;
    for (const auto& [place, weights] : file.weights) {
      if (place.first == 0) continue;
      const auto expected = values.find(hugging_face_name(place.second, place.first - 1));
      if (expected == values.end()) continue;
      ++n;
      ASSERT_EQ(weights.values.size(), expected->second.size());
      for (std::size_t i = 0; i < weights.values.size(); ++i) {
        ASSERT_EQ(weights.values[i], expected->second[i] * factor) << expected->first << " " << i;
      }
    }
    EXPECT_EQ(n, values.size());
  }
  // A code that is none.
  StoredTensor& first = packed["model.layers.0.mlp.up_proj.weight"];
  first.data[0] |= std::byte{3};
  write_tensors(folder_.path("model.safetensors"), packed);
  const Error error = convert_error(folder_.path());
  EXPECT_EQ(error.code, ErrorCode::bad_input);
  EXPECT_NE(std::strstr(error.sentence, "none of -1, 0 and 1 in row 0"), nullptr) << error.sentence;
}

TEST_F(PackedBitNet, OnlineWeightsAreRoundedAsTheyAreRead) {
  const std::map<std::string, Weights> before = hugging_face_weights(folder_.path());
  say("online", "autobitlinear");
  const Written file = convert(folder_.path(), {});
  std::size_t n = 0;
  for (const auto& [place, weights] : file.weights) {
    if (place.first == 0) continue;
    const auto source = before.find(hugging_face_name(place.second, place.first - 1));
    if (source == before.end() || !linear(source->first, tensors_.at(source->first))) continue;
    ++n;
    const std::vector<float>& from = source->second.values;
    double mean = 0;
    for (const float w : from) mean += std::fabs(static_cast<double>(w)) / static_cast<double>(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      const double exact = static_cast<double>(from[i]) / mean;
      if (std::fabs(std::fabs(exact) - 0.5) < 1e-5) continue;  // either
      const double expected = std::fabs(exact) < 0.5 ? 0 : std::copysign(mean, exact);
      ASSERT_NEAR(weights.values[i], expected, mean * 1e-6) << source->first << " " << i;
    }
  }
  EXPECT_EQ(n, 7u * 3);
}

TEST_F(PackedBitNet, OtherWaysAreRefusedByName) {
  say("backwards", "bitlinear");
  EXPECT_NE(std::strstr(convert_error(folder_.path()).sentence, "\"backwards\""), nullptr);
  say("offline", "bilinear");
  EXPECT_NE(std::strstr(convert_error(folder_.path()).sentence, "\"bilinear\""), nullptr);
}

}  // namespace
}  // namespace qsf::test
