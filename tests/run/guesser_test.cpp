// Guesses at tokens, against counts of every earlier occurrence by itself.
#include "run/guesser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/seeded.h"

namespace qsf {
namespace {

using Tokens = std::vector<std::uint32_t>;

/// Returns the token with the most votes and the length of the longest occurrence; nothing if the last token is new.
/// Counts every earlier occurrence by itself, of at most 32 tokens.
std::optional<std::pair<std::uint32_t, std::size_t>> voted(const Tokens& text) {
  std::map<std::uint32_t, double> votes;
  std::size_t longest = 0;
  std::uint32_t best = 0;
  for (std::size_t end = text.size() - 1; end > 0; --end) {
    const Tokens before(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end));
    const auto [mine, theirs] = std::mismatch(before.rbegin(), before.rend(), text.rbegin());
    const std::size_t length = std::min<std::size_t>(static_cast<std::size_t>(mine - before.rbegin()), 32);
    if (length == 0) continue;
    longest = std::max(longest, length);
    double& of_token = votes[text[end]] += std::pow(8.0, length);
    if (of_token > votes[best]) best = text[end];
  }
  if (longest == 0) return {};
  return std::pair(best, longest);
}

TEST(Guesser, FollowsMostOfTheEarlierOccurrences) {
  test::Random random(7);
  int found = 0, none = 0, longer = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t letters = 2 + random.below(40);
    Tokens text(1 + random.below(60));
    for (std::uint32_t& token : text) token = random.below(letters);
    const std::size_t n_text = text.size();
    Guesser guesser;
    guesser.begin(15, GuessSource::text, {});
    Tokens room = text;
    room.resize(n_text + 1 + random.below(15), 99);
    const std::uint32_t n = guesser.guess(room, n_text);
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto next = voted(text);
      ASSERT_TRUE(next) << round;
      ASSERT_EQ(room[n_text + i], next->first) << round << ", guess " << i;
      longer += next->second > 1 ? 1 : 0;
      text.push_back(next->first);
    }
    ASSERT_EQ(n, n == 0 && !voted(text) ? 0 : room.size() - n_text) << round;
    ++(n == 0 ? none : found);
  }
  EXPECT_GT(found, 2000);
  EXPECT_GT(none, 200);
  EXPECT_GT(longer, 1000);
}

/// Passes over a text that is already known.
struct Passes {
  double work = 0;  // in that of a pass without guesses
  std::size_t n = 0, guesses = 0, right = 0;
};

Passes passes_over(const Tokens& text, std::size_t begin, float cost) {
  Guesser guesser;
  guesser.begin(7, GuessSource::text, {.each = cost});
  Passes out;
  for (std::size_t at = begin; at < text.size(); ++out.n) {
    Tokens room(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at));
    room.resize(std::min(at + 7, text.size() - 1));
    const std::uint32_t n = room.size() > at ? guesser.guess(room, at) : 0;
    std::uint32_t right = 0;
    while (right < n && room[at + right] == text[at + right]) ++right;
    if (n != 0) guesser.judge(at + right, right, right == n);
    out.work += 1 + double{cost} * n;
    out.guesses += n;
    out.right += right;
    at += right + 1;
  }
  return out;
}

