#include "model/sequence_memory.h"

#include "tests/model/opened.h"

namespace qsf::test {
namespace {

TEST(SequenceMemory, LieApart) {
  Opened o;
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 3, 20));
  std::vector<std::pair<std::byte*, std::byte*>> pieces;
  for (std::uint32_t sequence = 0; sequence < 3; ++sequence) {
    for (std::uint32_t stage = 1; stage <= 2; ++stage) {
      const KvMemory kv = memory.kv(sequence, stage);
      EXPECT_EQ(kv.capacity, 20u);
      EXPECT_EQ(kv.window, 20u);
      for (std::uint32_t head = 0; head < kv.n_heads; ++head) {
        for (std::byte* begin : {kv.keys(head), kv.values(head)}) {
          pieces.emplace_back(begin, begin + kv.capacity * kv.key_bytes);
        }
      }
    }
  }
  EXPECT_EQ(pieces.size(), 3u * 2 * 2 * 2);
  std::ranges::sort(pieces);
  for (std::size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i - 1].second, pieces[i].first);
}

TEST(SequenceMemory, AWindowKeepsWhatTheOldestOfAGroupSees) {
  SmallOptions options;
  options.shape = [](std::uint32_t layer, LayerKind& kind) { kind.window = layer == 0 ? 6 : 0; };
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 1, 40));
  EXPECT_EQ(memory.kv(0, 1).capacity, 6 + kTogether - 1);
  EXPECT_EQ(memory.kv(0, 1).window, 6u);
  EXPECT_EQ(memory.kv(0, 2).capacity, 40u);
}

TEST(SequenceMemory, RotatedTypesHaveExactPositionsInAddition) {
  SmallOptions options;
  options.shape = [](std::uint32_t layer, LayerKind& kind) { kind.window = layer == 0 ? 6 : 0; };
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::k4v3, 1, 400));
  const KvMemory of_window = memory.exact(0, 1), of_all = memory.exact(0, 2), rounded = memory.kv(0, 2);
  EXPECT_EQ(of_window.window, 6u);
  EXPECT_EQ(of_window.first_kept, 0u) << "no first positions stay in a window";
  EXPECT_EQ(of_all.window, kExactLast);
  EXPECT_EQ(of_all.first_kept, kExactFirst);
  EXPECT_EQ(of_all.capacity, kExactFirst + kExactLast + kTogether - 1);
  EXPECT_EQ(of_all.key_bytes, 2u * o.config.table.kinds[0].head_dim);
  EXPECT_GT(rounded.key_bytes, rounded.value_bytes);
  memory.write(0, 200);
  EXPECT_EQ(memory.rewind(0, 185), 185u);
  EXPECT_EQ(memory.rewind(0, 183), 0u);

  SequenceMemory chosen;
  ASSERT_TRUE(chosen.init(o.arena, o.program, o.config.dim, KvType::k4v3, 1, 400, 16, {40, 0, KvChoice::h2o}));
  EXPECT_EQ(chosen.exact(0, 2).capacity, 0u);
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::q4, 1, 400));
  EXPECT_EQ(memory.exact(0, 2).capacity, 0u);
}

TEST(SequenceMemory, ARingGoesBackOnlyToWhatItStillHolds) {
  SmallOptions options;
  options.window = 6;
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 2, 40));
  const std::uint32_t capacity = memory.kv(0, 1).capacity;
  memory.write(0, capacity);
  EXPECT_EQ(memory.rewind(0, 3), 3u) << "nothing was overwritten";
  memory.write(0, 30);
  const std::uint32_t farthest = 30 - capacity + 5;  // sees five more; the ring has 30 - capacity to 29
  EXPECT_EQ(memory.rewind(0, farthest), farthest);
  EXPECT_EQ(memory.rewind(0, farthest - 1), 0u);
  EXPECT_EQ(memory.rewind(0, 0), 0u);
  memory.write(0, 8);
  EXPECT_EQ(memory.rewind(0, 4), 4u) << "it began anew";
  EXPECT_EQ(memory.rewind(1, 0), 0u);
}

TEST(SequenceMemory, WhatAnotherLayerSeesIsKeptForAWholePass) {
  SmallOptions options;
  options.n_layers = 3;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    kind.window = 6;
    kind.kv_from = layer == 2 ? 1 : 0;
  };
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 1, 40, 16));
  EXPECT_EQ(memory.kv(0, 1).capacity, 6u + 16 - 1);
  EXPECT_EQ(memory.kv(0, 2).capacity, 6 + kTogether - 1);
  EXPECT_EQ(memory.kv(0, 3).data, memory.kv(0, 1).data);
  EXPECT_EQ(memory.kv(0, 3).capacity, memory.kv(0, 1).capacity);
  EXPECT_NE(memory.kv(0, 2).data, memory.kv(0, 1).data);
}

