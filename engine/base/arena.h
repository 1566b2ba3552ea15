// One block of memory, handed out in 64-byte aligned pieces that are never given back, counted by what they are for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "qsf/base/align.h"
#include "qsf/base/boundary.h"
#include "qsf/base/result.h"
#include "qsf/base/try.h"

namespace qsf {

/// What a value is charged with. A type that holds pointers says it in kArenaBytes, for those of 64 bits, so that the
/// same budget gives the same plan where pointers are smaller.
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
  /// An arena that only counts, from where `other` is: what is taken has no memory behind it, and nothing is refused.
  static Arena dry(const Arena& other);

  bool is_dry() const { return dry_; }

  /// `count` values, as their default or all zeros; in a dry arena an empty span. out_of_memory when they do not fit.
  template <class T>
  Result<std::span<T>> take(std::uint64_t count, Region region) {
    static_assert(std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= kAlignment);
    QSF_LET(bytes, take_bytes(count, arena_bytes<T>(), region));
    if (dry_) return std::span<T>{};
    T* const first = reinterpret_cast<T*>(bytes);
    // Memory that is all zeros is a value of a trivial type; anything else, such as an atomic, begins its life here.
    if constexpr (!std::is_trivially_default_constructible_v<T>) {
      std::uninitialized_value_construct_n(first, static_cast<std::size_t>(count));
    }
    return std::span<T>(first, static_cast<std::size_t>(count));
  }
  /// The same into `to`.
  template <class T>
  Status take(std::span<T>& to, std::uint64_t count, Region region) {
    QSF_LET(taken, take<T>(count, region));
    to = taken;
    return {};
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t used() const { return used_; }
  /// How large the arena would have had to be for the last take() that was refused.
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
