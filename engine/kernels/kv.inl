// The KV cache of one head. A policy for each type of cache defines how positions are written and read. kShort states
// that values have at most 11 significant bits, so that their products with numbers of 13 bits are exact floats.

namespace qsf {
namespace {

/// Widens `n` elements of kBytes each to floats, in whole vectors. Lanes after the last element are 0.
template <std::size_t kBytes, class Load>
QSF_INLINE void widen_elements(const std::byte* from, std::size_t n, float* to, Load load_all) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load_all(from + i * kBytes));
  if (i < n) {
    std::byte padded[kLanes * kBytes] = {};
    __builtin_memcpy(padded, from + i * kBytes, (n - i) * kBytes);
    store(to + i, load_all(padded));
  }
}

struct KvF32 {
  static constexpr KvForm kForm = KvForm::f32;
  static constexpr bool kShort = false;
  QSF_INLINE static Floats lanes(const std::byte* position, std::size_t d) { return load(position + 4 * d); }
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    widen_elements<4>(position, head_dim, to,
                      [](const std::byte* at) __attribute__((always_inline)) { return load(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    __builtin_memcpy(to, x, head_dim * sizeof(float));
  }
};

struct KvF16 {
  static constexpr KvForm kForm = KvForm::f16;
  static constexpr bool kShort = true;
  QSF_INLINE static Floats lanes(const std::byte* position, std::size_t d) {
    return load_promote_f16(position + 2 * d);
  }
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    widen_elements<2>(position, head_dim, to,
                      [](const std::byte* at) __attribute__((always_inline)) { return load_promote_f16(at); });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::uint16_t half[kLanes];
      store_demote_u16(half, demote_f16(load_n(x + i, n)));
      __builtin_memcpy(to + i * 2, half, n * 2);
    }
  }
};

/// A float scale, then int8 codes: value = scale * code.
struct KvQ8 {
  static constexpr KvForm kForm = KvForm::q8;
  static constexpr bool kShort = false;
  QSF_INLINE static Floats lanes(const std::byte* position, std::size_t d) {
    return scale_of(position) * convert_to<Floats>(load_promote_i8(position + sizeof(float) + d));
  }
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    const Floats scale = scale_of(position);
    widen_elements<1>(position + sizeof(float), head_dim, to, [&](const std::byte* at) __attribute__((always_inline)) {
      return scale * convert_to<Floats>(load_promote_i8(at));
    });
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    Bits most = broadcast(0u);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      most = max(abs_bits(load_n(x + i, head_dim - i)), most);
    }
    const Int8Scale scale = int8_scale(reduce_max(most));
    __builtin_memcpy(to, &scale.d, sizeof scale.d);
    for (std::size_t i = 0; i < head_dim; i += kLanes) {
      const std::size_t n = head_dim - i < kLanes ? head_dim - i : kLanes;
      std::int8_t codes[kLanes];
      store_demote_i8(codes, int8_codes(load_n(x + i, n), scale));
      __builtin_memcpy(to + sizeof scale.d + i, codes, n);
    }
  }

 private:
  QSF_INLINE static Floats scale_of(const std::byte* position) {
    float scale;
    __builtin_memcpy(&scale, position, sizeof scale);
    return broadcast(scale);
  }
};

/// Whether an instruction takes values by codes of four bits. The values of all codes of a group are computed first
/// then.
template <class Vector>
inline constexpr bool kHasValuesAt = requires(Vector values, Bits codes) { values_at(values, codes); };

/// Returns first + step * code for the codes of kBits bits in order, again and again.
template <int kBits>
constexpr std::array<float, kLanes> numbers_of_codes(float first, float step) {
  std::array<float, kLanes> numbers{};
  for (int i = 0; i < kLanes; ++i) numbers[i] = first + step * static_cast<float>(i % (1 << kBits));
  return numbers;
}

