// Tokens that a model's own layer for further tokens guesses: the guesses against a reference in double precision, and
// the text against one token at a time.
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "engine/company.h"
#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "qsf/file/reader.h"
#include "tests/support/saved.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kLayers = 3;  // of the text; the next one guesses

SmallOptions with_guess_layer(std::uint32_t n_layers = kLayers) {
  SmallOptions shape;
  shape.n_layers = n_layers + 1;
  shape.max_seq_len = 128;
  shape.tied = false;
  shape.model.guess_layer = 1;
  return shape;
}

/// Makes the model and the layer that guesses see the last token above all, so that they often agree. `strength` is
/// that of the layers, and `of_state` that of the hidden state from which a guess follows.
void agree(SmallFile& file, float strength, float of_state = 0.5f, std::uint32_t n_layers = kLayers) {
  for (std::uint32_t stage = 1; stage <= n_layers + 1; ++stage) {
    for (const Role role : {Role::attn_o, Role::state_out, Role::ffn_down}) {
      const auto found = file.weights.find({stage, role});
      if (found == file.weights.end()) continue;
      for (float& weight : found->second) weight *= stage > n_layers ? of_state : strength;
    }
  }
  std::vector<float>& join = file.weights.at({n_layers + 1, Role::guess_join});
  const std::size_t dim = file.weights.at({n_layers + 1, Role::guess_norm}).size();
  for (std::size_t i = 0; i < join.size(); ++i) join[i] *= i / dim % 2 == 0 ? strength : of_state;
  for (std::size_t row = 0; row < dim; ++row) join[row * 2 * dim + row] += 1;
}

OpenOptions by_head(std::uint32_t guesses) {
  OpenOptions options;
  options.guesses = guesses;
  options.guess_by_head = true;
  return options;
}

/// The layer that guesses, as the definition of its input has it (DeepSeek-AI 2024, section 2.2), in double precision.
class Reference {
 public:
  Reference(const SmallOptions& shape, const SmallFile& file) : file_(file), text_(shape), guess_(shape) {
    // A head that is the identity gives the last hidden states.
    text_.n_layers = kLayers;
    guess_.shape = nullptr;
    text_.vocab_size = text_.dim;
    guess_.n_layers = 1;
    const std::uint32_t head = kLayers + 2;
    for (const auto& [place, weights] : file.weights) {
      if (place.first <= kLayers) of_text_.weights[place] = weights;
      if (place.first == kLayers + 1) of_guess_.weights[{1, place.second}] = weights;
    }
    of_text_.weights[{kLayers + 1, Role::final_norm}] = file.weights.at({head, Role::final_norm});
    of_text_.weights[{kLayers + 1, Role::head}] = identity();
    of_guess_.weights[{2, Role::final_norm}] = weight(kLayers + 1, Role::guess_norm);
  }

