// The positions of a head in the KV cache, and the functions that widen them to floats.

namespace qsf {
namespace {

inline constexpr bool kTurnsKeys = kParts == 1;

struct Ring;

/// The functions that widen a form to floats.
struct Reader {
  KvForm form;
  void (*widen)(const Ring& ring, std::uint32_t first, std::uint32_t n, std::size_t stride, float* tile);
  void (*widen_turned)(const Ring& ring, std::uint32_t first, std::uint32_t n, float* tile);
};

/// Keys or values of one head: the first positions in the first slots, the others in the remaining slots in turn.
struct Ring {
  const std::byte* data;
  const Reader* reader;
  std::uint32_t head_dim, capacity, first_kept;

  QSF_INLINE std::size_t bytes() const { return kv_bytes(reader->form, head_dim); }
  QSF_INLINE std::uint32_t slot(std::uint32_t at) const {
    return at < first_kept ? at : first_kept + (at - first_kept) % (capacity - first_kept);
  }
};

/// Widens `n` positions of a ring from position `first` on to floats: [n, stride].
template <class Kv>
void widen(const Ring& ring, std::uint32_t first, std::uint32_t n, std::size_t stride, float* tile) {
  const std::size_t bytes = kv_bytes(Kv::kForm, ring.head_dim);
  std::uint32_t slot = ring.slot(first);
  for (std::uint32_t i = 0; i < n; ++i) {
    Kv::widen(ring.data + slot * bytes, ring.head_dim, tile + i * stride);
    if (++slot == ring.capacity) slot = ring.first_kept;
  }
}

/// Widens and transposes a tile of keys into panels of 16: [head_dim, 16] each. The last key is repeated to fill its
/// panel.
template <class Kv>
void widen_turned(const Ring& ring, std::uint32_t first, std::uint32_t n, float* tile) {
  const std::size_t bytes = kv_bytes(Kv::kForm, ring.head_dim);
  std::uint32_t slot = ring.slot(first);
  for (std::uint32_t i = 0; i < n; i += kLanes, tile += ring.head_dim * std::size_t{kLanes}) {
    const std::byte* keys[kLanes];
    for (std::uint32_t j = 0; j < kLanes; ++j) {
      keys[j] = ring.data + slot * bytes;
      if (i + j + 1 < n && ++slot == ring.capacity) slot = ring.first_kept;
    }
    for (std::size_t d = 0; d < ring.head_dim; d += kLanes) {
      FloatPart turned[kLanes];
      unroll<kLanes>([&](auto j) __attribute__((always_inline)) { turned[j] = Kv::lanes(keys[j], d).part[0]; });
      transpose(turned);
      unroll<kLanes>([&](auto j)
                         __attribute__((always_inline)) { store(tile + (d + j) * kLanes, Floats{{turned[j]}}); });
    }
  }
}

template <class Kv>
constexpr Reader reader_of() {
  if constexpr (kTurnsKeys) return {Kv::kForm, widen<Kv>, widen_turned<Kv>};
  return {Kv::kForm, widen<Kv>, nullptr};
}
inline constexpr Reader kReaders[kKvForms]{
    reader_of<KvF32>(),        reader_of<KvF16>(),        reader_of<KvQ8>(),
    reader_of<KvGroups<4>>(),  reader_of<KvGroups<2>>(),  reader_of<KvRotated<8>>(),
    reader_of<KvRotated<4>>(), reader_of<KvRotated<3>>(), reader_of<KvRotated<2>>()};

}  // namespace
}  // namespace qsf
