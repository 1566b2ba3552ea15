// The common part of all vector vocabularies. A vector is 16 lanes of float or int32, stored as kParts native vectors
// or scalars. Arithmetic is the compiler's own arithmetic on each part, so that a vocabulary defines only the
// operations that differ. Everything is internal to the translation unit, because code built for one processor must
// never be linked into another's path.
//
// A vocabulary defines kParts before including this file. After it, in the same unnamed namespace, it defines:
//   kNeeds                                      processor features that this code needs
//   Floats load_promote_f16(at)                 16 binary16 to float, exactly
//   the conversions declared below              convert.h has them in plain C++
//   Operand<bits> operand<bits>(Bits codes)     4 unsigned codes per lane, in the form that the dot takes
//   dot_bias<bits>                              the number that the operand has already subtracted from every code
//   Sum<bits>                                   aggregate, empty braces are zero
//   void dot<bits>(Sum&, Operand, Bits x)       adds code * x over the 4 bytes of each lane; x: 4 int8 in [-127, 127],
//                                               the same in every lane
//   Ints total<bits>(Sum)                       the exact sum of up to kMaxDots dots
//   Bits table_lookup(Bits table, Bits codes)   the byte table[code] for each byte of codes, 0..15; the table is in
//                                               every quarter
//   FloatPart plus_product(a, b, c)             optional: a + b c in one step, for products that are exact floats
//   field_operand<bits, shift>(Bits bytes)      optional: the operand of codes that are these bits of each byte
//   lookup(const uint32_t* table, Bits numbers) optional, with the next: words of a table
//   lookup(const uint64_t*, Bits, low, high)    their low and high halves
//   select_bytes(bits, each, yes, no)           optional: of parts, by the bits of each byte
//   kMaxPass                                    activation columns that one pass keeps in registers: 1, 2, 4 or 8
// A vocabulary for processors that multiply whole matrices also defines MatrixTiles. A vocabulary that processes loads
// in parts (kByParts) also defines:
//   table_lookup of parts
//   SpreadColumn<dots>                          four<k>(): the 4 activations of dot k, as dot_part() takes them
//   IntPart dot_part(sum, BitsPart codes, x)    the sum and a dot of codes of 7 bits
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/isa.h"
#include "qsf/base/half.h"

#ifndef QSF_INLINE
#define QSF_INLINE [[gnu::always_inline]] inline
#endif

