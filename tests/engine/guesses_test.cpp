// Guessed tokens: text, logits and their order are those of one token at a time, for every shape of model.
#include <array>
#include <functional>

#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"
#include "tests/support/saved.h"

namespace qsf::test {
namespace {

/// A prompt that repeats itself, so that guesses are found at once.
std::vector<std::uint32_t> repeating(std::uint32_t vocab) {
  std::vector<std::uint32_t> ids = some_tokens(9, vocab);
  const std::vector<std::uint32_t> once = ids;
  ids.insert(ids.end(), once.begin(), once.end());
  return ids;
}

OpenOptions guessing(std::uint32_t guesses) {
  OpenOptions options;
  options.guesses = guesses;
  return options;
}

std::array<Prompt, 3> prompts(std::span<const std::uint32_t> ids) {
  const Prompt greedy = test::greedy(ids, 40);
  Prompt sampled = greedy, loose = greedy;
  sampled.sampler = {.temperature = 0.4f, .top_k = 5, .seed = 3};
  sampled.sampler.repetition_penalty = 1.05f;
  loose.sampler = {.temperature = 2, .top_k = 0, .top_p = 1, .seed = 11};
  return {greedy, sampled, loose};
}

TEST(Guesses, ChangeNoBit) {
  std::uint32_t right = 0, wrong = 0;
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = repeating(40);
    Host alone(file.bytes, 8 * kMiB, {});
    std::uint32_t guessed = 0;
    for (const std::uint32_t guesses : {1u, 4u, 15u}) {
      for (const std::uint32_t chunk : {0u, 3u}) {
        OpenOptions options = guessing(guesses);
        options.chunk = chunk;
        options.stream_all = chunk == 3;
        Host host(file.bytes, 8 * kMiB, options);
        EXPECT_NE(host.session->stats().guesses, 0u) << variant.name;
        for (const Prompt& prompt : prompts(ids)) {
          ASSERT_TRUE(alone.session->rewind(0));
          ASSERT_TRUE(host.session->rewind(0));
          const Generation expected = alone.generate(prompt), run = host.generate(prompt);
          EXPECT_EQ(run.tokens, expected.tokens) << variant.name << guesses << " " << chunk;
          EXPECT_EQ(run.hash, expected.hash) << variant.name << guesses << " " << chunk;
          EXPECT_EQ(run.text, expected.text) << variant.name << guesses << " " << chunk;
          const SequenceStats stats = host.session->sequence_stats(), plain = alone.session->sequence_stats();
          EXPECT_EQ(stats.position, plain.position) << variant.name << guesses << " " << chunk;
          EXPECT_EQ(stats.generated_tokens, plain.generated_tokens);
          EXPECT_EQ(plain.guessed_tokens, 0u);
          EXPECT_LE(stats.right_tokens, stats.guessed_tokens);
          guessed += stats.guessed_tokens;
          right += stats.right_tokens;
          wrong += stats.guessed_tokens - stats.right_tokens;
          const auto last = host.session->logits(), last_alone = alone.session->logits();
          EXPECT_TRUE(std::ranges::equal(last, last_alone)) << variant.name << guesses << " " << chunk;
        }
      }
    }
    EXPECT_NE(guessed, 0u) << variant.name;
  }
  EXPECT_GT(right, 1000u);
  EXPECT_GT(wrong, 1000u);
}

// A right guess saves a pass, which for streamed weights is a reading of all of them.
TEST(Guesses, SaveReading) {
  SmallOptions shape;
  shape.n_layers = 4;
  const SmallFile file = small_file(shape);
  const auto ids = repeating(40);
  std::array<std::uint64_t, 2> read{};
  std::uint64_t one_pass = 0;
  std::uint32_t right = 0;
  for (const bool guesses : {false, true}) {
    OpenOptions options = guessing(guesses ? 7 : 0);
    options.stream_all = true;
    Host host(file.bytes, 8 * kMiB, options);
    const std::uint64_t before = host.session->stats().bytes_read;
    (void)host.generate(greedy(ids, 60));
    read[guesses ? 1 : 0] = host.session->stats().bytes_read - before;
    right = host.session->sequence_stats().right_tokens;
    one_pass = host.session->stats().token_bytes;
  }
  ASSERT_GT(right, 20u);
  EXPECT_EQ(read[0] - read[1], right * one_pass);
}

// Whatever ends a generation while guesses are left, the sequence continues as one without guesses does, also after it
// was saved.
TEST(Guesses, AreForgottenAtEveryEnd) {
  enum class Way : std::uint8_t { stopped, ended, rewound, saved };
  for (const Named& variant : memories()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = repeating(40);
    for (std::size_t stop = 1; stop < 16; ++stop) {
      for (const Way way : {Way::stopped, Way::ended, Way::rewound, Way::saved}) {
        std::array<Generation, 2> after;
        for (const bool guesses : {false, true}) {
          Host host(file.bytes, 8 * kMiB, guessing(guesses ? 15 : 0)), other(file.bytes, 8 * kMiB, {});
          std::size_t n = 0;
          host.stop_when = [&] {
            return way != Way::ended && host.session->sequence_stats().generated_tokens == stop && ++n == 1;
          };
          (void)host.generate(greedy(ids, way == Way::ended ? static_cast<std::uint32_t>(stop) : 40));
          host.stop_when = nullptr;
          if (way != Way::ended) host.session->stop();
          ASSERT_EQ(host.session->tokens().size(), ids.size() + stop);
          if (way == Way::rewound) {
            ASSERT_TRUE(host.session->rewind(static_cast<std::uint32_t>(ids.size() + stop / 2)));
          }
          if (way == Way::saved) {
            const Result<std::vector<std::byte>> bytes = saved(*host.session);
            ASSERT_TRUE(bytes);
            ASSERT_TRUE(restored(*other.session, *bytes));
          }
          const std::uint32_t more[] = {3, 1, 4};
          after[guesses ? 1 : 0] = (way == Way::saved ? other : host).generate(greedy(more, 12));
        }
        EXPECT_EQ(after[0].tokens, after[1].tokens) << variant.name << " " << stop << static_cast<int>(way);
        EXPECT_EQ(after[0].hash, after[1].hash) << variant.name << " " << stop << static_cast<int>(way);
      }
    }
  }
}

// The host chooses the tokens that are allowed after each one, also those after a guess.
TEST(Guesses, FollowTheHostsSets) {
  const SmallFile file = small_file();
  const auto ids = repeating(40);
  std::array<std::vector<std::uint32_t>, 2> tokens;
  std::uint32_t right = 0;
  for (const bool guesses : {false, true}) {
    Host host(file.bytes, 8 * kMiB, guessing(guesses ? 7 : 0));
    std::uint64_t allowed = 0b1111;
    Prompt prompt = greedy(ids, 45);
    prompt.allowed = std::span(&allowed, 1);
    std::uint32_t seen = 0;
    host.stop_when = [&] {
      const std::uint32_t n = host.session->sequence_stats().generated_tokens;
      if (n != seen) allowed = std::uint64_t{0b1111} << 4 * (n / 9 % 3);
      seen = n;
      return false;
    };
    tokens[guesses ? 1 : 0] = host.generate(prompt).tokens;
    right = host.session->sequence_stats().right_tokens;
  }
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_EQ(tokens[1].size(), 45u);
  for (std::size_t i = 0; i < tokens[1].size(); ++i) EXPECT_EQ(tokens[1][i] / 4, i / 9 % 3) << i;
  EXPECT_GT(right, 5u);
}

TEST(Guesses, EndWithTheContext) {
  const SmallFile file = small_file();
  const auto ids = repeating(40);
  for (std::uint32_t context = 19; context < 40; ++context) {
    std::array<Generation, 2> runs;
    for (const bool guesses : {false, true}) {
      OpenOptions options = guessing(guesses ? 15 : 0);
      options.max_seq_len = context;
      Host host(file.bytes, 8 * kMiB, options);
      runs[guesses ? 1 : 0] = host.generate(greedy(ids, 100));
      EXPECT_EQ(host.session->end(), End::context);
    }
    EXPECT_EQ(runs[0].tokens, runs[1].tokens) << context;
    EXPECT_EQ(runs[0].hash, runs[1].hash) << context;
  }
}

/// Guesses a text that is known: `change` makes what is given of a token that is the i-th guess of its pass. Keeps the
/// numbers that were wanted.
struct Giver {
  Giver(Host& to, const std::vector<std::uint32_t>& text,
        std::function<std::uint32_t(std::uint32_t, std::uint32_t)> how)
      : host(to), known(text), change(std::move(how)) {
    host.stop_when = [this] {
      give();
      return false;
    };
  }
  Giver(const Giver&) = delete;
  Giver& operator=(const Giver&) = delete;
  ~Giver() { host.stop_when = nullptr; }

