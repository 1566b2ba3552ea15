// Every type of number that a safetensors file may have.
#include <cmath>
#include <cstring>
#include <limits>

#include "converter/readers/hugging_face/safetensors.h"
#include "converter/support.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

/// One vector of that type, as floats.
Result<std::vector<float>> values_of(const std::string& type, const Bytes& data, std::size_t n) {
  const std::string shape = std::to_string(n), size = std::to_string(data.size());
  Bytes file;
  put_text(file, R"({"t":{"dtype":")" + type + R"(","shape":[)" + shape + R"(],"data_offsets":[0,)" + size + "]}}");
  file.insert(file.end(), data.begin(), data.end());
  std::vector<convert::LoadedTensor> tensors;
  QSF_TRY(convert::read_safetensors(convert::input_of("x", file), tensors));
  EXPECT_EQ(tensors[0].type, type);
  if (tensors[0].format == FormatId::inherit) return make_error(ErrorCode::unsupported, "none");
  const Format& format = *find_format(tensors[0].format);
  Bytes row(row_bytes(format, n));
  QSF_TRY(tensors[0].rows_of(0, 1, row));
  std::vector<float> out(n);
  dequantize_row(format, row, out);
  return out;
}

template <class T>
void expect_exact(const std::string& type, std::initializer_list<T> values) {
  Bytes data;
  std::vector<float> expected;
  for (const T value : values) {
    put(data, value);
    expected.push_back(static_cast<float>(value));
  }
  const Result<std::vector<float>> read = values_of(type, data, values.size());
  ASSERT_TRUE(read) << type << ": " << read.error().sentence;
  EXPECT_EQ(*read, expected) << type;
}

template <class T>
void expect_refused(const std::string& type, T value) {
  Bytes data;
  put(data, value);
  const Result<std::vector<float>> read = values_of(type, data, 1);
  ASSERT_FALSE(read) << type;
  EXPECT_EQ(error_of(read).code, ErrorCode::bad_input);
  EXPECT_NE(std::strstr(error_of(read).sentence, type.c_str()), nullptr) << read.error().sentence;
}

TEST(SafetensorsTypes, WholeNumbersAndFloats) {
  expect_exact<std::uint8_t>("BOOL", {0, 1});
  expect_exact<std::uint8_t>("U8", {0, 1, 255});
  expect_exact<std::int8_t>("I8", {0, -128, 127});
  expect_exact<std::uint16_t>("U16", {0, 65535});
  expect_exact<std::int16_t>("I16", {-32768, 32767});
  expect_exact<std::uint32_t>("U32", {1u << 24, 1u << 31});
  expect_exact<std::int32_t>("I32", {-(1 << 24), 3, INT32_MIN});
  expect_exact<std::uint64_t>("U64", {std::uint64_t{1} << 63});
  expect_exact<std::int64_t>("I64", {INT64_MIN, std::int64_t{1} << 40});
  expect_exact<float>("F32", {0.1f, -3.0f});
  expect_exact<double>("F64", {0.1, 1e-300, -2.0});
}

TEST(SafetensorsTypes, WholeNumbersThatNoFloatIsAreRefused) {
  expect_refused<std::uint32_t>("U32", (1u << 24) + 1);
  expect_refused<std::uint32_t>("U32", UINT32_MAX);
  expect_refused<std::int32_t>("I32", INT32_MAX);
  expect_refused<std::uint64_t>("U64", UINT64_MAX);
  expect_refused<std::int64_t>("I64", INT64_MAX);
  expect_refused<std::int64_t>("I64", -(std::int64_t{1} << 24) - 1);
}

/// All 256 codes of a type of 8 bits.
std::vector<float> all_codes(const std::string& type) {
  Bytes data;
  for (int i = 0; i < 256; ++i) put(data, static_cast<std::uint8_t>(i));
  const Result<std::vector<float>> read = values_of(type, data, data.size());
  EXPECT_TRUE(read) << type;
  return read ? *read : std::vector<float>(256);
}

/// The same from the definition: sign, exponent, mantissa.
float value8(unsigned code, int mantissa, int bias) {
  const int exponent = static_cast<int>(code & 0x7f) >> mantissa;
  const double fraction = static_cast<double>(code & ((1u << mantissa) - 1)) / (1 << mantissa);
  const double size =
      exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias);
  return static_cast<float>((code & 0x80) != 0 ? -size : size);
}

TEST(SafetensorsTypes, FloatsOfEightBits) {
  const std::vector<float> e4m3 = all_codes("F8_E4M3"), e5m2 = all_codes("F8_E5M2"), e8m0 = all_codes("F8_E8M0"),
                           e4m3z = all_codes("F8_E4M3FNUZ"), e5m2z = all_codes("F8_E5M2FNUZ");
  for (unsigned code = 0; code < 256; ++code) {
    SCOPED_TRACE(code);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(e4m3[code]));
    } else {
      EXPECT_EQ(e4m3[code], value8(code, 3, 7));
    }
    if ((code & 0x7f) < 0x7c) {
      EXPECT_EQ(e5m2[code], f16_to_f32(static_cast<std::uint16_t>(code << 8)));
    } else {
      EXPECT_EQ(std::isinf(e5m2[code]), (code & 3) == 0);
      EXPECT_EQ(std::isnan(e5m2[code]), (code & 3) != 0);
    }
    if (code == 0x80) {
      EXPECT_TRUE(std::isnan(e4m3z[code]) && std::isnan(e5m2z[code]));
    } else {
      EXPECT_EQ(e4m3z[code], value8(code, 3, 8));
      EXPECT_EQ(e5m2z[code], value8(code, 2, 16));
    }
    if (code == 255) {
      EXPECT_TRUE(std::isnan(e8m0[code]));
    } else {
      EXPECT_EQ(e8m0[code], static_cast<float>(std::pow(2.0, static_cast<int>(code) - 127)));
    }
  }
  EXPECT_EQ(e4m3[0x7e], 448.0f);
  EXPECT_EQ(e5m2[0x7b], 57344.0f);
  EXPECT_EQ(e4m3z[0x7f], 240.0f);
}

TEST(SafetensorsTypes, OthersAreOnlyListed) {
  for (const char* type : {"F4", "F6_E2M3", "C64", "MXFP4", "Q8_0"}) {
    const Result<std::vector<float>> read = values_of(type, Bytes(17), 32);
    ASSERT_FALSE(read);
    EXPECT_EQ(error_of(read).code, ErrorCode::unsupported);
  }
}

}  // namespace
}  // namespace qsf::test
