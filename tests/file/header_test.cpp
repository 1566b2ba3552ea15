// What each check of the header says: fields changed, the checksums repaired.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "tests/file/open_file.h"
#include "tests/file/repair.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

struct FieldChange {
  std::uint32_t at;
  std::uint32_t size;
  std::uint64_t value;
};

class HeaderTest : public ::testing::Test {
 protected:
  void expect(std::initializer_list<FieldChange> changes, ErrorCode code, const char* part_of_sentence) {
    std::vector<std::byte> bytes(file_.begin(), file_.begin() + kHeaderSize);
    for (const FieldChange& c : changes) std::memcpy(bytes.data() + c.at, &c.value, c.size);
    repair(bytes, Inside::header);
    const Result<Header> header = read_header(bytes, file_.size());
    EXPECT_EQ(error_name(header ? ErrorCode::none : header.error().code), error_name(code));
    if (header) return;
    EXPECT_NE(std::string(error_of(header).sentence).find(part_of_sentence), std::string::npos)
        << header.error().sentence;
  }
  void expect_good(std::initializer_list<FieldChange> changes) { expect(changes, ErrorCode::none, ""); }

  const std::vector<std::byte> file_ = small_file().bytes;  // 4 heads of 8, 2 for keys and values, 40 tokens
};

TEST_F(HeaderTest, IsReadAsWritten) {
  const Result<Header> h = read_header(file_, file_.size());
  ASSERT_TRUE(h) << h.error().sentence;
  EXPECT_EQ(h->n_layers, 2u);
  EXPECT_EQ(h->dim, 32u);
  EXPECT_EQ(h->n_heads, 4u);
  EXPECT_EQ(h->n_kv_heads, 2u);
  EXPECT_EQ(h->vocab_size, 40u);
  EXPECT_EQ(h->max_seq_len, 64u);
  EXPECT_EQ(h->ffn_dim, 48u);
  EXPECT_EQ(h->head_dim, 8u);
  EXPECT_EQ(h->rope_theta, 10000.0f);
  EXPECT_EQ(h->bos, 1u);
  EXPECT_EQ(h->eos, 2u);
  EXPECT_EQ(h->pad, kNoToken);
  EXPECT_EQ(h->flags, kFlagTied | kFlagFinalNormF32);
}

TEST_F(HeaderTest, Beginnings) {
  expect({{0, 4, 0x51534632}}, ErrorCode::bad_magic, "QSF1");
  expect({{4, 4, 2}}, ErrorCode::bad_version, "2");
  expect({{8, 4, 127}}, ErrorCode::bad_header, "127");
  for (std::size_t size = 0; size < kHeaderSize; ++size) {
    const Result<Header> h = read_header(piece(file_, 0, size), size);
    ASSERT_FALSE(h);
    EXPECT_EQ(error_of(h).code, size < 4 ? ErrorCode::bad_magic : ErrorCode::truncated);
    const char* part = size < 4 ? "QSF1" : "a header alone has 128";
    EXPECT_NE(std::string(error_of(h).sentence).find(part), std::string::npos) << h.error().sentence;
  }
  EXPECT_EQ(error_of(read_header(file_, 127)).code, ErrorCode::truncated);
  EXPECT_EQ(error_of(read_header(file_, file_.size() + 1)).code, ErrorCode::truncated);
  EXPECT_TRUE(read_header(file_, file_.size() + (std::uint64_t{1} << 32)));  // the lower 32 bits are the same
}

TEST_F(HeaderTest, WhatIsTakenForOneIsTold) {
  const std::pair<std::string, const char*> cases[] = {
      {"GGUF\3", "a GGUF file"},
      {std::string("\x40\0\0\0\0\0\0\0{\"a\":", 13), "looks like safetensors"},
      {"PK\3\4", "a zip archive"},
      {"{\n \"model_type\"", "JSON: the model is the folder"},
      {"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"},
      {"<!DOCTYPE html>", "a web page"},
      {"<html>", "a web page"},
      {"QSF2", "does not begin with the bytes \"QSF1\""},
      {"<", "does not begin with the bytes \"QSF1\""},
  };
  for (const auto& [text, part] : cases) {
    const Result<Header> h = read_header(std::as_bytes(std::span(text)), text.size());
    ASSERT_FALSE(h) << text;
    EXPECT_EQ(error_of(h).code, ErrorCode::bad_magic);
    EXPECT_NE(std::string(error_of(h).sentence).find(part), std::string::npos) << h.error().sentence;
  }
}