  void give() {
    const std::uint32_t n = host.session->sequence_stats().generated_tokens, most = host.session->guesses_wanted();
    if (most == 0 || n == given_at) return;
    given_at = n;
    wanted.push_back(most);
    std::vector<std::uint32_t> guesses;
    for (std::uint32_t i = 0; i < kMostGuesses && n + i < known.size(); ++i) guesses.push_back(change(known[n + i], i));
    host.session->guess(guesses);
  }

  Host& host;
  const std::vector<std::uint32_t>& known;
  std::function<std::uint32_t(std::uint32_t, std::uint32_t)> change;
  std::vector<std::uint32_t> wanted;
  std::uint32_t given_at = 0;
};

OpenOptions taking(std::uint32_t guesses) {
  OpenOptions options = guessing(guesses);
  options.guess_source = GuessSource::host;
  return options;
}

// Whatever a host guesses, tokens and logits are those of one token at a time.
TEST(GivenGuesses, ChangeNoBit) {
  const std::function<std::uint32_t(std::uint32_t, std::uint32_t)> ways[] = {
      [](std::uint32_t token, std::uint32_t) { return token; },
      [](std::uint32_t token, std::uint32_t) { return (token + 1) % 40; },
      [](std::uint32_t token, std::uint32_t i) { return (token + i % 2) % 40; },
      [](std::uint32_t token, std::uint32_t i) { return i < 2 ? token : ~token; },
  };
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = some_tokens(9, 40);
    OpenOptions options = taking(7);
    options.stream_all = true;
    Host alone(file.bytes, 8 * kMiB, {}), host(file.bytes, 8 * kMiB, options);
    for (const Prompt& prompt : prompts(ids)) {
      ASSERT_TRUE(alone.session->rewind(0));
      const Generation expected = alone.generate(prompt);
      for (std::size_t way = 0; way < std::size(ways); ++way) {
        ASSERT_TRUE(host.session->rewind(0));
        const Giver giver(host, expected.tokens, ways[way]);
        const Generation run = host.generate(prompt);
        EXPECT_EQ(run.tokens, expected.tokens) << variant.name << way;
        EXPECT_EQ(run.hash, expected.hash) << variant.name << way;
        const SequenceStats stats = host.session->sequence_stats();
        EXPECT_EQ(stats.position, alone.session->sequence_stats().position) << variant.name << way;
        EXPECT_GT(stats.guessed_tokens, 15u) << variant.name << way;
        if (way == 0) {
          EXPECT_EQ(stats.right_tokens, stats.guessed_tokens) << variant.name;
        }
        if (way == 1) {
          EXPECT_EQ(stats.right_tokens, 0u) << variant.name;
        }
        if (way >= 2) {
          EXPECT_GT(stats.right_tokens, 5u) << variant.name << way;
        }
        EXPECT_EQ(stats.right_tokens < stats.guessed_tokens, way == 1 || way == 2) << variant.name << way;
      }
    }
  }
}