/// Groups of 32 values: a bf16 scale, a bf16 minimum, then codes; value = minimum + scale * code. Value v is in byte v
/// % kCodeBytes, from bit kBits * (v / kCodeBytes) on. Scale and minimum are rounded outwards, so that every value of
/// the group is within half a scale of its code's value. A short last group repeats its last value.
template <int kBits>
struct KvGroups {
  static constexpr KvForm kForm = kBits == 4 ? KvForm::q4 : KvForm::q2;
  static constexpr bool kShort = false;
  static constexpr std::size_t kCodeBytes = kKvGroup * kBits / 8;
  static constexpr std::size_t kHeadBytes = 4;  // the scale in the lower half of a word, the minimum in the upper
  static constexpr std::uint32_t kUpper[kLanes] = {0, 0, 0, 0, 0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  static constexpr std::uint32_t kTop = (1u << kBits) - 1;

  QSF_INLINE static Floats lanes(const std::byte* position, std::size_t d) {
    const Group group(position + d / kKvGroup * (kHeadBytes + kCodeBytes));
    return d % kKvGroup == 0 ? group.low() : group.high();
  }
  /// Writes whole groups of kKvGroup floats.
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, position += kHeadBytes + kCodeBytes) {
      const Group group(position);
      store(to + d, group.low());
      store(to + d + kLanes, group.high());
    }
  }

  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, to += kHeadBytes + kCodeBytes) {
      float values[kKvGroup];
      for (std::size_t i = 0; i < kKvGroup; ++i) values[i] = x[d + i < head_dim ? d + i : head_dim - 1];
      write_group(load(values), load(values + kLanes), to);
    }
  }

 private:
  struct Group {
    Floats scale, minimum;
    Bits codes;  // the first 16 values' codes from bit 0 on, the others' from bit 4 on

    QSF_INLINE explicit Group(const std::byte* at) {
      std::uint32_t head;
      __builtin_memcpy(&head, at, sizeof head);
      scale = broadcast(bit_cast<float>(head << 16));
      minimum = broadcast(bit_cast<float>(head & 0xffff0000u));
      if constexpr (kBits == 4) {
        codes = load_promote_u8(at + kHeadBytes);
      } else {  // the upper half of the lanes holds each byte's next code
        std::byte twice[2 * kCodeBytes];
        __builtin_memcpy(twice, at + kHeadBytes, kCodeBytes);
        __builtin_memcpy(twice + kCodeBytes, at + kHeadBytes, kCodeBytes);
        const Bits bytes = load_promote_u8(twice);
        codes = select(load<Bits>(kUpper), shift_right<kBits>(bytes), bytes);
      }
    }
    QSF_INLINE Floats low() const { return value(scale, codes); }
    QSF_INLINE Floats high() const { return value(scale, shift_right<4>(codes)); }

   private:
    static constexpr std::array kNumbers = numbers_of_codes<kBits>(0, 1);
    template <class Vector>
    QSF_INLINE Vector value(Vector by, Bits code) const {
      if constexpr (kHasValuesAt<Vector>) {
        return values_at(minimum + by * load(kNumbers.data()), code);
      } else {
        return minimum + by * convert_to<Floats>(bit_cast<Ints>(code & broadcast(kTop)));
      }
    }
  };

  /// Writes a NaN as the scale if a value or the range is not finite, so that results show it. A scale below 2^-120 is
  /// written as 0.
  QSF_INLINE static void write_group(Floats low, Floats high, std::byte* to) {
    const float most = reduce_max(max(low, high));
    const float least = -reduce_max(max(broadcast(0.0f) - low, broadcast(0.0f) - high));
    auto minimum_bits = bit_cast<std::uint32_t>(least);
    if ((minimum_bits >> 31) != 0) minimum_bits += 0xffffu;
    minimum_bits &= 0xffff0000u;
    const float minimum = bit_cast<float>(minimum_bits);
    std::uint32_t scale_bits = bit_cast<std::uint32_t>((most - minimum) / static_cast<float>(kTop)) + 0xffffu;
    scale_bits &= 0xffff0000u;
    const bool finite = reduce_max(max(abs_bits(low), abs_bits(high))) < 0x7f800000u;
    if (!finite || scale_bits >= 0x7f800000u) {
      scale_bits = 0x7fc00000u;
      minimum_bits = 0;
    } else if (scale_bits < 0x03800000u) {
      scale_bits = 0;
    }
    const std::uint32_t head = scale_bits >> 16 | minimum_bits;
    __builtin_memcpy(to, &head, sizeof head);

    std::uint32_t codes[kKvGroup] = {};
    if (scale_bits != 0 && scale_bits < 0x7f800000u) {
      const Floats scale = broadcast(bit_cast<float>(scale_bits));
      store(codes, nearest_int((low - broadcast(minimum)) / scale));
      store(codes + kLanes, nearest_int((high - broadcast(minimum)) / scale));
    }
    for (std::size_t j = 0; j < kCodeBytes; ++j) {
      std::uint32_t byte = 0;
      for (std::size_t i = 0; i < 8 / kBits; ++i) byte |= codes[i * kCodeBytes + j] << (kBits * i);
      to[kHeadBytes + j] = static_cast<std::byte>(byte);
    }
  }
};

