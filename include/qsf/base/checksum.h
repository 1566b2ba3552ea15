// CRC-32 (IEEE 802.3, as in zlib) for the file's pieces, and SHA-256 (FIPS 180-4) for identities in receipts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

/// Returns the CRC-32 of `bytes`, continued from `crc`, which is 0 at the beginning.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// Returns the CRC-32 of A followed by B, from their CRCs and B's length.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t size_b);

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Returns a digest in lower-case hex with a terminating zero.
std::array<char, 65> hex(const Sha256Digest& digest);

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  /// Returns the digest of all bytes so far. Further updates are allowed.
  Sha256Digest digest() const;

 private:
  void block(const std::byte* at);

  std::array<std::uint32_t, 8> state_{0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::uint64_t total_ = 0;
  std::array<std::byte, 64> pending_{};
};

}  // namespace qsf
