// Guesses at tokens, against a search that compares every earlier occurrence by its whole length.
#include "run/guesser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/support/seeded.h"

namespace qsf {
namespace {

using Tokens = std::vector<std::uint32_t>;

/// Returns the end of the last of the longest occurrences, of `least` to `most` tokens, before the end of the text.
std::optional<std::size_t> occurrence(const Tokens& text, std::size_t least, std::size_t most) {
  for (std::size_t length = most; length >= least; --length) {
    if (length >= text.size()) continue;
    const auto end = text.end() - 1;  // an occurrence ends before the last token does
    const auto found = std::find_end(text.begin(), end, text.end() - static_cast<std::ptrdiff_t>(length), text.end());
    if (found != end) return static_cast<std::size_t>(found - text.begin()) + length;
  }
  return {};
}

TEST(Guesser, FollowsTheLongestEarlierOccurrence) {
  test::Random random(7);
  int found = 0, none = 0, periodic = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t letters = 2 + random.below(9);
    Tokens text(1 + random.below(60));
    for (std::uint32_t& token : text) token = random.below(letters);
    Guesser guesser;
    guesser.begin(15);
    Tokens out(1 + random.below(15), 99);
    const std::uint32_t n = guesser.guess(text, out);
    const auto end = occurrence(text, 2, 32);
    ASSERT_EQ(n, end ? out.size() : 0) << round;
    if (!end) {
      ++none;
      continue;
    }
    ++found;
    if (text.size() - *end < out.size()) ++periodic;
    Tokens longer = text;
    for (std::size_t i = 0; i < n; ++i) longer.push_back(longer[*end + i]);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), longer.end() - n)) << round;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 500);
  EXPECT_GT(periodic, 100);
}

TEST(Guesser, GuessesAsManyAsWereRight) {
  const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2};
  Guesser guesser;
  Tokens out(15);
  const auto count = [&] { return guesser.guess(text, out); };
  EXPECT_EQ(count(), 0u) << "before it begins";
  guesser.begin(8);
  EXPECT_EQ(count(), 8u);
  guesser.judge(2, false);
  EXPECT_EQ(count(), 3u);
  guesser.judge(3, true);
  EXPECT_EQ(count(), 6u);
  guesser.judge(6, true);
  EXPECT_EQ(count(), 8u) << "never more than at the beginning";
  guesser.judge(0, false);
  EXPECT_EQ(count(), 0u) << "two tokens in common are not enough any more";
  guesser.judge(1, true);
  EXPECT_EQ(count(), 2u);
  guesser.begin(8);
  EXPECT_EQ(count(), 8u) << "another text";
}

}  // namespace
}  // namespace qsf
