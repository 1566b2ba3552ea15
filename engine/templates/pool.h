// Memory of a template: the caller's block, handed out from its beginning and freed as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace qsf::templates {

class Pool {
 public:
  Pool() = default;
  explicit Pool(std::span<std::byte> memory) : base_(memory.data()), size_(memory.size()) {}

  /// Returns uninitialized memory, aligned to 8 bytes, or null if there is not enough.
  void* take(std::size_t bytes) {
    const std::size_t address = reinterpret_cast<std::uintptr_t>(base_) + used_;
    const std::size_t skip = (0 - address) % 8;
    if (size_ - used_ < skip || size_ - used_ - skip < bytes) return nullptr;
    std::byte* const at = base_ + used_ + skip;
    used_ += skip + bytes;
    return at;
  }
  /// Returns zeroed values, or null.
  template <class T>
  T* take_zeroed(std::size_t count = 1) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > size_ / sizeof(T)) return nullptr;
    void* const at = take(count * sizeof(T));
    return at == nullptr ? nullptr : static_cast<T*>(std::memset(at, 0, count * sizeof(T)));
  }
  /// Enlarges the last piece of memory, which ends at `end`. Returns false if another piece is the last, or it is full.
  bool extend(const void* end, std::size_t bytes) {
    if (end != base_ + used_ || size_ - used_ < bytes) return false;
    used_ += bytes;
    return true;
  }
  /// Takes bytes back from the last piece, if it ends at `end`.
  void shorten(const void* end, std::size_t bytes) {
    if (end == base_ + used_) used_ -= bytes;
  }

  std::size_t used() const { return used_; }
  void release(std::size_t used) { used_ = used; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
};

}  // namespace qsf::templates
