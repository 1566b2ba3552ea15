// Blocks whose scale or minimum is no number: refused where they are copied, as weights are where they are read.
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/hugging_face/packed.h"
#include "converter/support.h"
#include "converter/tensors/rows.h"
#include "converter/types/decoded.h"
#include "converter/types/written_type.h"
#include "qsf/base/bytes.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kScaledRows = 3, kBad = 2;
const std::string kName = "blk.0.attn_q.weight";

/// Reads rows of one block each in their own type; the error where there is one.
Status read(convert::LoadedTensor tensor, FormatId type, std::uint32_t cols, const Bytes& rows) {
  Bytes out(rows.size());
  tensor.name = kName;
  tensor.shape = {kScaledRows, cols};
  const convert::RowsOf as = convert::rows_as(tensor, type, kScaledRows, cols, {}).rows_of;
  const Status status = as(0, kScaledRows, out);
  if (status) {
    EXPECT_EQ(out, rows);
  }
  return status;
}

convert::LoadedTensor tensor_of(const Format& format, const Bytes& rows) {
  convert::LoadedTensor tensor;
  tensor.format = format.id;
  tensor.rows_of = convert::rows_in(convert::input_of("rows", rows), 0, rows.size(), format.block_bytes);
  return tensor;
}

void expect_refused(const Status& status, const std::string& what) {
  ASSERT_FALSE(status) << what;
  EXPECT_EQ(error_of(status).code, ErrorCode::bad_input) << what;
  EXPECT_NE(std::strstr(error_of(status).sentence, kName.c_str()), nullptr) << status.error().sentence;
  EXPECT_NE(std::strstr(error_of(status).sentence, "in row 2,"), nullptr) << status.error().sentence;
}

template <class T>
void set(Bytes& rows, std::size_t block_bytes, std::size_t at, T value) {
  store_le(&rows[kBad * block_bytes + at], value);
}

constexpr std::array<std::uint16_t, 3> kNoHalves{0x7c00, 0xfc00, 0x7e01};

// Where ggml-common.h has the numbers of its blocks.
struct Ggml {
  const char* name;
  std::uint8_t type;
  std::uint32_t block, block_bytes;
  std::vector<std::size_t> halves;  // scales and minima of f16
};
const std::array kGgml{
    Ggml{"Q4_0", 2, 32, 18, {0}},      Ggml{"Q4_1", 3, 32, 20, {0, 2}},    Ggml{"Q5_0", 6, 32, 22, {0}},
    Ggml{"Q5_1", 7, 32, 24, {0, 2}},   Ggml{"Q8_0", 8, 32, 34, {0}},       Ggml{"Q2_K", 10, 256, 84, {80, 82}},
    Ggml{"Q3_K", 11, 256, 110, {108}}, Ggml{"Q4_K", 12, 256, 144, {0, 2}}, Ggml{"Q5_K", 13, 256, 176, {0, 2}},
    Ggml{"Q6_K", 14, 256, 210, {208}}, Ggml{"IQ2_XXS", 16, 256, 66, {0}},  Ggml{"IQ2_XS", 17, 256, 74, {0}},
    Ggml{"IQ3_XXS", 18, 256, 98, {0}}, Ggml{"IQ1_S", 19, 256, 50, {0}},    Ggml{"IQ4_NL", 20, 32, 18, {0}},
    Ggml{"IQ3_S", 21, 256, 110, {0}},  Ggml{"IQ2_S", 22, 256, 82, {0}},    Ggml{"IQ4_XS", 23, 256, 136, {0}},
    Ggml{"IQ1_M", 29, 256, 56, {}},    Ggml{"TQ1_0", 34, 256, 54, {52}},   Ggml{"TQ2_0", 35, 256, 66, {64}},
    Ggml{"MXFP4", 39, 32, 17, {}},
};

TEST(Scales, OfGgmlsBlocksAreFinite) {
  for (const Ggml& ggml : kGgml) {
    const Bytes all = read_bytes(kSource + "/tests/data/ggml-blocks/" + ggml.name + ".q");
    Bytes rows(all.begin(), all.begin() + kScaledRows * ggml.block_bytes);
    const auto status = [&] {
      const FormatId id = ggml_type(ggml.type);
      return read(tensor_of(*find_format(id), rows), id, ggml.block, rows);
    };
    EXPECT_TRUE(status()) << ggml.name << ": " << status().error().sentence;
    const Bytes good = rows;
    for (const std::uint16_t half : kNoHalves) {
      for (const std::size_t at : ggml.halves) {
        set(rows, ggml.block_bytes, at, half);
        expect_refused(status(), ggml.name);
        rows = good;
      }
      if (ggml.type == 29) {  // the highest bits of four numbers are a half's
        for (std::size_t i = 0; i < 4; ++i) {
          std::byte& high = rows[kBad * ggml.block_bytes + 48 + 2 * i + 1];
          high = (high & std::byte{0x0f}) | static_cast<std::byte>((half >> (4 * i) & 15) << 4);
        }
        expect_refused(status(), ggml.name);
        rows = good;
      }
    }
    if (ggml.type == 39) {
      set(rows, ggml.block_bytes, 0, std::uint8_t{255});
      expect_refused(status(), ggml.name);
    }
  }
}