namespace qsf {

#ifdef __wasm__
/// A constant that the compiler has to load from memory, because it is not const.
template <std::uint32_t kValue>
inline std::uint32_t constant_in_memory = kValue;
inline constexpr bool kReadsAhead = false;  // WebAssembly has no prefetch
inline constexpr bool kDotsInRow = true;    // engines compute the dots of a sum one after another
inline constexpr bool kFewKernels = true;   // a page loads all kernels
#else
inline constexpr bool kReadsAhead = true;
inline constexpr bool kDotsInRow = false;
inline constexpr bool kFewKernels = false;
#endif

namespace {

#if defined(__wasm__) && !defined(__wasm_relaxed_simd__)
inline constexpr bool kPassesOfTwo = false;  // dots take many instructions here, and the module is an eighth smaller
#else
inline constexpr bool kPassesOfTwo = true;
#endif

inline constexpr int kLanes = 16;
inline constexpr bool kByParts = kDotsInRow && kParts < kLanes;  // few registers for loads unpacked in many steps
inline constexpr int kMaxDots = 8;                               // 4 columns each: a group of 32

template <class T, int kCount>
struct PartOf {
  typedef T type __attribute__((vector_size(kCount * sizeof(T))));
};
template <class T>
struct PartOf<T, 1> {
  using type = T;
};

using FloatPart = PartOf<float, kLanes / kParts>::type;
using IntPart = PartOf<std::int32_t, kLanes / kParts>::type;
using BitsPart = PartOf<std::uint32_t, kLanes / kParts>::type;

using BytesPart = PartOf<std::uint8_t, sizeof(BitsPart)>::type;

struct Floats {
  FloatPart part[kParts];
};
struct Ints {
  IntPart part[kParts];
};
struct Bits {  // unsigned lanes for work on representations; arithmetic wraps
  BitsPart part[kParts];
};

/// Matrix tiles, if a vocabulary specializes this for Ints. An object owns the tiles of its thread while it exists.
///   kColumns                                    activation columns of a pass, whole panels
///   MatrixTiles(int dots)                       the dots of a product, at most kMaxDots
///   void load_columns(const int8_t* x)          loads the columns of a pass, kGroup bytes apart
///   void multiply<k>(const void* by, void* to)  multiplies with 4 signed codes per lane for each dot, and writes
///                                               the exact sums of each column's dots as consecutive Ints; k in [0, 2)
///                                               may run concurrently
template <class Lanes>
class MatrixTiles {
 public:
  static constexpr int kColumns = 0;
};

template <int kDots>
class SpreadColumn;

template <class F, std::size_t... kIndex>
QSF_INLINE void unroll_over(F& f, std::index_sequence<kIndex...>) {
  (f(std::integral_constant<int, static_cast<int>(kIndex)>{}), ...);
}
/// Calls f(0), f(1) ... f(kCount - 1), each with its index as a type.
template <int kCount, class F>
QSF_INLINE void unroll(F f) {
  unroll_over(f, std::make_index_sequence<kCount>{});
}

template <class Part>
QSF_INLINE Part load_part(const std::byte* at) {
  Part part;
  __builtin_memcpy(&part, at, sizeof part);
  return part;
}

template <class V, class F, std::size_t... kIndex>
QSF_INLINE V each_over(F& f, std::index_sequence<kIndex...>) {
  return V{{f(kIndex)...}};
}
/// Returns the vector whose part i is f(i).
template <class V, class F>
QSF_INLINE V each(F f) {
  if constexpr (kParts == kLanes) {  // a loop over scalars compiles in a fraction of the time
    V v;
    for (std::size_t i = 0; i < kParts; ++i) v.part[i] = f(i);
    return v;
  } else {
    return each_over<V>(f, std::make_index_sequence<kParts>{});
  }
}
#define QSF_EACH(V, expression) each<V>([&](std::size_t i) __attribute__((always_inline)) { return expression; })

template <class V>
using PartIn = std::remove_reference_t<decltype(V::part[0])>;

/// Reinterprets the bits as another type; vectors part by part.
template <class To, class From>
QSF_INLINE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  if constexpr (requires {
                  To::part;
                  From::part;
                }) {
    return QSF_EACH(To, bit_cast<PartIn<To>>(from.part[i]));
  } else {
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
  }
}

/// Converts the numbers to another type with the same number of lanes.
template <class To, class From>
QSF_INLINE To convert_to(const From& from) {
  if constexpr (requires {
                  To::part;
                  From::part;
                }) {
    return QSF_EACH(To, convert_to<PartIn<To>>(from.part[i]));
  } else if constexpr (std::is_arithmetic_v<From>) {
    return static_cast<To>(from);
  } else {
    return __builtin_convertvector(from, To);
  }
}

QSF_INLINE Floats operator+(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] + b.part[i]); }
QSF_INLINE Floats operator-(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] - b.part[i]); }
QSF_INLINE Floats operator*(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] * b.part[i]); }
QSF_INLINE Floats operator/(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] / b.part[i]); }
QSF_INLINE Ints operator+(Ints a, Ints b) { return QSF_EACH(Ints, a.part[i] + b.part[i]); }
QSF_INLINE Ints operator-(Ints a, Ints b) { return QSF_EACH(Ints, a.part[i] - b.part[i]); }
QSF_INLINE Bits operator+(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] + b.part[i]); }
QSF_INLINE Bits operator-(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] - b.part[i]); }
QSF_INLINE Bits operator&(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] & b.part[i]); }
QSF_INLINE Bits operator|(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] | b.part[i]); }
QSF_INLINE Bits operator^(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] ^ b.part[i]); }
QSF_INLINE Bits operator~(Bits a) { return QSF_EACH(Bits, ~a.part[i]); }
template <int kBy>
QSF_INLINE Bits shift_left(Bits a) {
  return QSF_EACH(Bits, a.part[i] << kBy);
}
template <int kBy>
QSF_INLINE Bits shift_right(Bits a) {
  return QSF_EACH(Bits, a.part[i] >> kBy);
}
template <int kBy>
QSF_INLINE BitsPart shift_left(BitsPart a) {
  return a << kBy;
}
template <int kBy>
QSF_INLINE BitsPart shift_right(BitsPart a) {
  return a >> kBy;
}
template <int kBy, class V>
QSF_INLINE V rotate_right(V a) {
  return shift_right<kBy>(a) | shift_left<32 - kBy>(a);
}

