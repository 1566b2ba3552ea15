// The sentences' formatter against std::snprintf, and what it makes of texts that nobody promised anything about.
#include "qsf/base/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "support/seeded.h"

namespace qsf {
namespace {

using test::Random;

/// The sentence of a format that need not be a literal.
template <class... Args>
std::string formatted(std::string_view format, const Args&... args) {
  std::vector<char> out(2000);
  const std::array<FormatValue, sizeof...(Args)> values{FormatValue(args)...};
  const std::size_t size = format_into(out, format, values.data(), format_kinds<Args...>());
  EXPECT_EQ(out[size], 0);
  return {out.data(), size};
}

template <class... Args>
std::string printed(const char* format, Args... args) {
  std::vector<char> out(2000);
  const int size = std::snprintf(out.data(), out.size(), format, args...);
  return {out.data(), static_cast<std::size_t>(size)};
}

/// Bytes of a text's first character, 0 where it is no UTF-8: by the Unicode standard's table 3-7.
std::size_t valid_character(std::string_view text) {
  struct Row {
    unsigned char first, last, low, high;
    std::size_t size;
  };
  constexpr Row kRows[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                           {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                           {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Row& row : kRows) {
    if (byte(0) < row.first || byte(0) > row.last) continue;
    if (text.size() < row.size) return 0;
    if (row.size > 1 && (byte(1) < row.low || byte(1) > row.high)) return 0;
    for (std::size_t i = 2; i < row.size; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    }
    return row.size;
  }
  return 0;
}

bool is_valid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = valid_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string utf8(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
}

/// A character that is not a control character, of each length as often.
std::string random_character(Random& random) {
  switch (random.below(4)) {
    case 0:
      return utf8(0x20 + random.below(0x7f - 0x20));
    case 1:
      return utf8(0xa0 + random.below(0x800 - 0xa0));
    case 2:
      return utf8(random.below(2) != 0 ? 0x800 + random.below(0xd800 - 0x800) : 0xe000 + random.below(0x2000));
    default:
      return utf8(0x10000 + random.below(0x100000));
  }
}

TEST(Format, Integers) {
  Random random(1);
  std::vector<std::uint64_t> values{0, 1, 9, 10, 15, 16, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  for (int i = 0; i < 5000; ++i) values.push_back(random.next() >> random.below(64));
  for (const std::uint64_t value : values) {
    const auto signed_value = static_cast<std::int64_t>(value);
    const auto small = static_cast<std::uint8_t>(value);
    const auto short_value = static_cast<std::int16_t>(value);
    ASSERT_EQ(formatted("{}", value), printed("%" PRIu64, value));
    ASSERT_EQ(formatted("{}", signed_value), printed("%" PRId64, signed_value));
    ASSERT_EQ(formatted("{} {}", small, short_value), printed("%u %d", unsigned{small}, int{short_value}));
    ASSERT_EQ(formatted("{:x}", value), printed("%" PRIx64, value));
    for (const int width : {1, 8, 20, 300}) {
      const std::string spec = printed("0x{:0%dx}", width);
      ASSERT_EQ(formatted(spec, value), printed("0x%0*" PRIx64, width, value));
    }
  }
  EXPECT_EQ(formatted("{}", std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

/// Numbers of every size and kind: any bits, few digits, many digits, ties of six digits and of fixed ones.
std::vector<double> doubles() {
  std::vector<double> values{0.0,     -0.0,    0.5,          1.5,         2.5,        0.125,   1e15,    1e16, 1e22,
                             DBL_MAX, DBL_MIN, DBL_TRUE_MIN, DBL_EPSILON, 0.00009999, 9.99995, 9.99e99, 1e100};
  for (int exponent = -324; exponent <= 308; ++exponent) {
    for (const char* digits : {"1", "9.999994", "9.999995", "9.999996", "1.2345650"}) {
      values.push_back(std::strtod((digits + ("e" + std::to_string(exponent))).c_str(), nullptr));
    }
  }
  Random random(2);
  for (int i = 0; i < 4000; ++i) {
    values.push_back(std::bit_cast<double>(random.next()));
    values.push_back(static_cast<double>(std::bit_cast<float>(random.below(~0u))));
    values.push_back(static_cast<double>(random.below(10'000'000)) / 4);
    values.push_back(static_cast<double>(static_cast<std::int64_t>(random.next())) * 0x1p-40);
    values.push_back(random.below(1'000'000) / 1e5);
  }
  return values;
}

TEST(Format, RealNumbersAreThoseOfPrintf) {
  for (const double value : doubles()) {
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(formatted("{}", value), printed("%g", value));
    for (const int precision : {0, 1, 2, 6, 20}) {
      ASSERT_EQ(formatted(printed("{:.%df}", precision), value), printed("%.*f", precision, value));
    }
  }
  EXPECT_EQ(formatted("{:.999f}", DBL_TRUE_MIN), printed("%.999f", DBL_TRUE_MIN));
  EXPECT_EQ(formatted("{:.999f}", 0x1.fffffffffffffp-1022), printed("%.999f", 0x1.fffffffffffffp-1022));
}

// printf gives the sign of a NaN on some machines and not on others.
TEST(Format, WhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(formatted("{} {} {:.2f}", nan, std::copysign(nan, -1.0), nan), "nan nan nan");
  EXPECT_EQ(formatted("{} {} {:.2f}", infinity, -infinity, -infinity), "inf -inf -inf");
}

enum class Colour : std::uint8_t { red = 1, blue = 200 };

TEST(Format, OtherTypes) {
  EXPECT_EQ(formatted("{} {}", Colour::red, Colour::blue), "1 200");
  EXPECT_EQ(formatted("{:x}", Colour::blue), "c8");
  EXPECT_EQ(formatted("{} {} {}", true, 'c', 1.5f), "1 c 1.5");
  EXPECT_EQ(formatted("{}{}{}", std::string("a"), std::string_view("bc", 1), "d"), "abd");
  const char array[] = "an array";
  EXPECT_EQ(formatted("{}", array), "an array");
}

TEST(Format, Braces) {
  char out[40];
  EXPECT_EQ(std::string(out, format_into(out, "{{{}}} }}{{ {{}}", 7)), "{7} }{ {}");
  EXPECT_EQ(std::string(out, format_into(out, "no places")), "no places");
  EXPECT_EQ(format_into(out, ""), 0u);
}

TEST(Format, PrecisionKeepsWholeCharacters) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    std::vector<std::size_t> ends{0};
    for (int i = 0; i < 20; ++i) {
      text += random_character(random);
      ends.push_back(text.size());
    }
    for (std::size_t most = 0; most <= text.size() + 1; ++most) {
      std::size_t fits = 0;
      for (const std::size_t end : ends) fits = end <= most ? end : fits;
      ASSERT_EQ(formatted(printed("{:.%zu}|", most), text), text.substr(0, fits) + "|");
    }
  }
}

TEST(Format, ControlCharactersAreReplaced) {
  for (std::uint32_t c = 0; c < 0x800; ++c) {
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    EXPECT_EQ(formatted("<{}>", "a" + utf8(c) + "b"), "<a" + (control ? "?" : utf8(c)) + "b>") << c;
    EXPECT_EQ(formatted("<{}>", utf8(c)), "<" + (control ? "?" : utf8(c)) + ">") << c;
  }
  EXPECT_EQ(formatted("{}", '\x1b'), "?");
  // Neither may become one beside the other.
  EXPECT_EQ(formatted("{}{}", "\xc2", "\x9b"), "??");
  // What the format itself says stays.
  EXPECT_EQ(formatted("a\n{}", "b"), "a\nb");
}

TEST(Format, AnOutputOfEverySize) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
  for (std::size_t room = 0; room <= text.size() + 3; ++room) {
    std::string out(text.size() + 8, '#');
    const std::size_t size = format_into(std::span(out).first(room), "{}", text);
    ASSERT_LE(size, room == 0 ? 0 : room - 1);
    EXPECT_EQ(out.substr(0, size), text.substr(0, size));
    EXPECT_TRUE(is_valid(out.substr(0, size)));
    std::string literal(20, '#');
    const std::size_t same = format_into(std::span(literal).first(room), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
    EXPECT_EQ(literal.substr(0, same), out.substr(0, size));
    if (room == 0) {
      EXPECT_EQ(out[0], '#');
    } else {
      EXPECT_EQ(out[size], 0);
      EXPECT_TRUE(size == text.size() || room - 1 - size < 4);
      EXPECT_EQ(out.substr(room), std::string(out.size() - room, '#'));
    }
  }
}

TEST(Format, AnyBytesMakeValidText) {
  Random random(4);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes, characters;
    const std::uint32_t length = random.below(40);
    for (std::uint32_t i = 0; i < length; ++i) {
      // Bytes of any kind, and those that begin and end the ranges of UTF-8.
      constexpr unsigned char kEdges[] = {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                                          0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0x1b, 0x00};
      bytes += random.below(2) != 0 ? static_cast<char>(random.below(256))
                                    : static_cast<char>(kEdges[random.below(std::size(kEdges))]);
      characters += random_character(random);
    }
    std::string expected;
    for (std::string_view left = bytes; !left.empty();) {
      const std::size_t size = valid_character(left);
      const std::string_view character = left.substr(0, size == 0 ? 1 : size);
      const bool control = static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f ||
                           (character.size() == 2 && character[0] == '\xc2' && character[1] < '\xa0');
      expected += size == 0 || control ? "?" : character;
      left.remove_prefix(character.size());
    }
    ASSERT_EQ(formatted("{}", bytes), expected);
    ASSERT_EQ(formatted("{}", characters), characters);
    const std::size_t room = random.below(60);
    std::string out(100, '#');
    const std::size_t size = format_into(std::span(out).first(room), "{}: {:.12}{}", characters, bytes, bytes);
    ASSERT_TRUE(is_valid(std::string_view(out).substr(0, size)));
    ASSERT_EQ(out.substr(room), std::string(100 - room, '#'));
  }
}

// Only literals reach it, and they are checked when they are compiled; but it ends for any.
TEST(Format, AnyFormatEnds) {
  Random random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string format;
    for (std::uint32_t i = random.below(12); i > 0; --i) format += "{}:.0x9f "[random.below(9)];
    std::string out(40, '#');
    const FormatValue values[] = {FormatValue(7u), FormatValue(-1.25), FormatValue("text")};
    constexpr FormatKinds kKinds = format_kinds<unsigned, double, const char*>();
    const std::size_t size = format_into(std::span(out).first(20), format, values, kKinds);
    ASSERT_LT(size, 20u);
    ASSERT_EQ(out.substr(20), std::string(20, '#'));
  }
}

}  // namespace
}  // namespace qsf
