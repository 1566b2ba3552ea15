// One block of memory, handed out in named, 64-byte aligned pieces that are never given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "qsf/base/align.h"
#include "qsf/base/result.h"

namespace qsf {

class Arena {
 public:
  struct Region {
    const char* name;  // static storage; pieces of the same name are one region
    std::uint64_t size;
  };

  Arena() = default;
  /// `memory` must outlive the arena; its start is aligned up to kAlignment.
  explicit Arena(std::span<std::byte> memory);

  /// `count` zeroed values of a trivial type. out_of_memory when they do not fit.
  template <class T>
  Result<std::span<T>> take(std::uint64_t count, const char* name) {
    static_assert(std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= kAlignment);
    Result<std::byte*> bytes = take_bytes(count, sizeof(T), name);
    if (!bytes) return bytes.error();
    return std::span<T>(reinterpret_cast<T*>(*bytes), static_cast<std::size_t>(count));
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t used() const { return used_; }
  std::span<const Region> regions() const { return {regions_.data(), n_regions_}; }

 private:
  Result<std::byte*> take_bytes(std::uint64_t count, std::uint64_t each, const char* name);

  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t used_ = 0;
  std::array<Region, 32> regions_{};
  std::size_t n_regions_ = 0;
};

}  // namespace qsf