  /// Returns `n` guesses at the tokens after a text, each from those before.
  std::vector<std::uint32_t> after(std::vector<std::uint32_t> text, std::uint32_t n) {
    std::vector<Vec> hidden = reference_logits(text_, of_text_, text, KvType::f32);
    hidden.pop_back();  // the last token is fed in the pass that has the guesses
    std::vector<std::uint32_t> guesses;
    while (guesses.size() < n) {
      std::vector<float>& rows = of_guess_.weights[{0, Role::token_embd}];
      std::vector<std::uint32_t> positions;
      rows.clear();
      for (std::uint32_t p = 0; p < hidden.size(); ++p) {
        for (const double x : joined(text[p + 1], hidden[p])) rows.push_back(static_cast<float>(x));
        positions.push_back(p);
      }
      of_guess_.weights[{2, Role::head}] = weight(kLayers + 2, Role::head);
      const Vec logits = reference_logits(guess_, of_guess_, positions, KvType::f32).back();
      guesses.push_back(static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin()));
      of_guess_.weights[{2, Role::head}] = identity();
      hidden.push_back(reference_logits(guess_, of_guess_, positions, KvType::f32).back());
      text.push_back(guesses.back());
    }
    return guesses;
  }

 private:
  const std::vector<float>& weight(std::uint32_t stage, Role role) const { return file_.weights.at({stage, role}); }

  std::vector<float> identity() const {
    std::vector<float> out(std::size_t{text_.dim} * text_.dim);
    for (std::size_t i = 0; i < text_.dim; ++i) out[i * text_.dim + i] = 1;
    return out;
  }

  Vec normed(const Vec& x, Role role) const {
    double sum = 0;
    for (const double e : x) sum += e * e;
    Vec y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] =
          x[i] / std::sqrt(sum / static_cast<double>(x.size()) + double{1e-5f}) * double{weight(kLayers + 1, role)[i]};
    }
    return y;
  }

  Vec joined(std::uint32_t token, const Vec& hidden) const {
    const std::size_t dim = text_.dim;
    Vec embedded(dim);
    for (std::size_t i = 0; i < dim; ++i) embedded[i] = double{weight(0, Role::token_embd)[token * dim + i]};
    Vec both = normed(embedded, Role::guess_token_norm);
    const Vec state = normed(hidden, Role::guess_state_norm);
    both.insert(both.end(), state.begin(), state.end());
    Vec out(dim);
    for (std::size_t row = 0; row < dim; ++row) {
      for (std::size_t c = 0; c < 2 * dim; ++c) {
        out[row] += double{weight(kLayers + 1, Role::guess_join)[row * 2 * dim + c]} * both[c];
      }
    }
    return out;
  }

  const SmallFile& file_;
  SmallOptions text_, guess_;
  SmallFile of_text_, of_guess_;
};