TEST(SequenceMemory, LayersWithoutAttentionKeepNothing) {
  SmallOptions options;
  options.shape = [](std::uint32_t, LayerKind& kind) { kind.mixer = Mixer::none; };
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f32, 4, 1000));
  EXPECT_EQ(o.arena.used(Region::kv_cache), 0u);
  EXPECT_EQ(memory.scores(), 0u);
  memory.write(0, 500);
  EXPECT_EQ(memory.rewind(0, 3), 3u);
}

SmallOptions with_states() {
  SmallOptions options;
  options.shape = [](std::uint32_t, LayerKind& kind) {
    kind.mixer = Mixer::short_conv;
    kind.conv_taps = 3;
  };
  return options;
}

TEST(SequenceMemory, APassMakesAStateBesideTheOneBeforeIt) {
  Opened o(with_states());
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 2, 40));
  memory.write(0, 5);
  const StateMemory fresh = memory.state(0, 1);
  EXPECT_EQ(fresh.before, nullptr) << "there is nothing before position 0";
  EXPECT_NE(memory.state(0, 2).now, fresh.now) << "each layer has its own";
  memory.commit(0, 5, false);
  memory.write(0, 6);
  EXPECT_EQ(memory.state(0, 1).before, fresh.now);
  EXPECT_NE(memory.state(0, 1).now, fresh.now);
  // A pass that does not end leaves what was before it.
  EXPECT_EQ(memory.rewind(0, 5), 5u);
  memory.write(0, 6);
  EXPECT_EQ(memory.state(0, 1).before, fresh.now);
}

TEST(SequenceMemory, AStateGoesBackToItsCheckpointOrTheBeginning) {
  Opened o(with_states());
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 2, 40));
  const auto pass = [&](std::uint32_t end, bool keep) {
    memory.write(0, end);
    const StateMemory state = memory.state(0, 1);
    EXPECT_NE(state.before, state.now);
    memory.commit(0, end, keep);
    return state.now;
  };
  const float* const at_8 = pass(8, false);
  const float* const at_10 = pass(10, true);
  for (std::uint32_t end = 11; end < 20; ++end) EXPECT_NE(pass(end, false), at_8) << "the checkpoint stays";
  EXPECT_EQ(memory.rewind(0, 19), 19u);
  EXPECT_EQ(memory.rewind(0, 12), 8u);
  EXPECT_EQ(memory.state(0, 1).before, at_8);
  EXPECT_NE(pass(9, false), at_8);
  EXPECT_EQ(memory.rewind(0, 8), 8u) << "it can be gone back to again";
  EXPECT_EQ(memory.rewind(0, 7), 0u);
  EXPECT_EQ(memory.state(0, 1).before, nullptr);
  EXPECT_EQ(memory.rewind(0, 8), 0u) << "the checkpoint was of what is no more";
  EXPECT_NE(at_10, nullptr);
}

// Guesses begin with the state of the known tokens and write to memory of their own.
TEST(SequenceMemory, AStateNeverHasAGuess) {
  Opened o(with_states());
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 2, 40, kTogether, {}, false, true));
  memory.write(0, 12);
  const StateMemory known = memory.state(0, 1), guess = memory.state(0, 1, true);
  EXPECT_EQ(guess.before, known.now);
  for (const std::uint32_t sequence : {0u, 1u}) EXPECT_NE(guess.now, memory.state(sequence, 1).now);
  memory.commit(0, 9, true);
  EXPECT_EQ(memory.rewind(0, 12), 9u) << "right guesses are computed again";
  memory.write(0, 13);
  EXPECT_EQ(memory.state(0, 1).before, known.now);
  EXPECT_NE(memory.state(0, 1).now, known.now);
}

TEST(SequenceMemory, ACheckpointBehindAWindowsRingIsNone) {
  SmallOptions options = with_states();
  options.window = 6;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    if (layer == 1) return;
    kind.mixer = Mixer::short_conv;
    kind.conv_taps = 3;
  };
  Opened o(options);
  SequenceMemory memory;
  ASSERT_TRUE(memory.init(o.arena, o.program, o.config.dim, KvType::f16, 1, 40));
  memory.write(0, 8);
  memory.commit(0, 8, false);
  memory.write(0, 9);
  memory.commit(0, 9, true);
  EXPECT_EQ(memory.rewind(0, 8), 8u);
  memory.write(0, 30);
  memory.commit(0, 30, false);
  EXPECT_EQ(memory.rewind(0, 20), 0u);
}

}  // namespace
}  // namespace qsf::test
