// Several sequences in one session: the bits of each are those that it has alone, whatever shares its passes.
#include <map>

#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

struct Told {
  std::vector<std::uint32_t> tokens;
  std::string text, hash;
  End end = End::none;
};

/// Serves a session and keeps what it tells of each sequence.
class Many {
 public:
  Many(std::span<const std::byte> file, const OpenOptions& options) : file_(file), memory_(16 * kMiB) {
    const auto opened = open_session(memory_, file.size(), options);
    EXPECT_TRUE(opened) << opened.error().sentence;
    session = *opened;
    while (step() != Step::ready) {
    }
  }

  /// One step, its requests served; what it tells is kept.
  Step step() {
    const Step step = session->step();
    while (const auto r = session->next_request()) {
      std::memcpy(r->into, file_.data() + r->offset, r->size);
      EXPECT_TRUE(session->complete(r->ticket));
    }
    Told& told = of[session->sequence()];
    if (step == Step::token) told.tokens.push_back(session->token());
    if (step == Step::token || step == Step::done) told.text += session->piece();
    if (step == Step::done) {
      told.hash = session->logits_hash(session->sequence());
      told.end = session->end(session->sequence());
    }
    EXPECT_NE(step, Step::error) << session->error().sentence;
    return step;
  }
  void run() {
    while (step() != Step::ready) {
    }
  }
  void start(std::uint32_t sequence, const Prompt& prompt) {
    of[sequence] = {};
    const Status status = session->start(prompt, sequence);
    EXPECT_TRUE(status) << status.error().sentence;
  }

  Session* session = nullptr;
  std::map<std::uint32_t, Told> of;

 private:
  std::span<const std::byte> file_;
  std::vector<std::byte> memory_;
};

std::vector<std::uint32_t> prompt_of(std::uint32_t i) { return some_tokens(3 + i * 5 % 17, 40 - i); }

void expect_same(const Told& is, const Told& alone, const std::string& what) {
  EXPECT_EQ(is.tokens, alone.tokens) << what;
  EXPECT_EQ(is.hash, alone.hash) << what;
  EXPECT_EQ(is.end, alone.end) << what;
}

TEST(Sequences, BitsDoNotDependOnCompany) {
  for (const FormatId format : {FormatId::f32, FormatId::q8}) {
    for (Named variant : variants()) {
      variant.options.format = format;
      const SmallFile file = small_file(variant.options);
      std::vector<Told> alone;
      for (std::uint32_t i = 0; i < 8; ++i) {
        Many one(file.bytes, {});
        const auto ids = prompt_of(i);
        one.start(0, greedy(ids, 4 + i));
        one.run();
        alone.push_back(one.of[0]);
        ASSERT_EQ(alone.back().tokens.size(), 4 + i);
      }
      for (const std::uint32_t company : {1u, 3u, 7u}) {
        for (const std::uint32_t chunk : {0u, 3u, 5u}) {
          OpenOptions options;
          options.sequences = company + 1;
          options.chunk = chunk;
          options.stream_all = chunk == 5;
          Many many(file.bytes, options);
          // Half of them decode when the others' prompts come.
          for (std::uint32_t i = 0; i <= company; i += 2) many.start(i, greedy(prompt_of(i), 4 + i));
          while (many.of[0].tokens.size() < 2) many.step();
          for (std::uint32_t i = 1; i <= company; i += 2) many.start(i, greedy(prompt_of(i), 4 + i));
          many.run();
          for (std::uint32_t i = 0; i <= company; ++i) {
            expect_same(many.of[i], alone[i],
                        std::string(variant.name) + ", " + std::to_string(i) + " of " + std::to_string(company + 1));
          }
        }
      }
    }
  }
}

// A window whose ring comes round while others write theirs.
TEST(Sequences, StoppingOneLeavesTheOthersAlone) {
  SmallOptions o;
  o.window = 6;
  const SmallFile file = small_file(o);
  const auto a = some_tokens(23, 40), b = some_tokens(30, 37);
  Many one(file.bytes, {});
  one.start(0, greedy(a, 9));
  one.run();
  const Told alone = one.of[0];
  for (int steps = 1; steps < 60; steps += 3) {
    OpenOptions options;
    options.sequences = 2;
    Many many(file.bytes, options);
    many.start(0, greedy(a, 9));
    many.start(1, greedy(b, 20));
    for (int i = 0; i < steps; ++i) many.step();
    many.session->stop(1);
    const bool was_done = many.of[1].end != End::none;
    EXPECT_EQ(many.session->end(1), was_done ? many.of[1].end : End::cancelled);
    // The stopped sequence begins anew at once, perhaps while its old columns are still on their way.
    ASSERT_TRUE(many.session->rewind(0, 1));
    many.start(1, greedy(a, 9));
    many.run();
    expect_same(many.of[0], alone, std::to_string(steps));
    expect_same(many.of[1], alone, std::to_string(steps));
  }
}

TEST(Sequences, EachHasItsOwnTextStopsAndEnds) {
  const SmallFile file = small_file();
  OpenOptions options;
  options.sequences = 3;
  options.max_seq_len = 16;
  Many many(file.bytes, options);
  const auto ids = some_tokens(5, 40);
  Prompt short_one = greedy(ids, 2);
  many.start(0, short_one);
  many.start(1, greedy(ids, 100));
  EXPECT_EQ(many.session->end(1), End::none);
  many.run();
  EXPECT_EQ(many.of[0].end, End::length);
  EXPECT_EQ(many.of[1].end, End::context);
  EXPECT_EQ(many.session->tokens(1).size(), 16u);
  EXPECT_TRUE(many.session->tokens(2).empty());
  EXPECT_EQ(many.session->sequence_stats(0).generated_tokens, 2u);
  // What begins a sequence is the same token by token.
  EXPECT_TRUE(std::equal(many.of[0].tokens.begin(), many.of[0].tokens.end(), many.of[1].tokens.begin()));
}