/// Groups of 32 values, a scale and codes: value = scale * level. A scale of kScaleBits significant bits, in bf16, and
/// levels of the others make values of at most 11. Levels are the odd numbers from -(2^kBits - 1) to 2^kBits - 1, or
/// the numbers from -127 to 127. A short last group ends with zeros.
template <int kBits>
struct KvRotated {
  static constexpr KvForm kForm = kBits == 8   ? KvForm::r8
                                  : kBits == 4 ? KvForm::r4
                                  : kBits == 3 ? KvForm::r3
                                               : KvForm::r2;
  static constexpr bool kShort = true;
  static constexpr std::size_t kHeadBytes = 2;
  static constexpr std::size_t kCodeBytes = kKvGroup * kBits / 8;
  static constexpr int kScaleBits = kBits == 8 ? 4 : kBits == 4 ? 7 : 8;
  static constexpr std::int32_t kTop = kBits == 8 ? 127 : (1 << kBits) - 1;
  static constexpr std::uint32_t kUpper[kLanes] = {0, 0, 0, 0, 0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  static constexpr std::array kLevels = numbers_of_codes<kBits>(-kTop, 2);
  static constexpr std::uint32_t kOwnBit[kLanes] = {1u << 0,  1u << 1,  1u << 2,  1u << 3, 1u << 4,  1u << 5,
                                                    1u << 6,  1u << 7,  1u << 8,  1u << 9, 1u << 10, 1u << 11,
                                                    1u << 12, 1u << 13, 1u << 14, 1u << 15};

  QSF_INLINE static Floats lanes(const std::byte* position, std::size_t d) {
    const std::byte* const group = position + d / kKvGroup * (kHeadBytes + kCodeBytes);
    Floats low, high;
    widen_group(group, low, high);
    return d % kKvGroup == 0 ? low : high;
  }
  /// Writes whole groups of kKvGroup floats.
  QSF_INLINE static void widen(const std::byte* position, std::size_t head_dim, float* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, position += kHeadBytes + kCodeBytes) {
      Floats low, high;
      widen_group(position, low, high);
      store(to + d, low);
      store(to + d + kLanes, high);
    }
  }
  QSF_INLINE static void write(const float* x, std::size_t head_dim, std::byte* to) {
    for (std::size_t d = 0; d < head_dim; d += kKvGroup, to += kHeadBytes + kCodeBytes) {
      const std::size_t left = head_dim - d;
      write_group(load_n(x + d, left), load_n(x + d + kLanes, left < kLanes ? 0 : left - kLanes), to);
    }
  }