// Converts the result of a comparison, of native vectors or of scalars, to all ones or zeros.
QSF_INLINE BitsPart vec_from_mask(bool yes) { return BitsPart{} - static_cast<std::uint32_t>(yes); }
template <class Mask>
QSF_INLINE BitsPart vec_from_mask(Mask mask) {
  return bit_cast<BitsPart>(mask);
}
QSF_INLINE Bits gt(Floats a, Floats b) { return QSF_EACH(Bits, vec_from_mask(a.part[i] > b.part[i])); }
QSF_INLINE Bits gt(Bits a, Bits b) { return QSF_EACH(Bits, vec_from_mask(a.part[i] > b.part[i])); }
QSF_INLINE Bits select(Bits mask, Bits yes, Bits no) { return (mask & yes) | (~mask & no); }

/// Returns a > b ? a : b in every lane, which is b if either is not a number. min is a < b ? a : b.
QSF_INLINE Floats max(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] > b.part[i] ? a.part[i] : b.part[i]); }
QSF_INLINE Floats min(Floats a, Floats b) { return QSF_EACH(Floats, a.part[i] < b.part[i] ? a.part[i] : b.part[i]); }
QSF_INLINE Bits max(Bits a, Bits b) { return QSF_EACH(Bits, a.part[i] > b.part[i] ? a.part[i] : b.part[i]); }

QSF_INLINE Floats broadcast(float x) { return QSF_EACH(Floats, (static_cast<void>(i), x - FloatPart{})); }
QSF_INLINE Ints broadcast(std::int32_t x) { return QSF_EACH(Ints, (static_cast<void>(i), IntPart{} + x)); }
QSF_INLINE Bits broadcast(std::uint32_t x) { return QSF_EACH(Bits, (static_cast<void>(i), BitsPart{} + x)); }

/// Returns a constant in every lane. WebAssembly loads it from memory, because V8 rebuilds a vector constant with three
/// instructions at each use.
template <std::uint32_t kValue, class V = Bits>
QSF_INLINE V broadcast() {
#ifdef __wasm__
  const std::uint32_t value = constant_in_memory<kValue>;
#else
  constexpr std::uint32_t value = kValue;
#endif
  if constexpr (std::is_same_v<V, BitsPart>)
    return BitsPart{} + value;
  else
    return broadcast(value);
}

template <float kValue>
QSF_INLINE Floats broadcast() {
  return bit_cast<Floats>(broadcast<std::bit_cast<std::uint32_t>(kValue)>());
}

template <class T>
struct Narrow {  // 16 lanes of a type narrower than 32 bits
  PartOf<T, kLanes / kParts>::type part[kParts];
};

/// Returns a copy of a vector in an array. GCC copies an aggregate in memory 16 bytes at a time, and reading a part of
/// the copy then waits for the stores.
template <class V>
QSF_INLINE V copy_of(const V& v) {
  return QSF_EACH(V, v.part[i]);
}

// Loads part by part, for the same reason.
template <class V = Floats>
QSF_INLINE V load(const void* at) {
  using Part = PartIn<V>;
  return QSF_EACH(V, load_part<Part>(static_cast<const std::byte*>(at) + i * sizeof(Part)));
}
template <class V>
QSF_INLINE void store(void* at, const V& v) {
  unroll<kParts>([&](auto i) __attribute__((always_inline)) {
    const auto part = v.part[decltype(i)::value];
    __builtin_memcpy(static_cast<std::byte*>(at) + decltype(i)::value * sizeof part, &part, sizeof part);
  });
}
// Vocabularies may define better versions.

/// Keeps a value that is used several times in a register, because a compiler may otherwise load it each time.
template <class V>
QSF_INLINE V in_register(V v) {
  return v;
}

/// Loads the first `n` lanes, at most 16, and sets the others to +0.
QSF_INLINE Floats load_n(const float* at, std::size_t n) {
  if (n >= kLanes) return load(at);
  float padded[kLanes] = {};
  __builtin_memcpy(padded, at, n * sizeof(float));
  return load(padded);
}
QSF_INLINE void store_n(float* at, Floats v, std::size_t n) {
  if (n >= kLanes) return store(at, v);
  float padded[kLanes];
  store(padded, v);
  __builtin_memcpy(at, padded, n * sizeof(float));
}