// The room of a sequence's tokens has those that are known, then the guesses of the last pass. When the first token
// after a pass is there, it has taken the place of the first guess.
TEST(HeadGuesses, AreThoseOfAReferenceInDouble) {
  const auto ids = some_tokens(9, 40);
  const auto recurrent = variant("delta nets, gated attention").shape;
  std::uint32_t right = 0, made = 0, later = 0;
  for (const auto& [most, states] : {std::pair(1u, false), std::pair(4u, false), std::pair(4u, true)}) {
    SmallOptions shape = with_guess_layer();
    if (states) {
      shape.shape = [&](std::uint32_t layer, LayerKind& kind) {
        if (layer < kLayers) recurrent(layer, kind);
      };
    }
    const SmallFile file = small_file(shape, [](SmallFile& changed) { agree(changed, 0.15f); });
    Reference reference(shape, file);
    OpenOptions options = by_head(most);
    options.kv = KvType::f32;
    Host host(file.bytes, 8 * kMiB, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    host.session->set_guess_work(0);
    std::uint32_t made_before = 0, right_before = 0, generated = 0;
    host.stop_when = [&] {
      const SequenceStats stats = host.session->sequence_stats();
      const std::uint32_t n = stats.guessed_tokens - made_before;
      const std::span<const std::uint32_t> text = host.session->tokens();
      const bool is_token = std::exchange(generated, stats.generated_tokens) != stats.generated_tokens;
      if (n == 0 || !is_token) return false;
      const std::vector<std::uint32_t> expected = reference.after({text.begin(), text.end() - 1}, n);
      EXPECT_EQ(text.back() == expected[0], stats.right_tokens > right_before) << text.size();
      for (std::uint32_t i = 1; i < n; ++i) EXPECT_EQ(text.data()[text.size() + i - 1], expected[i]) << text.size();
      made_before = stats.guessed_tokens;
      right_before = stats.right_tokens;
      later += n - 1;
      return false;
    };
    ASSERT_GT(host.generate(greedy(ids, 60)).tokens.size(), 40u);
    right += right_before;
    made += made_before;
  }
  EXPECT_GT(right, 15u);
  EXPECT_LT(right, made - 15);
  EXPECT_GT(later, 15u);
}

TEST(HeadGuesses, ChangeNoBit) {
  std::uint32_t right = 0, wrong = 0, shapes = 0;
  const auto ids = some_tokens(9, 40);
  for (Named variant : variants()) {
    variant.options.model.guess_layer = 1;
    ++variant.options.n_layers;
    std::vector<LayerKind> kinds(variant.options.n_layers, usual_kind(variant.options));
    std::vector<std::uint8_t> of_layer;
    for (std::uint32_t layer = 0; layer < kinds.size(); ++layer) {
      if (variant.options.shape) variant.options.shape(layer, kinds[layer]);
      of_layer.push_back(static_cast<std::uint8_t>(layer));
    }
    if (!check_layers({variant.options.model, kinds, of_layer}, variant.options.dim)) continue;
    const SmallFile file = small_file(variant.options);
    ++shapes;
    Host alone(file.bytes, 8 * kMiB, {});
    EXPECT_EQ(alone.session->stats().n_layers, variant.options.n_layers - 1) << variant.name;
    for (const std::uint32_t chunk : {0u, 3u}) {
      OpenOptions options = by_head(chunk == 0 ? 15 : 2);
      options.chunk = chunk;
      options.stream_all = chunk == 3;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_EQ(host.error.code, ErrorCode::none) << variant.name << host.error.sentence;
      for (const float temperature : {0.0f, 0.6f}) {
        Prompt prompt = greedy(ids, 40);
        prompt.sampler.temperature = temperature;
        prompt.sampler.seed = 3;
        ASSERT_TRUE(alone.session->rewind(0));
        ASSERT_TRUE(host.session->rewind(0));
        const Generation expected = alone.generate(prompt), run = host.generate(prompt);
        EXPECT_EQ(run.tokens, expected.tokens) << variant.name << " " << chunk;
        EXPECT_EQ(run.hash, expected.hash) << variant.name << " " << chunk;
        const SequenceStats stats = host.session->sequence_stats();
        EXPECT_EQ(stats.position, alone.session->sequence_stats().position) << variant.name;
        right += stats.right_tokens;
        wrong += stats.guessed_tokens - stats.right_tokens;
      }
    }
  }
  EXPECT_GT(shapes, 20u);
  EXPECT_GT(right, 50u);
  EXPECT_GT(wrong, 500u);
}

// Without guesses by it, the layer is neither read nor kept, and the text is that of a file without it.
TEST(HeadGuesses, TakeNothingWithoutThem) {
  SmallOptions shape = with_guess_layer();
  const SmallFile file = small_file(shape);
  SmallOptions fewer = shape;
  fewer.n_layers = kLayers;
  fewer.model.guess_layer = 0;
  const SmallFile plain = small_file(fewer, [&](SmallFile& made) {
    for (auto& [place, weights] : made.weights) {
      weights = file.weights.at({place.first == kLayers + 1 ? kLayers + 2 : place.first, place.second});
    }
  });
  const auto ids = some_tokens(9, 40);
  for (const bool streams : {false, true}) {
    OpenOptions options;
    options.stream_all = streams;
    Host without(plain.bytes, 8 * kMiB, options), with(file.bytes, 8 * kMiB, options);
    EXPECT_EQ(with.generate(greedy(ids, 20)).tokens, without.generate(greedy(ids, 20)).tokens);
    const Stats a = without.session->stats(), b = with.session->stats();
    EXPECT_EQ(b.n_layers, a.n_layers);
    EXPECT_EQ(b.n_segments - b.n_pinned, a.n_segments - a.n_pinned);
    EXPECT_EQ(b.max_seq_len, a.max_seq_len);
    EXPECT_EQ(b.token_bytes, a.token_bytes);
    const std::span<const SegmentEntry> segments = with.session->segments();
    std::uint64_t vectors = 0;  // of the layer; they are small, and always resident
    for (std::uint32_t i = 0; i < segments.size(); ++i) {
      if (segments[i].stage != kLayers + 1) continue;
      const bool is_vectors = (segments[i].flags & kSegmentVectors) != 0;
      vectors += is_vectors ? segments[i].raw_size : 0;
      EXPECT_EQ(with.session->is_pinned(i), is_vectors);
    }
    EXPECT_EQ(b.weight_bytes, a.weight_bytes + vectors);
    const auto bytes = [](const Session& session, Region region) {
      for (const MemoryRegion& of : session.memory_map()) {
        if (of.region == region) return of.bytes;
      }
      return std::uint64_t{0};
    };
    EXPECT_EQ(bytes(*with.session, Region::kv_cache), bytes(*without.session, Region::kv_cache));
    EXPECT_EQ(bytes(*with.session, Region::activations), bytes(*without.session, Region::activations));
  }
}

// The layer that guesses and the head are pinned first, so that guessing reads nothing, and a right guess saves a pass.
TEST(HeadGuesses, SaveReading) {
  constexpr std::uint32_t kMany = 12;
  const SmallFile file = small_file(with_guess_layer(kMany), [](SmallFile& changed) {
    agree(changed, 0.002f, 0, kMany);
    changed.weights.at({kMany + 1, Role::guess_norm}) = changed.weights.at({kMany + 2, Role::final_norm});
    std::ranges::fill(changed.weights.at({kMany + 1, Role::guess_token_norm}), 1.0f);
  });
  const auto ids = some_tokens(9, 40);
  std::uint64_t budget = 0;
  {
    Host whole(file.bytes, 8 * kMiB, {});
    budget = whole.session->stats().resident_budget - whole.session->stats().weight_bytes / 2;
  }
  std::array<std::uint64_t, 2> read{};
  std::uint32_t generated = 0, right = 0;
  for (const bool guesses : {false, true}) {
    OpenOptions options = guesses ? by_head(4) : OpenOptions();
    options.max_seq_len = 128;
    Host host(file.bytes, budget, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    ASSERT_NE(host.session->stats().ring_slots, 0u);
    const std::span<const SegmentEntry> segments = host.session->segments();
    for (std::uint32_t i = 0; i < segments.size() && guesses; ++i) {
      EXPECT_TRUE(segments[i].stage <= kMany || host.session->is_pinned(i)) << i;
    }
    const Generation first = host.generate(greedy(ids, 1));
    const std::uint64_t before = host.session->stats().bytes_read;
    (void)host.generate(greedy(first.tokens, 80));
    read[guesses ? 1 : 0] = host.session->stats().bytes_read - before;
    generated = host.session->sequence_stats().generated_tokens;
    right = host.session->sequence_stats().right_tokens;
  }
  ASSERT_GT(right, generated / 2);
  EXPECT_LT(read[1], read[0] * 3 / 4);
}

// A layer whose last norm is that of the text with the other sign guesses the least likely token. It rests most of the
// time.
TEST(HeadGuesses, RestIfTheyAreWrong) {
  constexpr std::uint32_t kMany = 12;
  const SmallFile file = small_file(with_guess_layer(kMany), [](SmallFile& changed) {
    agree(changed, 0.15f, 0.5f, kMany);
    const std::vector<float>& norm = changed.weights.at({kMany + 2, Role::final_norm});
    std::ranges::transform(norm, changed.weights.at({kMany + 1, Role::guess_norm}).begin(), std::negate());
  });
  const auto ids = some_tokens(9, 40);
  const std::vector<std::uint32_t> text = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 80)).tokens;
  std::array<std::uint32_t, 2> guessed{};
  for (const bool rests : {false, true}) {
    Host host(file.bytes, 8 * kMiB, by_head(4));
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    if (!rests) host.session->set_guess_work(0);
    EXPECT_EQ(host.generate(greedy(ids, 80)).tokens, text);
    EXPECT_EQ(host.session->sequence_stats().right_tokens, 0u);
    guessed[rests ? 1 : 0] = host.session->sequence_stats().guessed_tokens;
  }
  EXPECT_GE(guessed[0], 78u);
  EXPECT_GT(guessed[1], 0u);
  EXPECT_LT(guessed[1], 25u);
}

