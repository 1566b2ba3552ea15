// A block of memory from which pieces are taken in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace qsf::chat {

class Block {
 public:
  explicit Block(std::span<std::byte> memory) : rest_(memory) {}

  /// Returns values that are not initialized, or none if there is no room for all.
  template <class T>
  std::span<T> take(std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t skip = (0 - reinterpret_cast<std::uintptr_t>(rest_.data())) % alignof(T);
    if (skip > rest_.size() || n > (rest_.size() - skip) / sizeof(T)) return {};
    T* const first = reinterpret_cast<T*>(rest_.data() + skip);
    rest_ = rest_.subspan(skip + n * sizeof(T));
    return {first, n};
  }
  std::span<std::byte> rest() const { return rest_; }

 private:
  std::span<std::byte> rest_;
};

}  // namespace qsf::chat
