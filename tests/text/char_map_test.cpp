// SentencePiece's character maps: a trie written by hand, and damage to it.
#include "text/char_map.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/base/utf8.h"
#include "tests/support/error_of.h"
#include "text/char_maps.h"
#include "text/normalizer.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kUnits = 2048;

std::string step_of(const std::string& map, std::size_t op = 12) {
  std::string step;
  for (const std::size_t number : {op, map.size() >> 16, std::size_t{0}, map.size() & 0xffff}) {
    step.push_back(static_cast<char>(number & 255));
    step.push_back(static_cast<char>(number >> 8));
  }
  return step + map;
}
Status check(const std::string& map) {
  const std::string step = step_of(map);
  return check_normalizer(std::as_bytes(std::span(step)));
}

std::string normal(const std::string& map, const std::string& text, std::size_t op = 12) {
  const std::string step = step_of(map, op);
  TextWork work(text.size());
  Normalizer normalizer(std::as_bytes(std::span(step)), text, work);
  std::string out;
  std::array<char, 4> bytes{};
  for (char32_t c = 0; normalizer.next(c);) out.append(bytes.data(), utf8::encode(c, bytes.data()));
  return out;
}

std::string small_map() {
  Trie trie(kUnits);
  trie.add({{"a", "xy"}, {"ab", ""}, {"abc", "\u00e9"}, {"\u00e9", "e"}});
  return trie.map();
}

TEST(CharMap, TheLongestKeyHolds) {
  const std::string map = small_map();
  ASSERT_TRUE(check(map));
  EXPECT_EQ(normal(map, ""), "");
  EXPECT_EQ(normal(map, "a"), "xy");
  EXPECT_EQ(normal(map, "ab"), "");
  EXPECT_EQ(normal(map, "abab"), "");
  EXPECT_EQ(normal(map, "abc abd"), "\u00e9 d");  // what came out is not looked at again
  EXPECT_EQ(normal(map, "aab b\u00e9\u00e8\u2603"), "xy be\u00e8\u2603");
  // A node's value is at the byte 0, which is in no key.
  EXPECT_EQ(normal(map, std::string("\0a\0\0ab", 6)), std::string("\0xy\0\0", 5));
}

/// The texts and normal forms are those of Hugging Face's library for the same keys.
TEST(CharMap, ClustersAreReplacedAsAWhole) {
  Trie trie(kUnits);
  trie.add({{"x", "Y"}, {"e\u0301", "\u00e9"}, {"\u0301", "'"}});
  const std::string map = trie.map();
  const auto clusters = [&](const std::string& text) { return normal(map, text, 13); };
  EXPECT_EQ(clusters("xe\u0301"), "Y\u00e9");
  EXPECT_EQ(clusters("e\u0301\u0302"), "\u00e9");    // five bytes; the second mark is lost
  EXPECT_EQ(clusters("e\u0301\u20dd"), "e'\u20dd");  // six bytes, character by character
  EXPECT_EQ(clusters("x\u200d"), "Y");               // a joiner is a mark
  EXPECT_EQ(clusters("\u0600e\u0301"), "\u0600e'");  // a prefix begins the cluster
  EXPECT_EQ(clusters("\t\u0301x"), "\t'Y");          // a control ends it
  EXPECT_EQ(clusters("\r\nx\U0001F3FB"), "\r\nY");
  EXPECT_EQ(clusters("xx\u0301\u0301 \u0301"), "YY '");
}

/// A carriage return and the line feed after it are a cluster; two of either are two.
TEST(CharMap, ALineBreakOfTwoCharactersIsACluster) {
  Trie trie(kUnits);
  trie.add({{"\r", "R"}, {"\n", "N"}});
  const std::string map = trie.map();
  EXPECT_EQ(normal(map, "\r\n", 13), "R");
  EXPECT_EQ(normal(map, "\n\r", 13), "NR");
  EXPECT_EQ(normal(map, "\r\r\n\n", 13), "RRN");
  EXPECT_EQ(normal(map, "\r\n", 12), "RN") << "characters";
}

TEST(CharMap, DamageIsRefusedOrHarmless) {
  const std::string map = small_map();
  for (const std::string& wrong : {std::string(), std::string("map"), map.substr(0, 8), map.substr(0, map.size() - 1),
                                   map + "\x80" + '\0', map + std::string(1025, 'x') + '\0'}) {
    const Status status = check(wrong);
    ASSERT_FALSE(status) << wrong.size();
    EXPECT_EQ(error_of(status).code, ErrorCode::bad_tokenizer);
  }
  for (const std::uint32_t size : {0u, 2u, 6u, 0x80000000u, 0xfffffffcu}) {
    std::string wrong = map;
    std::memcpy(wrong.data(), &size, sizeof size);
    EXPECT_FALSE(check(wrong)) << size;
  }
  // A value that points into a character is none: the longest of the other keys holds.
  std::string bad = map;
  const std::uint32_t value = 0x80000004u, inside = 0x80000005u;
  const std::string_view bytes(reinterpret_cast<const char*>(&value), sizeof value);
  const std::size_t at = bad.find(bytes);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(normal(bad, "abc"), "\u00e9");
  std::memcpy(bad.data() + at, &inside, sizeof inside);
  ASSERT_TRUE(check(bad));
  EXPECT_EQ(normal(bad, "abc"), "c");
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    bad = map;
    for (int k = 0; k < 3; ++k) bad[4 + random() % (4 * kUnits)] = static_cast<char>(random());
    ASSERT_TRUE(check(bad));
    for (const std::size_t op : {12u, 13u}) {
      const std::string text = normal(bad, "abc \u00e9aab", op);
      EXPECT_EQ(utf8::valid_prefix(text), text.size());
    }
  }
}

}  // namespace
}  // namespace qsf::test
