#include "qsf/base/checksum.h"

#include <algorithm>
#include <bit>
#include <string_view>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "qsf/base/bytes.h"

namespace qsf {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320u;  // IEEE 802.3, bits reversed: bit 31 is x^0
constexpr std::size_t kSlices = 16;

/// kTables[k][b] is the remainder of byte b followed by k zero bytes.
using SliceTables = std::array<std::array<std::uint32_t, 256>, kSlices>;
SliceTables make_tables() {
  SliceTables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < kSlices; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
const SliceTables kTables = make_tables();  // computed at start: as data, 16 KiB that do not compress

/// Returns the product of two polynomials modulo the CRC's polynomial.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

/// Returns x^(2^k) modulo the CRC's polynomial, for each k.
constexpr std::array<std::uint32_t, 32> make_powers() {
  std::array<std::uint32_t, 32> powers{};
  powers[0] = 1u << 30;
  for (std::size_t k = 1; k < powers.size(); ++k) powers[k] = multiply(powers[k - 1], powers[k - 1]);
  return powers;
}
constexpr std::array<std::uint32_t, 32> kPowers = make_powers();

/// Returns the remainder after `bytes`, not inverted.
std::uint32_t slice(std::span<const std::byte> bytes, std::uint32_t crc) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    const std::uint64_t low = load_le<std::uint64_t>(at) ^ crc;
    const std::uint64_t high = load_le<std::uint64_t>(at + 8);
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      crc ^= kTables[15 - k][low >> (8 * k) & 0xff] ^ kTables[7 - k][high >> (8 * k) & 0xff];
    }
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
constexpr std::size_t kFoldBytes = 64;

/// Returns x^n modulo the CRC's polynomial, shifted by one bit, because a product of reversed polynomials is one bit
/// short.
constexpr std::int64_t fold_constant(std::uint64_t n) {
  std::uint32_t power = 1u << 31;
  for (std::size_t k = 0; n != 0; n >>= 1, ++k) {
    if ((n & 1) != 0) power = multiply(kPowers[k], power);
  }
  return static_cast<std::int64_t>(std::uint64_t{power} << 1);
}
// The values are published in the paper that fold() follows.
static_assert(fold_constant(4 * 128 + 32) == 0x154442bd4 && fold_constant(4 * 128 - 32) == 0x1c6e41596);
static_assert(fold_constant(128 + 32) == 0x1751997d0 && fold_constant(128 - 32) == 0x0ccaa009e);

/// Returns x times the powers of x in the halves of `by`, plus `next`.
[[gnu::target("pclmul")]] inline __m128i fold_onto(__m128i x, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(x, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/// Returns the result of slice() for a nonzero multiple of 64 bytes. The method is that of Gopal et al., "Fast CRC
/// Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009); the tables process the last 16
/// bytes.
[[gnu::target("pclmul")]] std::uint32_t fold(std::span<const std::byte> bytes, std::uint32_t crc) {
  const auto* at = reinterpret_cast<const __m128i*>(bytes.data());
  const auto* end = reinterpret_cast<const __m128i*>(bytes.data() + bytes.size());
  const __m128i by64 = _mm_set_epi64x(fold_constant(4 * 128 - 32), fold_constant(4 * 128 + 32));
  const __m128i by16 = _mm_set_epi64x(fold_constant(128 - 32), fold_constant(128 + 32));
  __m128i x0 = _mm_xor_si128(_mm_loadu_si128(at), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i x1 = _mm_loadu_si128(at + 1);
  __m128i x2 = _mm_loadu_si128(at + 2);
  __m128i x3 = _mm_loadu_si128(at + 3);
  for (at += 4; at != end; at += 4) {
    x0 = fold_onto(x0, by64, _mm_loadu_si128(at));
    x1 = fold_onto(x1, by64, _mm_loadu_si128(at + 1));
    x2 = fold_onto(x2, by64, _mm_loadu_si128(at + 2));
    x3 = fold_onto(x3, by64, _mm_loadu_si128(at + 3));
  }
  x1 = fold_onto(x0, by16, x1);
  x2 = fold_onto(x1, by16, x2);
  x3 = fold_onto(x2, by16, x3);
  std::array<std::byte, 16> last;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last.data()), x3);
  return slice(last, 0);
}
#endif

constexpr std::array<std::uint32_t, 64> kSha256Rounds{
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

std::uint32_t byteswap(std::uint32_t v) { return v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24; }

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
#if defined(__x86_64__)
  const std::size_t folded = bytes.size() / kFoldBytes * kFoldBytes;
  if (folded > 0 && __builtin_cpu_supports("pclmul")) {
    crc = fold(bytes.first(folded), crc);
    bytes = bytes.subspan(folded);
  }
#endif
  return ~slice(bytes, crc);
}

// A followed by B is A times x^(8 size_b) plus B; the inversions at begin and end cancel out.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t size_b) {
  std::size_t k = 3;  // x^(2^3) is one byte; x^(2^32) = x, so that the table repeats
  for (; size_b != 0; size_b >>= 1, ++k) {
    if ((size_b & 1) != 0) crc_a = multiply(kPowers[k % kPowers.size()], crc_a);
  }
  return crc_a ^ crc_b;
}

void Sha256::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t held = total_ % pending_.size();
    if (held == 0 && bytes.size() >= pending_.size()) {
      block(bytes.data());
      total_ += pending_.size();
      bytes = bytes.subspan(pending_.size());
      continue;
    }
    const std::size_t n = std::min(bytes.size(), pending_.size() - held);
    std::memcpy(pending_.data() + held, bytes.data(), n);
    total_ += n;
    bytes = bytes.subspan(n);
    if (held + n == pending_.size()) block(pending_.data());
  }
}

Sha256Digest Sha256::digest() const {
  Sha256 last = *this;
  const std::size_t held = total_ % pending_.size();
  std::array<std::byte, 72> padding{std::byte{0x80}};  // 1 bit, zeros up to 8 bytes before a block's end, then the size
  const std::size_t zeros_end = held < 56 ? 56 - held : 120 - held;
  const std::uint64_t bits = total_ * 8;
  for (std::size_t i = 0; i < 8; ++i) padding[zeros_end + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  last.update(std::span(padding).first(zeros_end + 8));
  Sha256Digest out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(last.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

void Sha256::block(const std::byte* at) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = byteswap(load_le<std::uint32_t>(at + 4 * i));
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Rounds[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

std::array<char, 65> hex(const Sha256Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<char, 65> out{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  return out;
}

}  // namespace qsf