TEST(Scales, OfEveryFormatAreFinite) {
  std::size_t n = 0;
  for (const Format& format : kFormats) {
    for (const Field& field : {format.scale, format.minimum}) {
      const auto refused = [&](auto number) {
        Bytes rows(std::size_t{kScaledRows} * format.block_bytes);
        EXPECT_TRUE(read(tensor_of(format, rows), format.id, format.block, rows)) << format.name;
        set(rows, format.block_bytes, field.at, number);
        expect_refused(read(tensor_of(format, rows), format.id, format.block, rows), std::string(format.name));
        ++n;
      };
      if (field.type == Scale::exponent) refused(std::uint8_t{255});
      if (field.type == Scale::f32) refused(std::numeric_limits<float>::infinity());
      if (field.type == Scale::f32) refused(std::numeric_limits<float>::quiet_NaN());
      for (const std::uint16_t half : kNoHalves) {
        if (field.type == Scale::f16) refused(half);
      }
    }
  }
  EXPECT_GT(n, 3 * 30u);
}

TEST(Scales, OfAGgufFileAreFinite) {
  const Folder folder;
  std::map<std::string, Weights> weights;
  Bytes file = gguf_of(kSource + "/tests/data/llama", GgmlType::q8_0, weights).file();
  const Weights& matrix = weights.at("model.layers.1.mlp.up_proj.weight");
  const std::span<const float> row = std::span(matrix.values).subspan(std::size_t{5} * matrix.cols, matrix.cols);
  std::vector<float> values(matrix.cols);
  const Bytes stored = ggml_row(GgmlType::q8_0, row, values);
  const auto at = std::search(file.begin(), file.end(), stored.begin(), stored.end());
  ASSERT_NE(at, file.end());
  write_bytes(folder.path("model.gguf"), file);
  EXPECT_EQ(convert(folder.path("model.gguf"), {}).tables.header.n_layers, 3u);
  store_le(&*at + 34, std::uint16_t{0x7e00});
  write_bytes(folder.path("model.gguf"), file);
  const Error error = convert_error(folder.path("model.gguf"));
  EXPECT_EQ(error.code, ErrorCode::bad_input);
  EXPECT_NE(std::strstr(error.sentence, "blk.1.ffn_up.weight has the scale nan in row 5, from column 32 on"), nullptr)
      << error.sentence;
}

