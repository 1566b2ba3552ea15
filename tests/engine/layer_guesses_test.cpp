// Tokens that the first layers of a model guess: the guesses against a model of these layers alone, and the text
// against one token at a time.
#include <array>

#include "engine/company.h"
#include "engine/host.h"
#include "engine/variants.h"
#include "qsf/file/reader.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

OpenOptions by_layers(std::uint32_t layers, std::uint32_t guesses) {
  OpenOptions options;
  options.guesses = guesses;
  options.guess_by_layers = true;
  options.guess_layers = layers;
  return options;
}

/// Scales what the layers after the first `strong` add to the stream, so that the first ones often agree with all.
void weaken(SmallFile& file, std::uint32_t strong, std::uint32_t n_layers, float factor = 0.2f) {
  for (std::uint32_t stage = strong + 1; stage <= n_layers; ++stage) {
    for (const Role role : {Role::attn_o, Role::state_out, Role::conv_out, Role::ffn_down}) {
      const auto found = file.weights.find({stage, role});
      if (found == file.weights.end()) continue;
      for (float& weight : found->second) weight *= factor;
    }
  }
}

SmallOptions four_layers() {
  SmallOptions shape;
  shape.n_layers = 4;
  shape.max_seq_len = 128;
  return shape;
}

/// Returns the most likely token after each token of a text, from the first on.
std::vector<std::uint32_t> likeliest_after(const SmallFile& file, const std::vector<std::uint32_t>& text) {
  OpenOptions options;
  options.all_logits = true;
  Prompt prompt = greedy(text, 0);
  prompt.all_logits = true;
  const std::vector<float> logits = Host(file.bytes, 8 * kMiB, options).generate(prompt).logits;
  const std::size_t vocab = logits.size() / text.size();
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * vocab);
    out.push_back(static_cast<std::uint32_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(vocab)) - row));
  }
  return out;
}

// With one guess for a pass, as many are right as a model of the first layers has right where it is asked.
TEST(LayerGuesses, AreThoseOfAModelOfTheseLayers) {
  const auto ids = some_tokens(9, 40);
  std::uint32_t all_right = 0, all_made = 0;
  for (const std::uint32_t layers : {1u, 2u, 3u}) {
    const SmallOptions shape = four_layers();
    const SmallFile file = small_file(shape, [&](SmallFile& made) { weaken(made, layers, 4, 0.4f); });
    SmallOptions fewer = shape;
    fewer.n_layers = layers;
    const SmallFile first = small_file(fewer, [&](SmallFile& made) {
      for (auto& [place, weights] : made.weights) {
        weights = file.weights.at({place.first == layers + 1 ? 5 : place.first, place.second});
      }
    });
    const std::vector<std::uint32_t> text = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 80)).tokens;
    const std::vector<std::uint32_t> guessed = likeliest_after(first, joined(ids, text));
    std::uint32_t right = 0, made = 0;
    for (std::size_t known = 1; known + 1 < text.size(); ++known) {  // the last token needs no pass
      ++made;
      if (guessed[ids.size() + known - 1] != text[known]) continue;
      ++right;
      ++known;  // the pass has chosen the next one too
    }
    Host host(file.bytes, 8 * kMiB, by_layers(layers, 1));
    host.session->set_guess_work(0);
    EXPECT_EQ(host.generate(greedy(ids, 80)).tokens, text) << layers;
    EXPECT_EQ(host.session->sequence_stats().right_tokens, right) << layers;
    EXPECT_EQ(host.session->sequence_stats().guessed_tokens, made) << layers;
    all_right += right;
    all_made += made;
  }
  EXPECT_GT(all_right, 15u);
  EXPECT_LT(all_right, all_made - 15);
}

// If the last layer adds nothing, the others are the model: each of their guesses is right, also those after guesses.
TEST(LayerGuesses, AreRightIfOtherLayersAddNothing) {
  const auto ids = some_tokens(9, 40);
  for (const Named& memory : memories()) {
    SmallOptions shape = memory.options;
    shape.n_layers = 4;
    const SmallFile file = small_file(shape, [](SmallFile& made) { weaken(made, 3, 4, 0); });
    Host host(file.bytes, 8 * kMiB, by_layers(3, 7));
    host.session->set_guess_work(0);
    (void)host.generate(greedy(ids, 40));
    EXPECT_GT(host.session->sequence_stats().guessed_tokens, 25u) << memory.name;
    EXPECT_EQ(host.session->sequence_stats().right_tokens, host.session->sequence_stats().guessed_tokens)
        << memory.name;
  }
}

