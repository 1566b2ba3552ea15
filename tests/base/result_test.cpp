#include "qsf/base/result.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <set>
#include <string>

namespace qsf {
namespace {

struct Listed {
  ErrorCode code;
  int number;
  std::string_view name;
  std::string_view meaning;
};
constexpr Listed kListed[] = {
#define QSF_ERROR(name, number, meaning) {ErrorCode::name, number, #name, meaning},
#include "qsf/base/errors.def"
#undef QSF_ERROR
};

TEST(ErrorCode, NamesAndNumbersAreUnique) {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const Listed& e : kListed) {
    EXPECT_TRUE(numbers.insert(e.number).second) << e.number;
    EXPECT_TRUE(names.insert(e.name).second) << e.name;
    EXPECT_EQ(static_cast<int>(e.code), e.number);
    EXPECT_EQ(error_name(e.code), e.name);
    EXPECT_GT(e.number, 0);
    EXPECT_TRUE(e.meaning.ends_with(".")) << e.meaning;
  }
  EXPECT_EQ(error_name(ErrorCode::none), "none");
  EXPECT_EQ(error_name(static_cast<ErrorCode>(60'000)), "unknown");
}

// They cross the C API and the worker boundary: changing one breaks callers.
TEST(ErrorCode, NumbersAreStable) {
  EXPECT_EQ(static_cast<int>(ErrorCode::bad_argument), 1);
  EXPECT_EQ(static_cast<int>(ErrorCode::bad_checksum), 10);
  EXPECT_EQ(static_cast<int>(ErrorCode::budget_too_small), 15);
  EXPECT_EQ(static_cast<int>(ErrorCode::cancelled), 24);
  EXPECT_EQ(static_cast<int>(ErrorCode::internal), 28);
}

TEST(MakeError, FormatsASentence) {
  const Error error = make_error(ErrorCode::bad_header, "header: dim is {}, not {}", 7u, "eight");
  EXPECT_EQ(error.code, ErrorCode::bad_header);
  EXPECT_STREQ(error.sentence, "header: dim is 7, not eight");
}

TEST(MakeError, CutsALongSentence) {
  const std::string text(1000, 'x');
  const Error error = make_error(ErrorCode::io_error, "{}", text);
  EXPECT_EQ(std::string(error.sentence), text.substr(0, sizeof error.sentence - 1));
}

TEST(MakeError, NeverCutsWithinACharacter) {
  for (std::size_t before = 0; before < 8; ++before) {
    for (const std::string character : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
      std::string text(sizeof(Error::sentence) - 1 - before, 'x');
      const std::size_t fit = before / character.size();
      for (int i = 0; i < 10; ++i) text += character;
      const std::string sentence = make_error(ErrorCode::io_error, "{}", text).sentence;
      EXPECT_EQ(sentence, text.substr(0, sizeof(Error::sentence) - 1 - before + fit * character.size()));
    }
  }
}

Result<int> half(int n) {
  if (n % 2 != 0) return make_error(ErrorCode::bad_argument, "{} is odd", n);
  return n / 2;
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 2);
  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::bad_argument);
  EXPECT_STREQ(bad.error().sentence, "3 is odd");
}

TEST(Result, MovesItsValue) {
  Result<std::unique_ptr<int>> held(std::make_unique<int>(5));
  ASSERT_TRUE(held);
  EXPECT_EQ(**held, 5);
  const std::unique_ptr<int> taken = std::move(*held);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, AFalseValueIsStillAValue) {
  const Result<bool> no(false);
  EXPECT_TRUE(no);
  EXPECT_FALSE(*no);
}

TEST(Status, IsGoodUntilGivenAnError) {
  EXPECT_TRUE(Status());
  EXPECT_EQ(Status().error().code, ErrorCode::none);
  const Status bad = make_error(ErrorCode::truncated, "short");
  EXPECT_FALSE(bad);
  EXPECT_STREQ(bad.error().sentence, "short");
}

// Every call on the good path makes one.
TEST(Status, ASuccessLeavesTheSentenceAlone) {
  alignas(Status) std::array<unsigned char, sizeof(Status)> bytes;
  bytes.fill(0x55);
  const auto keep = [&] { asm volatile("" : : "r"(bytes.data()) : "memory"); };
  keep();
  new (bytes.data()) Status{};
  keep();
  EXPECT_EQ(bytes.back(), 0x55);
  EXPECT_EQ(bytes[offsetof(Error, sentence)], 0);
}

}  // namespace
}  // namespace qsf