 private:
  QSF_INLINE static void widen_group(const std::byte* at, Floats& low, Floats& high) {
    std::uint16_t head;
    __builtin_memcpy(&head, at, sizeof head);
    const Floats scale = broadcast(bit_cast<float>(std::uint32_t{head} << 16));
    at += kHeadBytes;
    if constexpr (kBits == 8) {
      low = scale * convert_to<Floats>(load_promote_i8(at));
      high = scale * convert_to<Floats>(load_promote_i8(at + kLanes));
    } else {
      low = value(scale, codes_of(at, 0));
      high = value(scale, codes_of(at, 1));
    }
  }
  /// Returns the codes of one half of a group.
  QSF_INLINE static Bits codes_of(const std::byte* at, int half) {
    if constexpr (kBits == 4) {
      const Bits both = load_promote_u8(at);
      if (half != 0) return shift_right<4>(both);
      return kHasValuesAt<Floats> ? both : both & broadcast(15u);
    } else {
      std::byte twice[2 * 8];  // the upper half of the lanes has each byte's next code
      __builtin_memcpy(twice, at, 8);
      __builtin_memcpy(twice + 8, at, 8);
      Bits bytes = load_promote_u8(twice);
      if (half != 0) bytes = shift_right<4>(bytes);
      const Bits two = select(load<Bits>(kUpper), shift_right<2>(bytes), bytes) & broadcast(3u);
      if constexpr (kBits == 2) return two;
      std::uint32_t word;
      __builtin_memcpy(&word, at + 8, sizeof word);
      const Bits set = gt(broadcast(half == 0 ? word : word >> 16) & load<Bits>(kOwnBit), broadcast(0u));
      return two | (set & broadcast(4u));
    }
  }
  /// Exact, because twice the code times the scale has at most 11 bits and so has the sum.
  template <class Vector>
  QSF_INLINE static Vector value(Vector scale, Bits code) {
    if constexpr (kHasValuesAt<Vector>) {
      return values_at(scale * load(kLevels.data()), code);
    } else {
      const Ints level = bit_cast<Ints>(code + code) - broadcast(kTop);
      return scale * convert_to<Floats>(level);
    }
  }

  /// Writes a NaN as the scale if a value is not finite, so that results show it. A scale below 2^-30 is written as 0,
  /// because products with weights would not be exact.
  QSF_INLINE static void write_group(Floats low, Floats high, std::byte* to) {
    const std::uint32_t most = reduce_max(max(abs_bits(low), abs_bits(high)));
    constexpr std::uint32_t kBelow = (1u << (24 - kScaleBits)) - 1;
    std::uint32_t scale_bits = bit_cast<std::uint32_t>(bit_cast<float>(most) / static_cast<float>(kTop)) + kBelow;
    scale_bits &= ~kBelow;
    if (most >= 0x7f800000u) {
      scale_bits = 0x7fc00000u;
    } else if (scale_bits < 0x30800000u) {
      scale_bits = 0;
    }
    const auto head = static_cast<std::uint16_t>(scale_bits >> 16);
    __builtin_memcpy(to, &head, sizeof head);
    to += kHeadBytes;

    std::int32_t levels[kKvGroup] = {};
    if (scale_bits != 0 && scale_bits < 0x7f800000u) {
      const Floats scale = broadcast(bit_cast<float>(scale_bits));
      store(levels, rounded(low / scale));
      store(levels + kLanes, rounded(high / scale));
    }
    if constexpr (kBits == 8) {
      for (std::size_t i = 0; i < kKvGroup; ++i) to[i] = static_cast<std::byte>(levels[i]);
    } else {
      constexpr std::size_t kLow = kBits == 4 ? 4 : 2, kBytes = kKvGroup * kLow / 8;
      for (std::size_t j = 0; j < kBytes; ++j) {
        std::uint32_t byte = 0;
        for (std::size_t i = 0; i < 8 / kLow; ++i) {
          byte |= (static_cast<std::uint32_t>(levels[i * kBytes + j]) & ((1u << kLow) - 1)) << (kLow * i);
        }
        to[j] = static_cast<std::byte>(byte);
      }
      if constexpr (kBits == 3) {
        std::uint32_t word = 0;
        for (std::size_t i = 0; i < kKvGroup; ++i) word |= (static_cast<std::uint32_t>(levels[i]) >> 2) << i;
        __builtin_memcpy(to + kBytes, &word, sizeof word);
      }
    }
  }
  /// Returns levels from -127 to 127, or the number of a level in ascending order.
  QSF_INLINE static Ints rounded(Floats x) {
    if constexpr (kBits == 8) return nearest_int(x);
    return nearest_int((x + broadcast(static_cast<float>(kTop))) * broadcast(0.5f));
  }
};

template <class Kv>
void kv_store(const float* x, std::uint32_t head_dim, std::byte* to) {
  Kv::write(x, head_dim, to);
}

}  // namespace
}  // namespace qsf