// The number that is wanted doubles after right guesses, and follows those that were right after a wrong one.
TEST(GivenGuesses, AreWantedAsTheyAreRight) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, 40);
  const Generation expected = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 60));
  Host host(file.bytes, 8 * kMiB, taking(8));
  std::uint32_t pass = 0;
  const Giver giver(host, expected.tokens, [&](std::uint32_t token, std::uint32_t i) {
    pass += i == 0 ? 1 : 0;
    return pass == 1 || (pass == 6 && i == 2) ? (token + 1) % 40 : token;
  });
  EXPECT_EQ(host.generate(greedy(ids, 60)).hash, expected.hash);
  const std::vector<std::uint32_t> wanted{8, 1, 2, 4, 8, 8, 3, 6, 8, 8};
  EXPECT_EQ(std::vector(giver.wanted.begin(), giver.wanted.begin() + 10), wanted);
}

// As many passes are saved as guesses are right, and the weights of each are not read.
TEST(GivenGuesses, SaveReading) {
  for (const Named& variant : memories()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = some_tokens(9, 40);
    OpenOptions options = taking(7), plain;
    options.stream_all = plain.stream_all = true;
    Host alone(file.bytes, 8 * kMiB, plain), host(file.bytes, 8 * kMiB, options);
    const std::array before{alone.session->stats().bytes_read, host.session->stats().bytes_read};
    const Generation expected = alone.generate(greedy(ids, 60));
    const Giver giver(host, expected.tokens, [](std::uint32_t token, std::uint32_t) { return token; });
    EXPECT_EQ(host.generate(greedy(ids, 60)).hash, expected.hash);
    const std::uint64_t read = alone.session->stats().bytes_read - before[0];
    const std::uint64_t saved = read - (host.session->stats().bytes_read - before[1]);
    EXPECT_GT(host.session->sequence_stats().right_tokens, 45u) << variant.name;
    // What is read ahead for a pass that does not come is less than half of one.
    const std::uint64_t pass = host.session->stats().token_bytes;
    EXPECT_EQ((saved + pass / 2) / pass, host.session->sequence_stats().right_tokens) << variant.name;
  }
}