TEST(Sequences, OneThatIsNotThereIsRefused) {
  const SmallFile file = small_file();
  Many many(file.bytes, {});
  const auto ids = some_tokens(5, 40);
  EXPECT_EQ(error_of(many.session->start(greedy(ids, 2), 1)).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(many.session->rewind(0, 7)).code, ErrorCode::bad_argument);
  many.session->stop(9);
  EXPECT_TRUE(many.session->tokens(1).empty());
  EXPECT_TRUE(many.session->logits_hash(1).empty());
  OpenOptions options;
  options.sequences = 65;
  std::vector<std::byte> memory(kMiB);
  const auto refused = open_session(memory, file.bytes.size(), options);
  ASSERT_FALSE(refused);
  EXPECT_STREQ(error_of(refused).sentence, "sequences is 65; it must be a whole number from 1 to 64");
}

// A prompt says from which position on it wants logits: they are the last rows of all of them, in any passes.
TEST(Sequences, TellLogitsFromAPositionOn) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(20, 40);
  const Generation all = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 3));
  ASSERT_EQ(all.logits.size(), 22u * 40);
  for (const std::uint32_t from : {0u, 1u, 10u, 19u, 20u, 21u, 22u, ~0u}) {
    for (const std::uint32_t chunk : {0u, 1u, 7u, 10u}) {
      OpenOptions options = with_logits();
      options.chunk = chunk;
      Prompt prompt = all_logits(ids, 3);
      prompt.logits_from = from;
      const Generation some = Host(file.bytes, 8 * kMiB, options).generate(prompt);
      const std::size_t left_out = std::min<std::size_t>(from, 22) * 40;
      EXPECT_TRUE(std::equal(some.logits.begin(), some.logits.end(),
                             all.logits.begin() + static_cast<std::ptrdiff_t>(left_out), all.logits.end()))
          << from << " " << chunk;
      EXPECT_EQ(some.tokens, all.tokens) << from;
    }
  }
}

// A pass is as wide as all sequences together.
TEST(Sequences, ShareAPassThatIsWiderThanAContext) {
  const SmallFile file = small_file();
  OpenOptions options;
  options.sequences = 3;
  options.max_seq_len = 20;
  options.chunk = 100;
  Many many(file.bytes, options);
  EXPECT_EQ(many.session->stats().chunk, 60u);
  const auto ids = some_tokens(19, 40);
  for (std::uint32_t i = 0; i < 3; ++i) many.start(i, greedy(ids, 0));
  many.run();
  Many one(file.bytes, {});
  one.start(0, greedy(ids, 0));
  one.run();
  for (std::uint32_t i = 0; i < 3; ++i) expect_same(many.of[i], one.of[0], std::to_string(i));
}

struct Mapped {
  std::uint64_t total = 0, free = 0;
};

Mapped mapped(const Session& session) {
  Mapped mapped;
  for (const MemoryRegion& region : session.memory_map()) {
    mapped.total += region.bytes;
    if (region.region == Region::free) mapped.free = region.bytes;
  }
  return mapped;
}

// The plan counts what the inits take, to the byte.
TEST(Sequences, ThePlanIsWhatIsTaken) {
  const SmallFile file = small_file();
  for (const std::uint32_t sequences : {1u, 2u, 5u, 64u}) {
    for (const bool all_logits : {false, true}) {
      OpenOptions options;
      options.sequences = sequences;
      options.all_logits = all_logits;
      options.chunk = 32;
      Many many(file.bytes, options);
      EXPECT_EQ(mapped(*many.session).total, many.session->stats().budget);
      EXPECT_GT(mapped(*many.session).free, 0u);
      // What everything needs to stay is what it takes, to the byte: one alignment less will not do.
      const std::uint64_t needed = many.session->stats().resident_budget - kHostReserve;
      std::vector<std::byte> least(needed + kAlignment);
      const std::size_t skip = kAlignment - reinterpret_cast<std::uintptr_t>(least.data()) % kAlignment;
      options.max_seq_len = many.session->stats().max_seq_len;
      options.chunk = many.session->stats().chunk;
      options.kv = many.session->stats().kv;
      options.ring_slots = 1;
      for (const std::uint64_t size : {needed, needed - kAlignment}) {
        const auto opened = open_session(std::span(least).subspan(skip, size), file.bytes.size(), options);
        ASSERT_TRUE(opened);
        Step step = Step::working;
        while (step == Step::working || step == Step::need_bytes) {
          step = (*opened)->step();
          while (const auto r = (*opened)->next_request()) {
            std::memcpy(r->into, file.bytes.data() + r->offset, r->size);
            (void)(*opened)->complete(r->ticket);
          }
        }
        ASSERT_EQ(step, Step::ready) << (*opened)->error().sentence;
        EXPECT_EQ((*opened)->stats().ring_slots == 0, size == needed) << sequences;
        if (size == needed) {
          EXPECT_EQ(mapped(**opened).free, 0u) << sequences;
        }
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
