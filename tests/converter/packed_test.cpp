// Packed tensors of Hugging Face checkpoints: gpt-oss's microscaling floats and BitNet's ternary weights.
#include "converter/readers/hugging_face/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

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
