// Guesses at tokens, against a search that compares every earlier occurrence by its whole length.
#include "run/guesser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  guesser.judge(text.size(), 2, false);
  EXPECT_EQ(count(), 3u);
  guesser.judge(text.size(), 3, true);
  EXPECT_EQ(count(), 6u);
  guesser.judge(text.size(), 6, true);
  EXPECT_EQ(count(), 8u) << "never more than at the beginning";
  guesser.judge(text.size(), 0, false);
  EXPECT_EQ(count(), 0u) << "two tokens in common are not enough any more";
  guesser.judge(text.size(), 1, true);
  EXPECT_EQ(count(), 2u);
  guesser.begin(8);
  EXPECT_EQ(count(), 8u) << "another text";
}

/// A text of whose tokens a source guesses each right with one chance, and its passes.
struct Rounds {
  double work = 0;  // of passes and guesses, in that of a pass without guesses
  std::size_t guesses = 0;
};

Rounds rounds(float cost, float told, double chance, std::size_t n_tokens) {
  test::Random random(11);
  Guesser guesser;
  guesser.begin(7, GuessSource::host, told);
  Rounds out;
  for (std::size_t n = 1; n < n_tokens; ++n) {
    const std::uint32_t guesses = guesser.wanted(GuessSource::host, n);
    out.work += 1 + double{cost} * guesses;
    out.guesses += guesses;
    std::uint32_t right = 0;
    while (right < guesses && random.below(1000) < chance * 1000) ++right;
    n += right;
    if (guesses != 0) guesser.judge(n + 1, right, right == guesses);
  }
  return out;
}

TEST(Guesser, RestsWhileGuessesCostMoreThanTheySave) {
  constexpr std::size_t kTokens = 20'000;
  for (const float cost : {0.05f, 0.2f, 0.4f}) {
    for (const double chance : {0.0, 0.02, 0.3, 0.6, 0.8}) {
      const double least = rounds(cost, cost, chance, kTokens).work / kTokens;
      EXPECT_LT(least, 1.02) << cost << " " << chance << ": about as much as without guesses, or less";
      if (chance < double{cost}) {
        EXPECT_LT(least, rounds(cost, 0, chance, kTokens).work / kTokens) << cost << " " << chance;
      } else if (chance > cost * 1.5) {
        // The number of guesses that takes the least work, of all constant ones (Leviathan et al. 2023).
        double best = 1;
        for (int n = 1; n <= 7; ++n) {
          const double tokens = (1 - std::pow(chance, n + 1)) / (1 - chance);
          best = std::min(best, (1 + n * double{cost}) / tokens);
        }
        EXPECT_LT(least, best * 1.15) << cost << " " << chance;
      }
    }
  }
  EXPECT_LT(rounds(0.2f, 0.2f, 0, kTokens).guesses, kTokens / 50);
}

// A text that becomes easy to guess is guessed again after the longest rest.
TEST(Guesser, TriesAgain) {
  Guesser guesser;
  guesser.begin(7, GuessSource::host, 0.3f);
  std::size_t n = 1;
  for (; n < 3000; ++n) {
    if (guesser.wanted(GuessSource::host, n) != 0) guesser.judge(n + 1, 0, false);
  }
  std::uint32_t right = 0;
  for (const std::size_t end = n + 600; n < end; ++n) {
    const std::uint32_t guesses = guesser.wanted(GuessSource::host, n);
    n += guesses;
    right += guesses;
    if (guesses != 0) guesser.judge(n + 1, guesses, true);
  }
  EXPECT_GT(right, 250u);
}

}  // namespace
}  // namespace qsf
