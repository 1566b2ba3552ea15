// Seeded values and a hash, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf::test {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((next() >> 32) * n >> 32); }
  /// Multiples of 2^-23 in [-1, 1).
  float symmetric() { return static_cast<float>(static_cast<std::int32_t>(next() >> 40) - (1 << 23)) * 0x1p-23f; }

 private:
  std::uint64_t state_;
};

/// FNV-1a, 64 bits.
class Hash {
 public:
  template <class T>
  void add(std::span<const T> values) {
    for (const std::byte byte : std::as_bytes(values)) {
      state_ = (state_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace qsf::test
