// Conversions in plain C++, which Clang compiles to one instruction each. GCC 12 splits such vectors into elements.
#pragma once

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

template <class V, class Part, class T>
QSF_INLINE V load_promoted(const void* at) {
  const auto narrow = load<Narrow<T>>(at);
  return QSF_EACH(V, convert_to<Part>(narrow.part[i]));
}
template <class T, class V>
QSF_INLINE void store_demoted(void* at, V v) {
  using Part = PartOf<T, kLanes / kParts>::type;
  store(at, QSF_EACH(Narrow<T>, convert_to<Part>(v.part[i])));
}

QSF_INLINE Bits load_promote_u8(const void* at) { return load_promoted<Bits, BitsPart, std::uint8_t>(at); }
QSF_INLINE Bits load_promote_u16(const void* at) { return load_promoted<Bits, BitsPart, std::uint16_t>(at); }
QSF_INLINE Ints load_promote_i8(const void* at) { return load_promoted<Ints, IntPart, std::int8_t>(at); }
QSF_INLINE void store_demote_i8(void* at, Ints v) { store_demoted<std::int8_t>(at, v); }
QSF_INLINE void store_demote_u16(void* at, Bits v) { store_demoted<std::uint16_t>(at, v); }

}  // namespace
}  // namespace qsf