// A session without the layer continues what one with it has saved, and the other way round.
TEST(HeadGuesses, SavedSequencesAreTheSame) {
  const SmallFile file = small_file(with_guess_layer(), [](SmallFile& changed) { agree(changed, 0.15f); });
  const auto ids = some_tokens(9, 40);
  std::array<std::vector<std::byte>, 2> files;
  std::array<std::vector<std::uint32_t>, 2> tokens;
  for (const bool guesses : {false, true}) {
    Host host(file.bytes, 8 * kMiB, guesses ? by_head(4) : OpenOptions());
    (void)host.generate(greedy(ids, 21));
    const auto bytes = saved(*host.session);
    ASSERT_TRUE(bytes);
    files[guesses ? 1 : 0] = *bytes;
  }
  EXPECT_EQ(files[0], files[1]);
  for (const bool guesses : {false, true}) {
    Host host(file.bytes, 8 * kMiB, guesses ? by_head(4) : OpenOptions());
    host.session->set_guess_work(0);
    ASSERT_TRUE(restored(*host.session, files[guesses ? 0 : 1]));
    const std::uint32_t more[] = {3, 1, 4};
    tokens[guesses ? 1 : 0] = host.generate(greedy(more, 30)).tokens;
    if (guesses) {
      EXPECT_GT(host.session->sequence_stats().right_tokens, 5u);
    }
  }
  EXPECT_EQ(tokens[0], tokens[1]);
}

