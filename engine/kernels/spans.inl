// A span of a strip's groups. It is unpacked once for more activation columns than a pass keeps in registers.

namespace qsf {
namespace {

inline constexpr int kSpan = int{kMaxBlock} / int{kGroup};  // groups: whole blocks of every format
inline constexpr std::uint32_t kSpanColumns = 128;          // columns that one unpacking serves

/// An unpacked span of one strip, small enough for the first level of cache.
template <TileKind kKind>
struct UnpackedSpan {
  static constexpr int kPer = kKind.per_group();
  static constexpr int kParts = kSpan * kPer;
  static constexpr int kDots = kMaxDots / kPer;

  alignas(kLine) std::byte levels[kParts][kDots][kTileLoad];
  float scales[kParts][kLanes];
  float minima[kKind.has_min ? kParts : 1][kLanes];
  float sums[kSpanColumns][kLanes];  // partial sums of the strip with each column
};

/// Returns the number of groups in a row, rounded up to whole blocks.
constexpr std::size_t whole_groups(std::uint32_t cols, const TileShape& shape) {
  return (groups_of(cols) + shape.groups - 1) / shape.groups * shape.groups;
}

/// Unpacks levels and scales of `n_groups` groups of a strip. With kSigned, levels are stored without their offset.
template <TileKind kKind, bool kSigned>
void unpack_span(UnpackedSpan<kKind>& out, const TileShape& shape, const std::byte* tile, std::size_t n_groups) {
  static_assert(!kSigned || kKind.has_offset || kKind.level_bits() < 8, "no level is above 127");
  constexpr int kDots = UnpackedSpan<kKind>::kDots;
  const Bits less = broadcast(0x01010101u * static_cast<std::uint8_t>(-shape.offset));
  std::size_t at = 0;
  const auto unpack = [&](auto part, auto& codes, const auto& scales, std::size_t sub, const std::byte* lines)
                          __attribute__((always_inline)) {
                            constexpr int kPart = decltype(part)::value;
                            unroll<kDots>([&](auto index) __attribute__((always_inline)) {
                              constexpr int kAt = kPart * kDots + decltype(index)::value;
                              Bits levels = codes.of[0].template levels<kAt>();
                              if constexpr (kSigned && kKind.has_offset) levels = add_u8(levels, less);
                              store(out.levels[at][decltype(index)::value], levels);
                              ask_ahead<kKind, kAt>(lines, kBothLevels);
                            });
                            if constexpr (kPart + 1 == kKind.per_group()) codes.of[0].template next<1>();
                            store(out.scales[at], scales[0].scale(sub));
                            if constexpr (kKind.has_min) store(out.minima[at], scales[0].minimum(sub));
                            ++at;
                          };
  for_each_part<kKind, 1>(n_groups, shape, tile, 0, unpack, [] {});
}

/// The levels and scales of a span, with the interface of TileCodes and TileScales.
template <TileKind kKind>
class SpanCodes {
 public:
  QSF_INLINE explicit SpanCodes(const UnpackedSpan<kKind>& span) : parts_(span.levels) {}

  template <int kAt>
  QSF_INLINE Bits levels() const {
    return load<Bits>(parts_[kAt / kDots][kAt % kDots]);
  }
  template <int kOf>
  QSF_INLINE void next() {
    static_assert(kOf == 1);
    parts_ += kKind.per_group();
  }

 private:
  static constexpr int kDots = UnpackedSpan<kKind>::kDots;
  const std::byte (*parts_)[kDots][kTileLoad];
};
template <TileKind kKind>
struct SpanScales {
  const UnpackedSpan<kKind>& span;

  QSF_INLINE Floats scale(std::size_t part) const { return load(span.scales[part]); }
  QSF_INLINE Floats minimum(std::size_t part) const { return load(span.minima[part]); }
};

}  // namespace
}  // namespace qsf
