#include "threads/thread_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace qsf {
namespace {

/// Seconds that a token takes with so many threads.
using Machine = double (*)(std::uint32_t threads);

double idle(std::uint32_t threads) { return 1.0 / threads; }
/// The last of `cores` is taken by somebody else for most of the time: who has a part there is waited for.
template <std::uint32_t cores>
double one_busy(std::uint32_t threads) {
  return threads < cores ? 1.0 / threads : 3.0 / threads;
}

/// What `tokens` take, each up to a fifth more or less.
double run(ThreadChoice& choice, Machine machine, int tokens, std::mt19937& random) {
  std::uniform_real_distribution<double> noise(0.8, 1.2);
  double sum = 0;
  for (int i = 0; i < tokens; ++i) {
    const double seconds = machine(choice.threads()) * noise(random);
    choice.took(seconds);
    sum += seconds;
  }
  return sum;
}

TEST(ThreadChoice, BeginsWithAllAndStaysThereWhereAllAreFastest) {
  std::mt19937 random(1);
  for (const std::uint32_t most : {1u, 2u, 3u, 4u, 8u, 64u}) {
    ThreadChoice choice(most);
    EXPECT_EQ(choice.threads(), most);
    const double taken = run(choice, idle, 2000, random);
    EXPECT_LT(taken, 1.05 * 2000 * idle(most)) << most << " threads: trials cost this much";
  }
}

TEST(ThreadChoice, LeavesABusyCoreAndComesBack) {
  std::mt19937 random(2);
  ThreadChoice two(2), eight(8);
  run(two, idle, 1000, random);
  run(two, one_busy<2>, 100, random);
  EXPECT_LT(run(two, one_busy<2>, 1000, random), 1.05 * 1000 * one_busy<2>(1));
  run(two, idle, 600, random);
  EXPECT_LT(run(two, idle, 1000, random), 1.05 * 1000 * idle(2));

  run(eight, one_busy<8>, 100, random);
  EXPECT_LT(run(eight, one_busy<8>, 1000, random), 1.05 * 1000 * one_busy<8>(7));
}

TEST(ThreadChoice, FindsTheFewestWhereThreadsOnlyDisturb) {
  std::mt19937 random(3);
  const Machine worse = [](std::uint32_t threads) { return 1.0 + 0.5 * (threads - 1); };
  ThreadChoice choice(16);
  run(choice, worse, 400, random);
  EXPECT_EQ(choice.threads(), 1u);
}

// On two shared cores a second thread can cost a fifth, and each sixth token or so waits for other programs.
TEST(ThreadChoice, FindsASmallGainOnANoisyMachine) {
  constexpr int kMachines = 100;
  int found = 0;
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0.9, 1.1), share(0, 1);
    ThreadChoice choice(2);
    int ones = 0;
    for (int token = 0; token < 300; ++token) {
      const bool one = choice.threads() == 1;
      if (token >= 150 && one) ++ones;
      const double wait = share(random) < 0.16 ? 1 + 3 * share(random) : 1;
      choice.took((one ? 0.82 : 1.0) * wait * noise(random));
    }
    found += ones > 100 ? 1 : 0;
  }
  EXPECT_GE(found, 90) << "of " << kMachines;
}

/// Machines on which one thread takes `one` times the time of several, each with noise of a tenth.
template <class Visit>
void on_noisy_machines(std::uint32_t most, double one, const Visit& visit) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0.9, 1.1);
    ThreadChoice choice(most);
    const auto token = [&] {
      const double seconds = (choice.threads() == 1 ? one : 1.0) * noise(random);
      choice.took(seconds);
      return seconds;
    };
    visit(choice, token);
  }
}

TEST(ThreadChoice, TakesTheFewestOfThoseThatAreAsFast) {
  for (const std::uint32_t most : {2u, 4u, 8u}) {
    int ones = 0;
    on_noisy_machines(most, 1.0, [&](ThreadChoice& choice, const auto& token) {
      for (int i = 0; i < 800; ++i) {
        token();
        ones += i >= 400 && choice.threads() == 1 ? 1 : 0;
      }
    });
    EXPECT_GT(ones, 0.8 * 40000) << "of 40,000 tokens with up to " << most << " threads";
  }
}

// A text of 64 tokens is usual: most of it must have the gain.
TEST(ThreadChoice, FindsTheGainSoonEnoughForAShortText) {
  struct Case {
    double one, mean;
  };
  for (const Case& c : {Case{0.89, 0.915}, {0.82, 0.85}, {0.75, 0.78}}) {
    double sum = 0;
    on_noisy_machines(2, c.one, [&](ThreadChoice&, const auto& token) {
      for (int i = 0; i < 64; ++i) sum += token();
    });
    EXPECT_LT(sum / 6400, c.mean) << "one thread takes " << c.one << " of the time of two";
  }
}

// The times of tokens grow with their context. That is not the change after which a trial comes soon.
TEST(ThreadChoice, TriesSeldomWhileTokensBecomeSlow) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  ThreadChoice choice(2);
  int tried = 0;
  for (int token = 0; token < 4000; ++token) {
    if (choice.threads() == 1) ++tried;
    choice.took((1 + token / 1000.0) * (choice.threads() == 1 ? 2 : 1) * noise(random));
  }
  EXPECT_LT(tried, 100);
}

// A machine whose other programs end has faster tokens with one thread, too: the trial comes before its turn.
TEST(ThreadChoice, TriesSoonAfterTokensBecomeFaster) {
  std::mt19937 random(6);
  ThreadChoice choice(2);
  const Machine busy = [](std::uint32_t threads) { return threads == 1 ? 2.0 : 3.0; };
  run(choice, busy, 4000, random);
  ASSERT_EQ(choice.threads(), 1u);
  run(choice, idle, 60, random);
  EXPECT_EQ(choice.threads(), 2u);
}

// The system gives a thread that has slept the processor of a busy program for some tokens: two threads are fast in a
// trial and slow afterwards.
TEST(ThreadChoice, LeavesANumberThatIsFastInTrialsOnly) {
  constexpr int kMachines = 100;
  for (const int tokens : {64, 1000}) {
    double sum = 0;
    for (unsigned seed = 0; seed < kMachines; ++seed) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> noise(0.9, 1.1);
      ThreadChoice choice(2);
      int favoured = 0;  // tokens
      for (int token = 0; token < tokens; ++token) {
        const bool one = choice.threads() == 1;
        const double seconds = (one ? 1.0 : favoured > 0 ? 0.85 : 1.65) * noise(random);
        favoured = std::clamp(favoured + (one ? 1 : -1), 0, 12);
        choice.took(seconds);
        sum += seconds;
      }
    }
    EXPECT_LT(sum / kMachines / tokens, tokens == 64 ? 1.06 : 1.02) << tokens << " tokens; one thread takes 1";
  }
}

}  // namespace
}  // namespace qsf