/// Returns bytes 4 kAt .. 4 kAt + 3 of 32, in every lane.
template <int kAt, class Part = BitsPart>
QSF_INLINE Bits load_broadcast(const std::int8_t* group) {
  const auto* const at = reinterpret_cast<const std::byte*>(group);
  if constexpr (sizeof(Part) == 16) {
    constexpr int kLane = kAt % 4;
    const auto four = load_part<Part>(at + kAt / 4 * sizeof(Part));
    const Part part = __builtin_shufflevector(four, four, kLane, kLane, kLane, kLane);
    return QSF_EACH(Bits, (static_cast<void>(i), part));
  } else {
    return broadcast(load_part<std::uint32_t>(at + 4 * kAt));
  }
}

template <class T>
using Four = PartOf<T, 4>::type;

/// Reduces lanes j, j + 4, j + 8 and j + 12 with f, the first half of the tree of kernels.h: l[j] + l[j+8], l[j] +
/// l[j+4], l[j] + l[j+2], l[0] + l[1].
template <class T, class V, class F>
QSF_INLINE Four<T> reduce_to_four(const V& v, F f) {
  struct Quarters {
    Four<T> q[4];
  };
  const auto l = bit_cast<Quarters>(v);
  return f(f(l.q[0], l.q[2]), f(l.q[1], l.q[3]));
}
template <class T, class V, class F>
QSF_INLINE T reduce(const V& v, F f) {
  const Four<T> half = reduce_to_four<T>(v, f);
  return f(f(half[0], half[2]), f(half[1], half[3]));
}
inline constexpr auto kAdd = [](auto a, auto b) __attribute__((always_inline)) { return a + b; };
inline constexpr auto kMax = [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; };

QSF_INLINE Four<float> reduce_sum_to_four(Floats v) { return reduce_to_four<float>(v, kAdd); }
QSF_INLINE float reduce_sum(Floats v) { return reduce<float>(v, kAdd); }
QSF_INLINE std::int32_t reduce_sum(Ints v) { return reduce<std::int32_t>(v, kAdd); }
/// Computes the second half of the tree for four sums at once.
QSF_INLINE Four<float> reduce_sums_of_four(Four<float> a, Four<float> b, Four<float> c, Four<float> d) {
  const Four<float> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four<float> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

/// Adds lanes j and j + kWidth for j in [0, kWidth) of every 2 kWidth lanes. Each row of kRow lanes of the result has
/// the sums of `a`'s row, then those of `b`'s.
template <std::size_t kRow, std::size_t kWidth, class Part>
QSF_INLINE Part add_halves(Part a, Part b) {
  const auto half = [&]<std::size_t... kLane>(auto from, std::index_sequence<kLane...>) __attribute__((always_inline)) {
    constexpr auto at = [](std::size_t lane) {
      const std::size_t of_row = lane % kRow, i = of_row % (kRow / 2);
      return of_row / (kRow / 2) * kLanes + lane / kRow * kRow + i / kWidth * 2 * kWidth + i % kWidth +
             decltype(from)::value;
    };
    return __builtin_shufflevector(a, b, at(kLane)...);
  };
  using Lanes = std::make_index_sequence<kLanes>;
  return half(std::integral_constant<std::size_t, 0>{}, Lanes{}) +
         half(std::integral_constant<std::size_t, kWidth>{}, Lanes{});
}
/// Returns the sums of 16 vectors, each by the tree of kernels.h, if a native vector has 16 lanes.
template <class Part>
QSF_INLINE Part reduce_sums(const Part (&v)[kLanes]) {
  Part four[4];  // the first half's four lanes of vectors i, i + 4, i + 8 and i + 12
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    four[i] = add_halves<16, 4>(add_halves<16, 8>(v[i], v[i + 4]), add_halves<16, 8>(v[i + 8], v[i + 12]));
  });
  return add_halves<4, 1>(add_halves<4, 2>(four[0], four[1]), add_halves<4, 2>(four[2], four[3]));
}

/// Transposes 16 rows of 16, if a native vector has 16 lanes.
template <int kApart = 1, class Part>
QSF_INLINE void transpose(Part (&v)[kLanes]) {
  const auto half = [&]<std::size_t... kLane>(auto from, std::size_t row, std::index_sequence<kLane...>)
                        __attribute__((always_inline)) {
                          constexpr auto at = [](std::size_t lane) {
                            return lane % (2 * kApart) / kApart * (kLanes - kApart) + lane + decltype(from)::value;
                          };
                          return __builtin_shufflevector(v[row], v[row + kApart], at(kLane)...);
                        };
  unroll<kLanes / 2>([&](auto i) __attribute__((always_inline)) {
    constexpr std::size_t kRow = i / kApart * 2 * kApart + i % kApart;
    const Part low = half(std::integral_constant<std::size_t, 0>{}, kRow, std::make_index_sequence<kLanes>{});
    v[kRow + kApart] = half(std::integral_constant<std::size_t, kApart>{}, kRow, std::make_index_sequence<kLanes>{});
    v[kRow] = low;
  });
  if constexpr (2 * kApart < kLanes) transpose<2 * kApart>(v);
}

