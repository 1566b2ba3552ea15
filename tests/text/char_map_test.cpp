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
#include "text/normalizer.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kUnits = 2048;

/// Keys set one after the other; no two places may meet.
struct Trie {
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(kUnits);
  std::string texts;

  void add(const std::vector<std::pair<std::string, std::string>>& keys) {
    // Node n's children lie at n ^ byte; a node's offset is chosen so that n = place ^ offset is a multiple of 256.
    std::vector<std::string> prefixes{""};
    units[0] = 256u << 10;  // the root's node is 256
    const auto node_of = [&](const std::string& prefix) {
      std::uint32_t n = 1;
      for (; prefixes[n - 1] != prefix; ++n) {
      }
      return n * 256;
    };
    for (const auto& [key, text] : keys) {
      for (std::size_t i = 1; i <= key.size(); ++i) {
        const std::string prefix = key.substr(0, i);
        const std::uint32_t parent = node_of(key.substr(0, i - 1));
        const std::uint32_t place = parent ^ static_cast<std::uint8_t>(key[i - 1]);
        bool known = false;
        for (const std::string& each : prefixes) known = known || each == prefix;
        if (!known) {
          prefixes.push_back(prefix);
          units[place] = static_cast<std::uint8_t>(key[i - 1]) | (place ^ node_of(prefix)) << 10;
        }
        if (i < key.size()) continue;
        units[place] |= 1u << 8;
        units[node_of(prefix)] = 0x80000000u | static_cast<std::uint32_t>(texts.size());
        texts += text + '\0';
      }
    }
  }
  std::string map() const {
    std::string out(sizeof(std::uint32_t) * (1 + units.size()), '\0');
    const auto size = static_cast<std::uint32_t>(sizeof(std::uint32_t) * units.size());
    std::memcpy(out.data(), &size, sizeof size);
    std::memcpy(out.data() + sizeof size, units.data(), size);
    return out + texts;
  }
};

std::string step_of(const std::string& map) {
  std::string step;
  for (const std::size_t number : {std::size_t{12}, map.size() >> 16, std::size_t{0}, map.size() & 0xffff}) {
    step.push_back(static_cast<char>(number & 255));
    step.push_back(static_cast<char>(number >> 8));
  }
  return step + map;
}
Status check(const std::string& map) {
  const std::string step = step_of(map);
  return check_normalizer(std::as_bytes(std::span(step)));
}

std::string normal(const std::string& map, const std::string& text) {
  const std::string step = step_of(map);
  Normalizer normalizer(std::as_bytes(std::span(step)), text);
  std::string out;
  std::array<char, 4> bytes{};
  for (char32_t c = 0; normalizer.next(c);) out.append(bytes.data(), utf8::encode(c, bytes.data()));
  return out;
}

std::string small_map() {
  Trie trie;
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
}

TEST(CharMap, DamageIsRefusedOrHarmless) {
  const std::string map = small_map();
  for (const std::string& bad : {std::string(), std::string("map"), map.substr(0, 8), map.substr(0, map.size() - 1),
                                 map + "\x80" + '\0', map + std::string(1025, 'x') + '\0'}) {
    const Status status = check(bad);
    ASSERT_FALSE(status) << bad.size();
    EXPECT_EQ(status.error().code, ErrorCode::bad_tokenizer);
  }
  for (const std::uint32_t size : {0u, 2u, 6u, 0x80000000u, 0xfffffffcu}) {
    std::string bad = map;
    std::memcpy(bad.data(), &size, sizeof size);
    EXPECT_FALSE(check(bad)) << size;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = map;
    for (int k = 0; k < 3; ++k) bad[4 + random() % (4 * kUnits)] = static_cast<char>(random());
    ASSERT_TRUE(check(bad));
    const std::string text = normal(bad, "abc \u00e9aab");
    EXPECT_EQ(utf8::valid_prefix(text), text.size());
  }
}

}  // namespace
}  // namespace qsf::test