// Whatever ends a generation, the sequence continues as one without guesses does.
TEST(HeadGuesses, AreForgottenAtEveryEnd) {
  const SmallFile file = small_file(with_guess_layer(), [](SmallFile& changed) { agree(changed, 0.15f); });
  const auto ids = some_tokens(9, 40);
  Host plain(file.bytes, 8 * kMiB, {}), guessing(file.bytes, 8 * kMiB, by_head(7));
  for (std::size_t stop = 1; stop < 90; ++stop) {
    std::array<Generation, 2> after;
    std::uint32_t position = 0;
    for (Host* const host : {&guessing, &plain}) {
      ASSERT_TRUE(host->session->rewind(0));
      if (host == &guessing) {
        // One step more each time, so that the end comes within every kind of pass.
        ASSERT_TRUE(host->session->start(greedy(ids, 40)));
        for (std::size_t i = 0; i < stop * 5; ++i) ASSERT_NE(host->step(), Step::error);
        host->session->stop();
        position = static_cast<std::uint32_t>(host->session->tokens().size());
      } else {
        (void)host->generate(greedy(ids, position - static_cast<std::uint32_t>(ids.size())));
      }
      const std::vector<std::uint32_t> known(host->session->tokens().begin(), host->session->tokens().end());
      if (stop % 2 == 0) {
        ASSERT_TRUE(host->session->rewind(static_cast<std::uint32_t>(known.size() - known.size() / 3)));
      }
      const std::uint32_t more[] = {3, 1, 4};
      after[host == &plain ? 0 : 1] = host->generate(greedy(more, 12));
    }
    EXPECT_EQ(after[0].tokens, after[1].tokens) << stop;
    EXPECT_EQ(after[0].hash, after[1].hash) << stop;
  }
}

TEST(HeadGuesses, OfSeveralSequences) {
  const SmallFile file = small_file(with_guess_layer(), [](SmallFile& changed) { agree(changed, 0.15f); });
  expect_text_of_one(file, by_head(7), 12);
}

TEST(HeadGuesses, AreRefusedWithASentence) {
  const SmallFile file = small_file(with_guess_layer()), without = small_file();
  const auto sentence = [&](const OpenOptions& options, const SmallFile& of) {
    return std::string(Host(of.bytes, 8 * kMiB, options).error.sentence);
  };
  EXPECT_EQ(sentence(by_head(4), file), "");
  EXPECT_EQ(sentence(by_head(4), without),
            "the model has no layer for further tokens, so its head cannot guess (guess_by_head)");
  const char* const other = "guess_by_head needs guesses, the most tokens to guess, and no other source of them";
  EXPECT_EQ(sentence(by_head(0), file), other);
  OpenOptions both = by_head(4);
  both.guess_source = GuessSource::host;
  EXPECT_EQ(sentence(both, file), other);
  both = by_head(4);
  both.guess_by_layers = true;
  EXPECT_EQ(sentence(both, file),
            "guess_by_layers needs guesses, the most tokens to guess, and no other source of them");
  OpenOptions narrow = by_head(4);
  narrow.chunk = 1;
  EXPECT_EQ(sentence(narrow, file),
            "guesses by the head are of no use: passes have one column (chunk), and no room for a guess");
}

}  // namespace
}  // namespace qsf::test