/// Returns the nearest integer, half to even, for |v| <= 2^22. Adding 1.5 * 2^23 leaves it in the low bits.
QSF_INLINE Ints nearest_int(Floats v) {
  return bit_cast<Ints>(bit_cast<Bits>(v + broadcast(0x1.8p23f)) - broadcast(std::uint32_t{0x4b400000}));
}

/// Adds each byte, modulo 256.
QSF_INLINE Bits add_u8(Bits a, Bits b) {
  if constexpr (kParts == kLanes) {
    const Bits low = (a & broadcast(0x7f7f7f7fu)) + (b & broadcast(0x7f7f7f7fu));
    return QSF_EACH(Bits, low.part[i] ^ ((a.part[i] ^ b.part[i]) & 0x80808080u));
  } else {
    return QSF_EACH(Bits, (BitsPart)((BytesPart)a.part[i] + (BytesPart)b.part[i]));
  }
}
/// Returns 1 in each byte of `a` above `than`, 0 in the others.
QSF_INLINE Bits one_if_gt_u8(Bits a, std::uint8_t than) {
  if constexpr (kParts == kLanes) {
    const Bits low = (a & broadcast(0x7f7f7f7fu)) + broadcast(0x01010101u * (0x7fu - (than & 0x7fu)));
    const Bits above = than < 0x80 ? a | low : a & low;
    return shift_right<7>(above) & broadcast(0x01010101u);
  } else {
    return QSF_EACH(Bits, (BitsPart)((BytesPart)a.part[i] > than)) & broadcast(0x01010101u);
  }
}
// Conversions of 16 narrow integers in memory to lanes, and of lanes to narrow integers in memory. The stored lanes
// must be in [-128, 127] or [0, 65535].
QSF_INLINE Bits load_promote_u8(const void* at);
QSF_INLINE Bits load_promote_u16(const void* at);
QSF_INLINE Ints load_promote_i8(const void* at);
QSF_INLINE void store_demote_i8(void* at, Ints v);
QSF_INLINE void store_demote_u16(void* at, Bits v);

QSF_INLINE Floats load_promote_bf16(const void* at) { return bit_cast<Floats>(shift_left<16>(load_promote_u16(at))); }

/// Converts binary16 to float without hardware support, by the steps of f16_to_f32.
QSF_INLINE Floats promote_f16(Bits h) {
  const Bits magnitude = shift_left<13>(h & broadcast(0x7fffu));
  const Bits normal = magnitude + broadcast(112u << 23);
  const Bits special = magnitude | broadcast(0x7f800000u);
  const Bits subnormal = bit_cast<Bits>(bit_cast<Floats>(magnitude + broadcast(113u << 23)) - broadcast(0x1p-14f));
  const Bits finite = select(gt(broadcast(1u << 23), magnitude), subnormal, normal);
  const Bits value = select(gt(magnitude, broadcast((31u << 23) - 1)), special, finite);
  return bit_cast<Floats>(value | shift_left<16>(h & broadcast(0x8000u)));
}

/// Converts float to binary16, half to even, by the steps of f32_to_f16, so that a NaN has the same bits everywhere.
QSF_INLINE Bits demote_f16(Floats f) {
  const Bits magnitude = bit_cast<Bits>(f) & broadcast(0x7fffffffu);
  const Bits odd = shift_right<13>(magnitude) & broadcast(1u);
  const Bits normal = shift_right<13>(magnitude - broadcast(0x38000000u) + broadcast(0xfffu) + odd);
  const Bits subnormal = bit_cast<Bits>(bit_cast<Floats>(magnitude) + broadcast(0.5f)) - broadcast(0x3f000000u);
  Bits value = select(gt(broadcast(0x38800000u), magnitude), subnormal, normal);
  value = select(gt(magnitude, broadcast(0x477fefffu)), broadcast(0x7c00u), value);
  value = select(gt(magnitude, broadcast(0x7f800000u)), broadcast(0x7e00u), value);
  return value | (shift_right<16>(bit_cast<Bits>(f)) & broadcast(0x8000u));
}

}  // namespace
}  // namespace qsf