/// Blocks and their values are GGML's; a scale of a tensor, or of each expert, multiplies them.
TEST(Scales, OfWholeTensorsAndOfExpertsMultiplyThem) {
  const std::string path = kSource + "/tests/data/ggml-blocks/NVFP4";
  const Bytes blocks = read_bytes(path + ".q"), numbers = read_bytes(path + ".f32");
  constexpr std::uint32_t kExperts = 2, kRowsEach = 3, kCols = 64, kAll = kExperts * kRowsEach;
  const FormatId nvfp4 = ggml_type(40);
  const std::size_t size = row_bytes(*find_format(nvfp4), kCols);
  const std::vector<float> factors{0.37f, -1.25e-3f};
  const auto tensor = [&](const char* name, FormatId format, std::vector<std::uint64_t> shape, const Bytes& data,
                          std::size_t row) {
    convert::LoadedTensor out;
    out.name = name;
    out.format = format;
    out.shape = std::move(shape);
    out.rows_of = convert::rows_in(convert::input_of(name, data), 0, data.size(), row);
    return out;
  };
  Bytes rows = blocks;
  rows.insert(rows.end(), blocks.begin(), blocks.end());
  ASSERT_EQ(rows.size(), kAll * size);
  Bytes of_one, of_experts;
  put(of_one, factors[0]);
  for (const float factor : factors) put(of_experts, factor);
  const convert::Recipe& llama = *convert::find_recipe("llama");
  std::vector<convert::LoadedTensor> tensors;
  tensors.push_back(tensor("blk.0.attn_q.scale", FormatId::f32, {1}, of_one, 4));
  tensors.push_back(tensor("blk.0.attn_q.weight", nvfp4, {kAll, kCols}, rows, size));
  tensors.push_back(tensor("blk.0.attn_q.input_scale", FormatId::f32, {1}, of_one, 4));
  tensors.push_back(tensor("blk.0.ffn_up_exps.weight", nvfp4, {kExperts, kRowsEach, kCols}, rows, size));
  tensors.push_back(tensor("blk.0.ffn_up_exps.scale", FormatId::f32, {kExperts}, of_experts, 8));
  tensors.push_back(tensor("blk.0.ffn_up_exps.input_scale", FormatId::f32, {kExperts}, of_experts, 8));
  tensors.push_back(tensor("blk.1.attn_q.scale", FormatId::f32, {1}, of_one, 4));  // of no tensor
  ASSERT_TRUE(convert::fold_gguf_scales(tensors, llama));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[2].name, "blk.1.attn_q.scale");
  for (const bool experts : {false, true}) {
    const convert::LoadedTensor& of = tensors[experts ? 1 : 0];
    const Format& scaled = *find_format("nvfp4_f32");
    ASSERT_EQ(of.format, scaled.id) << of.name;
    Bytes read(kAll * row_bytes(scaled, kCols));
    ASSERT_TRUE(of.rows_of(0, kAll, read));
    for (std::size_t i = 0; i < kAll; ++i) {  // a row has one block
      const float factor = factors[experts && i >= kRowsEach ? 1 : 0];
      const std::span<const std::byte> block = std::span(read).subspan(i * 40, 40);
      ASSERT_EQ(load_le<float>(block.data()), factor) << of.name << " " << i;
      ASSERT_TRUE(std::ranges::equal(block.subspan(4), std::span(rows).subspan(i * size, size)));
      std::vector<float> weights(kCols);
      dequantize_row(scaled, block, weights);
      for (std::size_t c = 0; c < kCols; ++c) {
        const double exact = double{load_le<float>(&numbers[4 * (i * kCols + c) % numbers.size()])} * double{factor};
        ASSERT_NEAR(weights[c], exact, std::abs(exact) * 0x1p-23) << of.name << " " << i << " " << c;
      }
    }
  }
  // Gemma 4 has a tensor of this name, which multiplies the weights of experts.
  std::vector<convert::LoadedTensor> own;
  own.push_back(tensor("blk.0.ffn_down_exps.weight", nvfp4, {kExperts, kRowsEach, kCols}, rows, size));
  own.push_back(tensor("blk.0.ffn_down_exps.scale", FormatId::f32, {kExperts}, of_experts, 8));
  ASSERT_TRUE(convert::fold_gguf_scales(own, *convert::find_recipe("gemma4-experts")));
  EXPECT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].format, nvfp4);
  std::vector<convert::LoadedTensor> bad;
  store_le(of_experts.data() + 4, std::numeric_limits<float>::infinity());
  bad.push_back(tensor("blk.0.ffn_up_exps.weight", nvfp4, {kExperts, kRowsEach, kCols}, rows, size));
  bad.push_back(tensor("blk.0.ffn_up_exps.scale", FormatId::f32, {kExperts}, of_experts, 8));
  EXPECT_STREQ(error_of(convert::fold_gguf_scales(bad, llama)).sentence, "GGUF: tensor blk.0.ffn_up_exps.scale is inf");
}

// Weights that are rounded while they are read would lose it.
TEST(Scales, OfRoundedWeightsAreFinite) {
  std::vector<float> weights(8, 1.0f);
  convert::LoadedModel model;
  convert::LoadedTensor tensor;
  tensor.name = "model.layers.0.mlp.up_proj.weight";
  tensor.type = "F32";
  tensor.format = FormatId::f32;
  tensor.shape = {2, 4};
  tensor.rows_of =
      convert::rows_in(convert::input_of("rows", std::as_bytes(std::span(weights))), 0, 8 * sizeof(float), 16);
  model.tensors.push_back(tensor);
  const convert::Json config{{"quantization_config", {{"quant_method", "bitnet"}, {"quantization_mode", "online"}}}};
  ASSERT_TRUE(convert::join_packed(config, model));
  weights[6] = std::numeric_limits<float>::quiet_NaN();
  Bytes out(2 * row_bytes(*find_format(model.tensors[0].format), 4));
  const Status status = model.tensors[0].rows_of(0, 2, out);
  ASSERT_FALSE(status);
  EXPECT_STREQ(error_of(status).sentence, "tensor model.layers.0.mlp.up_proj.weight holds nan in row 1, column 2");
}

}  // namespace
}  // namespace qsf::test
