// Rows of doubles, in which structures cross between C++ and JavaScript: field by field in boundary.def's order, a text
// as its place and its size. 64-bit numbers are exact up to 2^53.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "qsf/base/boundary.h"

namespace qsf::wasm {

/// No row is longer than all lists together.
inline constexpr std::size_t kMailboxSize = 2 * (0
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) +1
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) +1
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) +1
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) +1
#define QSF_STAT(type, name, js, meaning) +1
#define QSF_SEQUENCE_STAT(type, name, js, meaning) +1
#define QSF_READ_FIELD(type, name, js, meaning) +1
#define QSF_SEGMENT_FIELD(type, name, js, meaning) +1
#define QSF_REGION_FIELD(type, name, js, meaning) +1
#define QSF_KERNEL_FIELD(type, name, js, meaning) +1
#include "qsf/base/boundary.def"
                                                );

using Mailbox = std::array<double, kMailboxSize>;

/// A number of JavaScript's as the nearest whole one that T holds, not above it.
template <class T>
T whole(double number) {
  constexpr T kMost = std::numeric_limits<T>::max();
  if (!(number > 0)) return 0;
  return number < static_cast<double>(kMost) ? static_cast<T>(number) : kMost;
}

/// The values of a row one after the other.
class RowReader {
 public:
  explicit RowReader(const Mailbox& row) : next_(row.data()) {}

  template <class T>
  T take() {
    if constexpr (std::is_same_v<T, bool>) {
      return *next_++ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return whole<T>(*next_++);
    } else {
      return static_cast<T>(*next_++);
    }
  }

 private:
  const double* next_;
};

class RowWriter {
 public:
  explicit RowWriter(Mailbox& row) : next_(row.data()) {}

  template <class T>
  void put(T value) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      put(value.data());
      put(value.size());
    } else if constexpr (std::is_pointer_v<T>) {
      put(reinterpret_cast<std::uintptr_t>(value));
    } else {
      *next_++ = static_cast<double>(value);
    }
  }

 private:
  double* next_;
};

}  // namespace qsf::wasm
