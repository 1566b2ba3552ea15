#include "text/text_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

/// What comes out when `bytes` are pushed in pieces of the given sizes, over and over.
std::string through(std::string_view bytes, std::initializer_list<std::size_t> sizes,
                    std::span<const std::string_view> stops = {}) {
  TextStream stream;
  EXPECT_TRUE(stream.begin(stops));
  std::string text;
  auto size = sizes.begin();
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, *size);
    text += stream.push(piece);
    bytes.remove_prefix(piece.size());
    if (++size == sizes.end()) size = sizes.begin();
  }
  text += stream.finish();
  return text;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(TextStream, MaximalSubpartsOfTheUnicodeStandard) {
  // The Unicode Standard 15.0, tables 3-8 to 3-11.
  const std::string r = "\uFFFD", r4 = r + r + r + r, r8 = r4 + r4;
  for (const std::size_t size : {1u, 2u, 3u, 100u}) {
    EXPECT_EQ(through("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", {size}), r8 + "A");
    EXPECT_EQ(through("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", {size}), r8 + "A");
    EXPECT_EQ(through("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", {size}), r4 + r + "A" + r + r + "B");
    EXPECT_EQ(through("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", {size}), r4 + "A");
  }
}

TEST(TextStream, AsPythonDecodes) {
  for (const nlohmann::json& vector : nlohmann::json::parse(read_file(source_dir() + "/tests/text/data/utf8.json"))) {
    const std::string bytes = from_hex(vector[0]), text = vector[1];
    EXPECT_EQ(through(bytes, {1}), text) << vector[0];
    EXPECT_EQ(through(bytes, {2, 3, 1}), text) << vector[0];
    EXPECT_EQ(through(bytes, {1000}), text) << vector[0];
  }
}

TEST(TextStream, CharactersComeWhole) {
  TextStream stream;
  ASSERT_TRUE(stream.begin({}));
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push("\x80z\xE4\xBD"), "\xF0\x9F\x98\x80z");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, HoldsBackNoMoreThanMayBecomeAStop) {
  TextStream stream;
  const std::string_view stops[]{"\nUser:", "END"};
  ASSERT_TRUE(stream.begin(stops));
  EXPECT_EQ(stream.push("Hi\nUs"), "Hi");
  EXPECT_EQ(stream.push("e"), "");
  EXPECT_EQ(stream.push("ful E"), "\nUseful ");
  EXPECT_EQ(stream.push("EN"), "E");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push("D of it"), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
  ASSERT_TRUE(stream.begin(stops));
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push("a\nUser"), "a");
  EXPECT_EQ(stream.finish(), "\nUser");
}

/// The same by definition: the first place where a stop string ends, the longest that ends there.
struct Reference {
  std::string_view stops[3];

  std::string shown(const std::string& text, bool at_end) const {
    for (std::size_t end = 1; end <= text.size(); ++end) {
      std::size_t longest = 0;
      for (const std::string_view stop : stops) {
        if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      if (longest > 0) return text.substr(0, end - longest);
    }
    std::size_t held = 0;
    for (std::size_t n = 1; n <= text.size() && !at_end; ++n) {
      for (const std::string_view stop : stops) {
        if (n < stop.size() && stop.starts_with(text.substr(text.size() - n))) held = n;
      }
    }
    return text.substr(0, text.size() - held);
  }
};

TEST(TextStream, RandomTextsStopsAndPieces) {
  std::mt19937 random(4);
  const auto word = [&](std::size_t most) {
    std::string text;
    for (std::size_t n = 1 + random() % most; n > 0; --n) text += "ab"[random() % 2];
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string a = word(5), b = word(4), c = word(7), text = word(30);
    const Reference reference{{a, b, c}};
    TextStream stream;
    ASSERT_TRUE(stream.begin(reference.stops));
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(random() % 4, text.size() - at);
      shown += stream.push(text.substr(at, size));
      at += size;
      ASSERT_EQ(shown, reference.shown(text.substr(0, at), false)) << text << " | " << a << " " << b << " " << c;
    }
    shown += stream.finish();
    ASSERT_EQ(shown, reference.shown(text, true)) << text;
    stopped += stream.stopped() ? 1 : 0;
  }
  EXPECT_GT(stopped, 1000);
  EXPECT_LT(stopped, 3000);
}

TEST(TextStream, LongestStopsAndTokens) {
  const std::string stop(TextStream::kMaxStopBytes, 'x');
  const std::string_view stops[]{stop};
  TextStream stream;
  ASSERT_TRUE(stream.begin(stops));
  EXPECT_EQ(stream.push(stop.substr(1)), "");
  const std::string bad(TextStream::kMaxTokenBytes, '\xFF');
  const std::string_view shown = stream.push(bad);
  EXPECT_EQ(shown.size(), stop.size() - 1 + 3 * bad.size());
  EXPECT_TRUE(shown.ends_with("\uFFFD\uFFFD"));
  EXPECT_EQ(stream.push(stop), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, ABeginForgetsAnEarlierText) {
  TextStream stream;
  ASSERT_TRUE(stream.begin({}));
  EXPECT_EQ(stream.push("\xC3"), "");
  ASSERT_TRUE(stream.begin({}));
  EXPECT_EQ(stream.push("a"), "a");
}

TEST(TextStream, StopsAreChecked) {
  TextStream stream;
  const std::string long_stop(TextStream::kMaxStopBytes + 1, 'x');
  const std::vector<std::string_view> many(TextStream::kMaxStops + 1, "x");
  EXPECT_EQ(error_of(stream.begin(many)).code, ErrorCode::bad_argument);
  const std::string_view empty[]{"a", ""};
  EXPECT_STREQ(error_of(stream.begin(empty)).sentence, "stops: stop string 1 has 0 bytes; 1 to 64 are possible");
  const std::string_view too_long[]{long_stop};
  EXPECT_EQ(error_of(stream.begin(too_long)).code, ErrorCode::bad_argument);
  EXPECT_TRUE(stream.begin(std::span(many).first(TextStream::kMaxStops)));
}

}  // namespace
}  // namespace qsf::test
