// Little-endian loads and stores, and a cursor over untrusted bytes that can never pass their end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace qsf {

static_assert(std::endian::native == std::endian::little, "QSF runs on little-endian machines only");

template <class T>
T load_le(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store_le(std::byte* at, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof value);
}

/// A forward reader. After the first read past the end, bad() is true and every read returns zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T read() {
    const std::span<const std::byte> piece = take(sizeof(T));
    return piece.size() == sizeof(T) ? load_le<T>(piece.data()) : T{};
  }
  std::span<const std::byte> take(std::uint64_t n) {
    if (bad_ || n > bytes_.size() - at_) {
      bad_ = true;
      return {};
    }
    const std::span<const std::byte> piece = bytes_.subspan(at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return piece;
  }
  std::string_view text(std::uint64_t n) {
    const std::span<const std::byte> piece = take(n);
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

  bool bad() const { return bad_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

}  // namespace qsf