TEST_F(HeaderTest, AFirstDraftWithoutTables) {
  std::vector<std::byte> bytes = file_;
  std::fill_n(bytes.begin() + 100, 28, std::byte{0});
  const Result<Header> h = read_header(bytes, bytes.size());
  ASSERT_FALSE(h);
  EXPECT_EQ(error_of(h).code, ErrorCode::unsupported);
}

TEST_F(HeaderTest, Ranges) {
  expect({{12, 4, 5}}, ErrorCode::bad_header, "architecture is 5");
  expect({{16, 4, 1025}}, ErrorCode::bad_header, "n_layers is 1025");
  expect({{20, 4, (1 << 20) + 1}}, ErrorCode::bad_header, "dim is 1048577");
  expect({{24, 4, 0}}, ErrorCode::bad_header, "n_heads is 0");
  expect({{28, 4, 8}}, ErrorCode::bad_header, "n_kv_heads is 8");
  expect({{32, 4, 0}}, ErrorCode::bad_header, "vocab_size is 0");
  expect({{32, 4, (1 << 22) + 1}}, ErrorCode::bad_header, "vocab_size is 4194305");
  expect({{36, 4, 0}}, ErrorCode::bad_header, "max_seq_len is 0");
  expect({{36, 4, (1 << 24) + 1}}, ErrorCode::bad_header, "max_seq_len is 16777217");
  expect({{40, 4, 0}}, ErrorCode::bad_header, "ffn_dim is 0");
  expect({{44, 4, 0}}, ErrorCode::bad_header, "head_dim is 0");
  expect({{49, 1, 6}}, ErrorCode::bad_header, "activation is 6");
  expect({{50, 1, 2}}, ErrorCode::bad_header, "norm is 2");
  expect({{51, 1, 3}}, ErrorCode::bad_header, "position is 3");
  expect({{108, 4, 0}}, ErrorCode::bad_header, "n_sections is 0");
  expect({{108, 4, 65}}, ErrorCode::bad_header, "n_sections is 65");
  expect({{48, 1, 63}}, ErrorCode::unsupported, "quantization type 63");
  expect({{48, 1, 0xff}}, ErrorCode::unsupported, "quantization type 255");
  expect({{120, 4, 8}}, ErrorCode::unsupported, "flags are 0x8");
}

TEST_F(HeaderTest, Heads) {
  expect({{28, 4, 3}}, ErrorCode::bad_header, "not a multiple of n_kv_heads 3");
  expect({{44, 4, 7}}, ErrorCode::bad_header, "head_dim 7 is odd");
  expect_good({{44, 4, 7}, {51, 1, 2}});  // without RoPE nothing is rotated in pairs
  expect_good({{24, 4, 1 << 10}, {28, 4, 1}, {44, 4, 1 << 10}});
  expect({{24, 4, 1 << 10}, {28, 4, 1}, {44, 4, (1 << 10) + 2}}, ErrorCode::bad_header, "is more than 1048576");
  expect({{24, 4, 1 << 16}, {28, 4, 1}, {44, 4, 1 << 16}}, ErrorCode::bad_header, "is more than 1048576");
}

TEST_F(HeaderTest, ZeroKvHeadsMeansAll) {
  std::vector<std::byte> bytes = file_;
  store_le(bytes.data() + 28, 0u);
  repair(bytes, Inside::header);
  const Result<Header> h = read_header(bytes, bytes.size());
  ASSERT_TRUE(h);
  EXPECT_EQ(h->n_kv_heads, 4u);
}

TEST_F(HeaderTest, RopeTheta) {
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    expect({{52, 4, std::bit_cast<std::uint32_t>(bad)}}, ErrorCode::bad_header, "rope_theta");
    expect_good({{52, 4, std::bit_cast<std::uint32_t>(bad)}, {51, 1, 0}});
  }
}

TEST_F(HeaderTest, Tokens) {
  for (const std::uint32_t at : {80u, 84u, 88u}) {
    expect_good({{at, 4, 39}});
    expect_good({{at, 4, kNoToken}});
    expect({{at, 4, 40}}, ErrorCode::bad_header, "is 40, it must be 0 to 39");
  }
}

TEST_F(HeaderTest, Places) {
  for (const std::uint32_t at : {56u, 64u, 72u, 100u}) {
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{file_.size()},
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 15}) {
      expect({{at, 8, place}}, ErrorCode::bad_header, "is not within bytes 128 to");
    }
    expect_good({{at, 8, 128}});
  }
  expect({{56, 8, file_.size() - 63}}, ErrorCode::bad_header, "layer index");
  expect_good({{56, 8, file_.size() - 64}});
  expect({{100, 8, file_.size() - 71}}, ErrorCode::bad_header, "section directory");
  expect_good({{100, 8, file_.size() - 72}});
}

}  // namespace
}  // namespace qsf::test