// Guesses that nobody wants, or that another text was meant for, are not computed.
TEST(GivenGuesses, CountOnlyWhereTheyAreWanted) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, 40);
  const std::array<std::uint32_t, 3> any{1, 2, 3};
  for (const bool by_text : {false, true}) {
    Host host(file.bytes, 8 * kMiB, by_text ? guessing(7) : taking(7));
    Session& session = *host.session;
    EXPECT_EQ(session.guesses_wanted(), 0u);
    EXPECT_EQ(session.guesses_wanted(9), 0u);
    session.guess(any);
    session.guess(any, 9);
    Prompt prompt = greedy(ids, 6);
    ExpectedTokens expected;
    prompt.expected = &expected;
    ASSERT_TRUE(session.start(prompt));
    EXPECT_EQ(session.guesses_wanted(), 0u) << "the prompt is not computed";
    session.guess(any);
    host.stop_when = [&] { return session.sequence_stats().generated_tokens == 1; };
    (void)host.pump();
    EXPECT_EQ(session.guesses_wanted(), by_text ? 0u : 4u) << "six tokens have room for four guesses more";
    expected.n = 1;
    EXPECT_EQ(session.guesses_wanted(), 0u) << "the prompt has its own";
    expected.n = 0;
    session.guess(any);
    session.stop();
    EXPECT_EQ(session.guesses_wanted(), 0u);
    host.stop_when = nullptr;
    const std::uint32_t more[] = {3, 1, 4};
    (void)host.generate(greedy(more, 3));
    if (!by_text) {
      EXPECT_EQ(session.sequence_stats().guessed_tokens, 0u);
    }
  }
}

TEST(GivenGuesses, AreComputedOnce) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, taking(7));
  ASSERT_TRUE(host.session->start(greedy(some_tokens(9, 40), 20)));
  host.stop_when = [&] { return host.session->sequence_stats().generated_tokens == 1; };
  (void)host.pump();
  host.session->guess(std::array<std::uint32_t, 3>{1, 2, 3});
  host.stop_when = nullptr;
  (void)host.pump();
  EXPECT_EQ(host.session->sequence_stats().guessed_tokens, 3u);
}

// Sequences that decode share the columns of a pass; guesses take only those that no sequence needs.
TEST(Guesses, LeaveRoomForOtherSequences) {
  for (const Named& variant : memories()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = repeating(40);
    const Generation expected = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 30));
    for (const std::uint32_t chunk : {2u, 4u, 5u, 0u}) {
      OpenOptions options = guessing(7);
      options.sequences = 4;
      options.chunk = chunk;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
      Session& session = *host.session;
      std::array<std::vector<std::uint32_t>, 4> tokens;
      std::array<std::string, 4> hashes;
      const auto run = [&] {
        for (Step step = Step::working; step != Step::ready;) {
          step = host.step();
          ASSERT_NE(step, Step::error) << session.error().sentence;
          if (step == Step::token) tokens[session.sequence()].push_back(session.token());
          if (step == Step::done) hashes[session.sequence()] = session.logits_hash(session.sequence());
        }
      };
      for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(session.start(greedy(ids, 30), i));
      run();
      for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(tokens[i], expected.tokens) << variant.name << chunk << " " << i;
        EXPECT_EQ(hashes[i], expected.hash) << variant.name << chunk << " " << i;
      }
    }
  }
}

TEST(Guesses, AreAtMostFifteen) {
  const SmallFile file = small_file();
  std::vector<std::byte> memory(kMiB);
  EXPECT_STREQ(error_of(open_session(memory, file.bytes.size(), guessing(16))).sentence,
               "guesses is 16; it must be a whole number from 0 to 15");
}

}  // namespace
}  // namespace qsf::test
