#include "model/lanes.h"

#include "tests/model/opened.h"

namespace qsf::test {
namespace {

using testing::SmallOptions;

TEST(Lanes, LieApart) {
  Opened o;
  Lanes lanes;
  ASSERT_TRUE(lanes.init(o.arena, o.program, KvType::f16, 3, 20));
  std::vector<std::pair<std::byte*, std::byte*>> pieces;
  for (std::uint32_t sequence = 0; sequence < 3; ++sequence) {
    for (std::uint32_t section = 1; section <= 2; ++section) {
      const KvLane lane = lanes.kv(sequence, section);
      EXPECT_EQ(lane.capacity, 20u);
      EXPECT_EQ(lane.window, 20u);
      for (std::uint32_t head = 0; head < lane.n_heads; ++head) {
        for (std::byte* begin : {lane.keys(head), lane.values(head)}) {
          pieces.emplace_back(begin, begin + lane.capacity * lane.position_bytes);
        }
      }
    }
  }
  EXPECT_EQ(pieces.size(), 3u * 2 * 2 * 2);
  std::ranges::sort(pieces);
  for (std::size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i - 1].second, pieces[i].first);
}

TEST(Lanes, AWindowKeepsWhatTheOldestOfAGroupSees) {
  SmallOptions options;
  options.shape = [](std::uint32_t layer, LayerKind& kind) { kind.window = layer == 0 ? 6 : 0; };
  Opened o(options);
  Lanes lanes;
  ASSERT_TRUE(lanes.init(o.arena, o.program, KvType::f16, 1, 40));
  EXPECT_EQ(lanes.kv(0, 1).capacity, 6 + kTogether - 1);
  EXPECT_EQ(lanes.kv(0, 1).window, 6u);
  EXPECT_EQ(lanes.kv(0, 2).capacity, 40u);
}

TEST(Lanes, ARingGoesBackOnlyToWhatItStillHolds) {
  SmallOptions options;
  options.window = 6;
  Opened o(options);
  Lanes lanes;
  ASSERT_TRUE(lanes.init(o.arena, o.program, KvType::f16, 2, 40));
  const std::uint32_t capacity = lanes.kv(0, 1).capacity;
  lanes.write(0, capacity);
  EXPECT_EQ(lanes.rewind(0, 3), 3u) << "nothing was overwritten";
  lanes.write(0, 30);
  // The ring has 30 - capacity to 29; a token at 26 sees 21 to 25, one at 25 would want 20.
  EXPECT_EQ(lanes.rewind(0, 30 - capacity + 5), 26u);
  EXPECT_EQ(lanes.rewind(0, 25), 0u);
  EXPECT_EQ(lanes.rewind(0, 0), 0u);
  lanes.write(0, 8);
  EXPECT_EQ(lanes.rewind(0, 4), 4u) << "it began anew";
  EXPECT_EQ(lanes.rewind(1, 0), 0u);
}

TEST(Lanes, LayersWithoutAttentionKeepNothing) {
  SmallOptions options;
  options.shape = [](std::uint32_t, LayerKind& kind) { kind.mixer = Mixer::none; };
  Opened o(options);
  Lanes lanes;
  ASSERT_TRUE(lanes.init(o.arena, o.program, KvType::f32, 4, 1000));
  EXPECT_EQ(o.arena.used(Region::lanes), 0u);
  EXPECT_EQ(lanes.scores(), 0u);
  lanes.write(0, 500);
  EXPECT_EQ(lanes.rewind(0, 3), 3u);
}

}  // namespace
}  // namespace qsf::test