TEST(Guesser, CopiesAndStopsWhatIsNotRight) {
  test::Random random(3);
  Tokens noise(600), copy(300);
  for (std::uint32_t& token : noise) token = random.below(300);
  for (std::uint32_t& token : copy) token = random.below(300);
  const std::size_t n_copied = copy.size();
  for (std::size_t i = 0; i < n_copied; ++i) copy.push_back(i % 20 == 7 ? random.below(300) : copy[i]);
  for (const float cost : {0.02f, 0.1f, 0.3f}) {
    const Passes of_noise = passes_over(noise, 10, cost);
    EXPECT_LT(of_noise.work, 590 * 1.02) << cost << ": a text without repetition costs next to nothing";
    const Passes of_copy = passes_over(copy, n_copied, cost);
    // The best constant number of guesses from the position that is copied, once two tokens agree with it.
    double best = 300;
    for (std::size_t n = 1; n <= 7; ++n) {
      double work = 2;
      for (std::size_t at = n_copied + 2; at < copy.size(); ++at) {
        ++work;
        if (copy[at - 1] != copy[at - n_copied - 1] || copy[at - 2] != copy[at - n_copied - 2]) continue;
        work += static_cast<double>(n) * double{cost};
        for (std::size_t i = 0; i < n && at < copy.size() && copy[at] == copy[at - n_copied]; ++i) ++at;
      }
      best = std::min(best, work);
    }
    EXPECT_LT(of_copy.work, best * 1.15) << cost << ": a copy with one change in twenty";
  }
}

// Each token is followed by one of four, as in prose: single tokens repeat, and one guess in four is right.
TEST(Guesser, GuessesProseIfThatCostsLittle) {
  test::Random random(5);
  Tokens prose{0};
  while (prose.size() < 3000) prose.push_back((prose.back() * 7 + random.below(4) * 31 + 1) % 100);
  const Passes cheap = passes_over(prose, 500, 0.03f);
  EXPECT_LT(cheap.work, 2500 * 0.9);
  const Passes dear = passes_over(prose, 500, 0.4f);
  EXPECT_LT(dear.work, 2500 * 1.02);
  EXPECT_LT(dear.guesses * 4, cheap.guesses);
}

// Text that begins to repeat itself after a long time is guessed again.
TEST(Guesser, TriesEachKindAgain) {
  test::Random random(9);
  Tokens text{0};
  // Each pair of tokens occurs again, with another token after it: guesses are wrong.
  for (std::uint32_t i = 0; i < 400; ++i) text.insert(text.end(), {1, 2, 10 + i});
  const std::size_t n_noise = text.size();
  for (std::uint32_t i = 0; i < 400; ++i) text.insert(text.end(), {1, 2, 3});
  EXPECT_LT(passes_over({text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_noise)}, 30, 0.2f).work, n_noise);
  const Passes again = passes_over(text, n_noise, 0.2f);
  EXPECT_LT(again.work, 1200 * 0.5);
}

TEST(Guesser, CountsTheSecondPassOfARightGuess) {
  const auto count = [](GuessCost cost) {
    GuessGain gain;
    std::uint32_t n = 0;
    while (n < 15 && gain.add(0.8f, cost)) ++n;
    return n;
  };
  // The number for which work over tokens is least, by the closed form of the sums.
  const auto best = [](double each, double right) {
    double least = 1;
    std::uint32_t at = 0;
    for (std::uint32_t n = 1; n <= 15; ++n) {
      const double of_right = (1 - std::pow(0.8, n)) / 0.2 * 0.8;
      const double work = (1 + n * each + of_right * right) / (1 + of_right);
      if (work < least) least = work, at = n;
    }
    return at;
  };
  for (const float each : {0.01f, 0.05f, 0.1f, 0.3f, 0.7f}) {
    for (const float right : {0.0f, 0.1f, 0.3f}) {
      EXPECT_EQ(count({each, right}), best(double{each}, double{right})) << each << " " << right;
    }
  }
  EXPECT_GT(count({0.1f, 0}), count({0.1f, 0.3f}));
}

/// A text of whose tokens a source guesses each right with one chance, and its passes.
struct Rounds {
  double work = 0;  // of passes and guesses, in that of a pass without guesses
  std::size_t guesses = 0;
};

Rounds rounds(float cost, float told, double chance, std::size_t n_tokens) {
  test::Random random(11);
  Guesser guesser;
  guesser.begin(7, GuessSource::host, {.each = told});
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
  guesser.begin(7, GuessSource::host, {.each = 0.3f});
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
