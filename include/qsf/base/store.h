// Tables that grow inside one block of memory. A block that is full refuses quietly: callers check full() once, at the
// end of a piece of work, because every table stays safe to use.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace qsf {

/// Hands out pieces of a block, which are never freed one by one.
class Store {
 public:
  Store() = default;
  /// `memory` must outlive the store.
  explicit Store(std::span<std::byte> memory) : base_(memory.data()), size_(memory.size()) {}

  /// Returns `bytes` zeroed bytes, aligned to 16, or null if they do not fit; full() is true from then on.
  std::byte* take(std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(base_) + used_;
    const std::size_t skip = (16 - address % 16) % 16;
    if (bytes > size_ - used_ || skip > size_ - used_ - bytes) {
      full_ = true;
      return nullptr;
    }
    std::byte* const at = base_ + used_ + skip;
    used_ += skip + bytes;
    std::memset(at, 0, bytes);
    return at;
  }
  template <class T>
  T* take_values(std::size_t count) {
    if (count > size_ / sizeof(T)) {
      full_ = true;
      return nullptr;
    }
    return reinterpret_cast<T*>(take(count * sizeof(T)));
  }

  bool full() const { return full_; }
  /// The bytes in use, which are the first of the block.
  std::size_t used() const { return used_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
  bool full_ = false;
};

/// Values with stable addresses, in pieces that double in size. A value that finds no memory is dropped, and add()
/// returns 0; init() therefore makes value 0, which a caller sets aside for that.
template <class T, std::uint32_t kFirst = 64>
class Table {
  static_assert(std::is_trivially_copyable_v<T> && std::has_single_bit(kFirst));
  static constexpr std::uint32_t kShift = std::bit_width(kFirst) - 1;

 public:
  /// Makes value 0. Fails if there is no memory for it.
  bool init(Store& store) {
    store_ = &store;
    size_ = 0;
    return pieces_[0] != nullptr || grow(0) ? (size_ = 1, true) : false;
  }

  std::uint32_t add(const T& value) {
    const auto [piece, offset] = place(size_);
    if (piece >= pieces_.size() || (pieces_[piece] == nullptr && !grow(piece))) return 0;
    pieces_[piece][offset] = value;
    return size_++;
  }
  /// Returns value `i`, or value 0 if there was no memory for it.
  T& operator[](std::uint32_t i) { return at(i); }
  const T& operator[](std::uint32_t i) const { return at(i); }
  std::uint32_t size() const { return size_; }
  /// Drops the values from `size` on, of which there must be at least one before.
  void shrink(std::uint32_t size) { size_ = size; }

 private:
  struct Place {
    std::uint32_t piece, offset;
  };
  static constexpr Place place(std::uint32_t i) {
    const std::uint32_t at = i + kFirst;
    const std::uint32_t piece = static_cast<std::uint32_t>(std::bit_width(at)) - 1 - kShift;
    return {piece, at - (kFirst << piece)};
  }
  T& at(std::uint32_t i) const {
    const auto [piece, offset] = place(i);
    return pieces_[piece] != nullptr ? pieces_[piece][offset] : pieces_[0][0];
  }
  bool grow(std::uint32_t piece) {
    pieces_[piece] = store_->take_values<T>(std::size_t{kFirst} << piece);
    return pieces_[piece] != nullptr;
  }

  Store* store_ = nullptr;
  std::array<T*, 31 - kShift> pieces_{};
  std::uint32_t size_ = 0;
};

/// Mixes a value into a hash.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

/// Finds the numbers of values by their hashes, so that equal values are stored once.
class Index {
 public:
  bool init(Store& store) {
    store_ = &store;
    return resize(256);
  }
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  /// Returns the number of the value that `same` accepts among those of the hash, or kNone.
  template <class Same>
  std::uint32_t find(std::uint64_t hash, const Same& same) const {
    const auto key = static_cast<std::uint32_t>(hash >> 32 ^ hash);
    for (std::uint32_t at = key & mask_; slots_[at].value != kNone; at = (at + 1) & mask_) {
      if (slots_[at].key == key && same(slots_[at].value)) return slots_[at].value;
    }
    return kNone;
  }
  /// Returns the number of the value that `same` accepts among those of the hash, or adds `make()`'s.
  template <class Same, class Make>
  std::uint32_t find_or(std::uint64_t hash, const Same& same, const Make& make) {
    if (const std::uint32_t found = find(hash, same); found != kNone) return found;
    const auto key = static_cast<std::uint32_t>(hash >> 32 ^ hash);
    if (2 * (n_ + 1) > mask_ && !resize(2 * (mask_ + 1))) return 0;
    const std::uint32_t made = make();
    put(key, made);
    ++n_;
    return made;
  }

 private:
  struct Slot {
    std::uint32_t key, value;
  };
  void put(std::uint32_t key, std::uint32_t value) {
    std::uint32_t at = key & mask_;
    while (slots_[at].value != kNone) at = (at + 1) & mask_;
    slots_[at] = {key, value};
  }
  bool resize(std::uint32_t size) {
    Slot* const old = slots_;
    const std::uint32_t n_old = old == nullptr ? 0 : mask_ + 1;
    Slot* const made = store_->take_values<Slot>(size);
    if (made == nullptr) return false;
    std::memset(made, 0xFF, size * sizeof(Slot));
    slots_ = made;
    mask_ = size - 1;
    for (std::uint32_t i = 0; i < n_old; ++i) {
      if (old[i].value != kNone) put(old[i].key, old[i].value);
    }
    return true;
  }

  Store* store_ = nullptr;
  Slot* slots_ = nullptr;
  std::uint32_t mask_ = 0, n_ = 0;
};

}  // namespace qsf
