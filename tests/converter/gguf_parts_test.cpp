// A GGUF in several files, and types that only the converter knows.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"

namespace qsf::test {
namespace {

class GgufParts : public testing::Test {
 protected:
  void SetUp() override { parts_ = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, weights_).parts(3); }
  std::string path(int number) const { return folder_.path("m-0000" + std::to_string(number) + "-of-00003.gguf"); }
  void write() {
    for (int i = 0; i < 3; ++i) write_bytes(path(i + 1), parts_[static_cast<std::size_t>(i)].file());
  }
  void expect(const std::string& from, ErrorCode code, const char* part) {
    const Error error = convert_error(from);
    EXPECT_EQ(error.code, code) << error.sentence;
    EXPECT_NE(std::strstr(error.sentence, part), nullptr) << error.sentence;
  }

  Folder folder_;
  std::map<std::string, Weights> weights_;
  std::vector<GgufWriter> parts_;
};

TEST_F(GgufParts, AreTheWholeFromWhicheverIsNamed) {
  write();
  for (int number = 1; number <= 3; ++number) {
    const Written file = convert(path(number), {});
    EXPECT_EQ(file.weights.size(), weights_.size());
    for (const auto& [key, weights] : file.weights) {
      EXPECT_EQ(weights.values, weights_.at(hugging_face_name(key.second, key.first - 1)).values);
    }
  }
}

TEST_F(GgufParts, ThatDoNotBelongTogetherAreRefused) {
  write();
  std::filesystem::remove(path(2));
  expect(path(1), ErrorCode::io_error, "m-00002-of-00003.gguf");
  write_bytes(path(2), parts_[0].file());
  expect(path(1), ErrorCode::bad_input, "m-00002-of-00003.gguf says that it is part 1 of 3");
  expect(path(3), ErrorCode::bad_input, ", which is m-00001-of-00003.gguf");
  std::map<std::string, Weights> weights;
  write_bytes(path(2), gguf_of(kSource + "/tests/data/llama", GgmlType::f16, weights).file());
  expect(path(1), ErrorCode::bad_input, "part 2 of 3");
  write_bytes(path(2), Bytes(parts_[1].file().size()));
  expect(path(1), ErrorCode::bad_magic, "m-00002-of-00003.gguf: this is no GGUF file");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  const auto text = std::as_bytes(std::span(pointer));
  write_bytes(path(2), Bytes(text.begin(), text.end()));
  expect(path(1), ErrorCode::bad_input, "m-00002-of-00003.gguf is a pointer of Git LFS");
  GgufWriter more = parts_[1];
  more.tensor("another", GgmlType::f32, {1}, Bytes(4));
  write_bytes(path(2), more.file());
  expect(path(1), ErrorCode::bad_input, "split.tensors.count");
  GgufWriter first = parts_[0], third = parts_[2];
  for (GgufWriter* part : {&first, &third}) part->tensor("another", GgmlType::f32, {1}, Bytes(4));
  write();
  write_bytes(path(1), first.file());
  write_bytes(path(3), third.file());
  expect(path(2), ErrorCode::bad_input, "tensor another is in m-00001-of-00003.gguf and in m-00003-of-00003.gguf");
  write();
  std::filesystem::rename(path(1), folder_.path("m.gguf"));
  expect(folder_.path("m.gguf"), ErrorCode::unsupported, "-00001-of-00003.gguf");
  GgufWriter numbers;
  numbers.u16("split.count", 3);
  numbers.u16("split.no", 3);
  write_bytes(path(1), numbers.file());
  expect(path(1), ErrorCode::bad_input, "split.no 3");
}

TEST_F(GgufParts, VersionTwoIsTheSame) {
  std::map<std::string, Weights> weights;
  Bytes file = gguf_of(kSource + "/tests/data/llama", GgmlType::q8_0, weights).file();
  file[4] = std::byte{2};
  write_bytes(folder_.path("m.gguf"), file);
  EXPECT_EQ(convert(folder_.path("m.gguf"), {}).weights.size(), weights.size());
}

TEST_F(GgufParts, BigEndianIsRefusedByName) {
  Bytes file = parts_[0].file();
  std::swap(file[4], file[7]);
  write_bytes(folder_.path("m.gguf"), file);
  expect(folder_.path("m.gguf"), ErrorCode::bad_version, "big-endian");
}

/// Returns a matrix of one row as floats. Its type is carried if it is a format.
Result<std::vector<float>> row_of(GgmlType type, std::uint64_t cols, const Bytes& data) {
  GgufWriter writer;
  writer.tensor("t", type, {cols, 1}, data);
  const Bytes file = writer.file();
  QSF_LET(gguf, convert::read_gguf(convert::input_of("x.gguf", file)));
  const Format* const carried = find_format(ggml_type(static_cast<std::uint8_t>(type)));
  EXPECT_EQ(gguf.tensors[0].format, carried != nullptr ? carried->id : FormatId::f32);
  const Format& format = *find_format(gguf.tensors[0].format);
  Bytes row(row_bytes(format, cols));
  QSF_TRY(gguf.tensors[0].rows_of(0, 1, row));
  std::vector<float> out(cols);
  dequantize_row(format, row, out);
  return out;
}

TEST(GgufTypes, MicroscalingFloats) {
  Bytes block{std::byte{129}};  // 2^2
  for (unsigned i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  const Result<std::vector<float>> row = row_of(GgmlType::mxfp4, 32, block);
  ASSERT_TRUE(row) << row.error().sentence;
  constexpr std::array kSizes{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (unsigned i = 0; i < 16; ++i) {
    const float value = 4 * kSizes[i % 8] * (i < 8 ? 1.0f : -1.0f);
    EXPECT_EQ((*row)[i], value) << i;
    EXPECT_EQ((*row)[31 - i], value) << i;
  }
  block[0] = std::byte{0};  // 2^-127, which only a denormal is
  EXPECT_EQ((*row_of(GgmlType::mxfp4, 32, block))[2], std::ldexp(1.0f, -127));
  block[0] = std::byte{255};  // of no number in OCP's form; GGML goes on counting
  EXPECT_EQ((*row_of(GgmlType::mxfp4, 32, block))[1], std::ldexp(1.0f, 127));
}

TEST(GgufTypes, FourBitsWithSubScales) {
  Bytes block;
  put(block, f32_to_f16(0.5f));
  put<std::uint16_t>(block, 0b11'10'01'00'11'10'01'00);  // the upper two bits of eight sub-scales
  for (const unsigned low : {0x10u, 0x32u, 0x54u, 0x76u}) put(block, static_cast<std::uint8_t>(low));
  for (unsigned i = 0; i < 128; ++i) block.push_back(static_cast<std::byte>((i % 16) | (i / 8 % 16) << 4));
  const Result<std::vector<float>> row = row_of(GgmlType::iq4_xs, 256, block);
  ASSERT_TRUE(row) << row.error().sentence;
  constexpr std::array kLevels{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  for (unsigned group = 0; group < 8; ++group) {
    const int scale = static_cast<int>(group | group % 4 << 4) - 32;
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned byte = 16 * group + i;
      const auto value = [&](unsigned code) {
        return 0.5f * static_cast<float>(scale) * static_cast<float>(kLevels[code]);
      };
      EXPECT_EQ((*row)[32 * group + i], value(byte % 16));
      EXPECT_EQ((*row)[32 * group + 16 + i], value(byte / 8 % 16));
    }
  }
}

TEST(GgufTypes, PlainNumbers) {
  Bytes doubles, shorts;
  for (const double value : {0.1, -2.0}) put(doubles, value);
  for (const std::int16_t value : {std::int16_t{-32768}, std::int16_t{7}}) put(shorts, value);
  EXPECT_EQ(*row_of(GgmlType::f64, 2, doubles), (std::vector{0.1f, -2.0f}));
  EXPECT_EQ(*row_of(GgmlType::i16, 2, shorts), (std::vector{-32768.0f, 7.0f}));
}

TEST(GgufTypes, OthersAreRefusedByName) {
  for (const auto& [type, name] : {std::pair{GgmlType::q8_1, "Q8_1"}, std::pair{GgmlType::q8_k, "Q8_K"},
                                   std::pair{static_cast<GgmlType>(77), "type 77"}}) {
    const Folder folder;
    std::map<std::string, Weights> weights;
    GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, weights);
    writer.tensor("blk.0.attn_output.bias", type, {256}, Bytes(256));
    write_bytes(folder.path("m.gguf"), writer.file());
    const Error error = convert_error(folder.path("m.gguf"));
    EXPECT_EQ(error.code, ErrorCode::unsupported) << error.sentence;
    EXPECT_NE(std::strstr(error.sentence, name), nullptr) << error.sentence;
  }
}

constexpr std::array kCarried{std::pair{GgmlType::iq4_xs, "IQ4_XS"},   std::pair{GgmlType::mxfp4, "MXFP4"},
                              std::pair{GgmlType::iq1_s, "IQ1_S"},     std::pair{GgmlType::iq1_m, "IQ1_M"},
                              std::pair{GgmlType::iq2_xxs, "IQ2_XXS"}, std::pair{GgmlType::iq2_xs, "IQ2_XS"},
                              std::pair{GgmlType::iq2_s, "IQ2_S"},     std::pair{GgmlType::iq3_xxs, "IQ3_XXS"},
                              std::pair{GgmlType::iq3_s, "IQ3_S"},     std::pair{GgmlType::nvfp4, "NVFP4"}};

// Random blocks and, where they are, quantized weights, with the values that GGML's reference reads from them.
TEST(GgufTypes, WholeBlocksGiveTheReferenceValues) {
  const std::string own = kSource + "/tests/data/ggml-blocks/", shared = kShared + "/derived/quant-vectors/";
  for (const auto& [type, name] : kCarried) {
    EXPECT_TRUE(std::filesystem::exists(own + name + ".q")) << name;
    for (const std::string& folder : {own, shared}) {
      if (!std::filesystem::exists(folder + name + ".q")) continue;
      const Bytes blocks = read_bytes(folder + name + ".q"), values = read_bytes(folder + name + ".f32");
      const Result<std::vector<float>> row = row_of(type, values.size() / 4, blocks);
      ASSERT_TRUE(row) << row.error().sentence;
      for (std::size_t i = 0; i < row->size(); ++i) {
        ASSERT_EQ(std::memcmp(&(*row)[i], &values[4 * i], 4), 0) << folder << name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
