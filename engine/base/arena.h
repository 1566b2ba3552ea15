// One block of memory, divided into 64-byte aligned pieces that are never freed. Bytes are counted by region.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "qsf/base/align.h"
#include "qsf/base/enumerations.h"
#include "qsf/base/result.h"
#include "qsf/base/try.h"

namespace qsf {

/// The bytes that a value is charged with. A type that contains pointers states its size with 64-bit pointers in
/// kArenaBytes, so that the same budget gives the same plan on machines with smaller pointers.
template <class T>
constexpr std::size_t arena_bytes() {
  if constexpr (requires { T::kArenaBytes; }) {
    static_assert(sizeof(T) <= T::kArenaBytes);
    return T::kArenaBytes;
  } else {
    return sizeof(T);
  }
}

class Arena {
 public:
  Arena() = default;
  /// `memory` must outlive the arena; its start is aligned up to kAlignment.
  explicit Arena(std::span<std::byte> memory);
  /// Returns an arena without memory that only counts, from the use of `other` on. It refuses nothing.
  static Arena dry(const Arena& other);

  bool is_dry() const { return dry_; }

  /// Returns `count` values, default-constructed or all zeros; an empty span in a dry arena. Fails with out_of_memory
  /// if they do not fit.
  template <class T>
  Result<std::span<T>> take(std::uint64_t count, Region region) {
    static_assert(std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= kAlignment);
    QSF_LET(bytes, take_bytes(count, arena_bytes<T>(), region));
    if (dry_) return std::span<T>{};
    T* const first = reinterpret_cast<T*>(bytes);
    // Zeroed memory is a value of a trivial type. Any other type, such as an atomic, is constructed here.
    if constexpr (!std::is_trivially_default_constructible_v<T>) {
      std::uninitialized_value_construct_n(first, static_cast<std::size_t>(count));
    }
    return std::span<T>(first, static_cast<std::size_t>(count));
  }
  /// Takes the values into `to`.
  template <class T>
  Status take(std::span<T>& to, std::uint64_t count, Region region) {
    QSF_LET(taken, take<T>(count, region));
    to = taken;
    return {};
  }

  /// Returns the region whose pieces were taken last, with the bytes after it that are not taken.
  std::span<std::byte> last(Region region) const {
    const std::uint64_t begin = used_ - used(region);
    return {base_ + begin, static_cast<std::size_t>(size_ - begin)};
  }
  std::uint64_t size() const { return size_; }
  std::uint64_t used() const { return used_; }
  /// Returns the size that the arena needed for the last take() that was refused.
  std::uint64_t refused() const { return refused_; }
  std::uint64_t used(Region region) const { return regions_[static_cast<std::size_t>(region)]; }

 private:
  Result<std::byte*> take_bytes(std::uint64_t count, std::uint64_t each, Region region);

  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t refused_ = 0;
  bool dry_ = false;
  std::array<std::uint64_t, kRegionNames.size()> regions_{};
};

}  // namespace qsf