TEST(LayerGuesses, ChangeNoBit) {
  std::uint32_t right = 0, wrong = 0;
  const auto ids = some_tokens(9, 40);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    Host alone(file.bytes, 8 * kMiB, {});
    const std::uint32_t n_layers = alone.session->stats().n_layers;
    for (const std::uint32_t layers : {1u, n_layers - 1}) {
      for (const std::uint32_t chunk : {0u, 3u}) {
        OpenOptions options = by_layers(layers, chunk == 0 ? 15 : 4);
        options.chunk = chunk;
        options.stream_all = chunk == 3;
        Host host(file.bytes, 8 * kMiB, options);
        for (const float temperature : {0.0f, 0.6f}) {
          Prompt prompt = greedy(ids, 40);
          prompt.sampler.temperature = temperature;
          prompt.sampler.seed = 3;
          ASSERT_TRUE(alone.session->rewind(0));
          ASSERT_TRUE(host.session->rewind(0));
          const Generation expected = alone.generate(prompt), run = host.generate(prompt);
          EXPECT_EQ(run.tokens, expected.tokens) << variant.name << layers << " " << chunk;
          EXPECT_EQ(run.hash, expected.hash) << variant.name << layers << " " << chunk;
          const SequenceStats stats = host.session->sequence_stats();
          EXPECT_EQ(stats.position, alone.session->sequence_stats().position) << variant.name;
          right += stats.right_tokens;
          wrong += stats.guessed_tokens - stats.right_tokens;
        }
      }
    }
  }
  EXPECT_GT(right, 500u);
  EXPECT_GT(wrong, 500u);
}

// The first layers and the head are pinned first, so that guessing reads nothing, and a right guess saves a pass.
TEST(LayerGuesses, SaveReading) {
  SmallOptions shape = four_layers();
  shape.tied = false;
  const SmallFile file = small_file(shape, [](SmallFile& made) { weaken(made, 1, 4); });
  const auto ids = some_tokens(9, 40);
  std::uint64_t budget = 0;
  {
    Host whole(file.bytes, 8 * kMiB, {});
    budget = whole.session->stats().resident_budget - whole.session->stats().weight_bytes / 4;
  }
  std::array<std::uint64_t, 2> read{};
  std::uint32_t generated = 0, right = 0;
  for (const bool guesses : {false, true}) {
    OpenOptions options = guesses ? by_layers(1, 4) : OpenOptions();
    options.max_seq_len = 128;
    Host host(file.bytes, budget, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    ASSERT_NE(host.session->stats().ring_slots, 0u);
    const std::span<const SegmentEntry> segments = host.session->segments();
    std::uint32_t missing = 0;
    for (std::uint32_t i = 0; i < segments.size(); ++i) {
      const bool guesses_use = segments[i].stage == 1 || segments[i].stage == 5;
      missing += guesses_use && !host.session->is_pinned(i) ? 1 : 0;
    }
    EXPECT_EQ(missing == 0, guesses) << missing;
    const Generation first = host.generate(greedy(ids, 1));
    const std::uint64_t before = host.session->stats().bytes_read;
    const Generation run = host.generate(greedy(first.tokens, 80));
    read[guesses ? 1 : 0] = host.session->stats().bytes_read - before;
    const SequenceStats stats = host.session->sequence_stats();
    generated = stats.generated_tokens;
    right = stats.right_tokens;
  }
  ASSERT_GT(right, generated / 3);
  EXPECT_LT(static_cast<double>(read[1]) / static_cast<double>(read[0]), 1.1 * (generated - right) / generated);
}

TEST(LayerGuesses, AreRefusedWithASentence) {
  const SmallFile file = small_file(four_layers());
  const auto sentence = [&](const OpenOptions& options) {
    return std::string(Host(file.bytes, 8 * kMiB, options).error.sentence);
  };
  EXPECT_EQ(sentence(by_layers(4, 7)), "4 layers are to guess (guess_layers), and the model has 4: fewer can");
  EXPECT_EQ(sentence(by_layers(2, 0)),
            "guess_by_layers needs guesses, the most tokens to guess, and no other source of them");
  OpenOptions both = by_layers(2, 7);
  both.guess_source = GuessSource::host;
  EXPECT_EQ(sentence(both), "guess_by_layers needs guesses, the most tokens to guess, and no other source of them");
  OpenOptions neither = by_layers(2, 7);
  neither.guess_by_layers = false;
  EXPECT_EQ(sentence(neither), "guess_layers is 2, but guess_by_layers is not set");
  OpenOptions narrow = by_layers(2, 7);
  narrow.chunk = 1;
  EXPECT_EQ(sentence(narrow),
            "guesses by layers are of no use: passes have one column (chunk), and no room for a guess");
  EXPECT_EQ(sentence(by_layers(0, 7)), "");
}

// Sequences that decode together guess in one pass; those that are stopped or begin in between disturb no other.
TEST(LayerGuesses, OfSeveralSequences) {
  const SmallFile file = small_file(four_layers(), [](SmallFile& made) { weaken(made, 1, 4); });
  expect_text_of_one(file, by_layers(1, 7), 6);
}

}  // namespace
}  // namespace qsf::test
