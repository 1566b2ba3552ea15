// Products of matrix tiles, for vocabularies that have them: the dots of a part of a group, for kTilePass columns at
// once. add_part() makes of them what it makes of all others.

namespace qsf {
namespace {

/// 0 where there are none.
inline constexpr int kTilePass = MatrixTiles<Ints>::kColumns;
static_assert(kTilePass == 0 || kTilePass == 16, "for_columns() has no other");

/// A strip times kTilePass columns from `column` on.
template <TileKind kKind, class Tiles>
void strip_times_tile(Tiles& tiles, const MatmulArgs& a, const TileShape& shape, const std::byte* strip,
                      std::uint32_t row, std::uint32_t column) {
  constexpr int kPer = kKind.per_group();
  constexpr int kDots = kMaxDots / kPer;
  constexpr int kPanels = kTilePass / int{kPanel};
  static_assert(dot_bias<kKind.level_bits()> == 0, "tiles take codes as they are");
  PanelPass panels[kPanels];
  begin_panels<kPer>(panels, a, column);
  const float offset = dot_offset<kKind>(shape);

  alignas(kLine) std::byte levels[kDots][kTileLoad];
  alignas(kLine) std::int32_t sums[kTilePass][kLanes];
  Floats acc[kTilePass];
  unroll<kTilePass>([&](auto c) __attribute__((always_inline)) { acc[c] = broadcast(0.0f); });
  const auto add = [&](auto part, auto& codes, const auto& scales, std::size_t sub,
                       const std::byte* ahead) __attribute__((always_inline)) {
    constexpr int kPart = decltype(part)::value;
    unroll<kDots>([&](auto index) __attribute__((always_inline)) {
      constexpr int kAt = kPart * kDots + decltype(index)::value;
      store(levels[index], codes.of[0].template levels<kAt>());
      read_ahead<kKind, kAt>(ahead);
    });
    if constexpr (kPart + 1 == kPer) codes.of[0].template next<1>();
    tiles.load_codes(levels);
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
      tiles.template multiply<decltype(p)::value>(panels[p].codes + kPart * kDots * kTileGroup, sums[p * kPanel]);
    });
    unroll<kTilePass>([&](auto c) __attribute__((always_inline)) {
      constexpr int kC = decltype(c)::value;
      add_part<kKind, kC % kPanel, kPart>(acc[c], load<Ints>(sums[c]), scales[0], sub, offset, panels[kC / kPanel]);
    });
  };
  for_each_part<kKind, 1>(a, shape, strip, 0, panels, kPanel, add);
  unroll<kTilePass>([&](auto c) __attribute__((always_inline)) { store_strip(a, row, column + c, acc[c]); });
}

}  // namespace
}  // namespace qsf
