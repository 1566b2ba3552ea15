#include "qsf/base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace qsf {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string hex(const Sha256Digest& digest) {
  std::string out;
  for (const std::uint8_t b : digest) {
    for (const int shift : {4, 0}) out += "0123456789abcdef"[b >> shift & 15];
  }
  return out;
}

std::string sha256(std::string_view text) {
  Sha256 sha;
  sha.update(bytes_of(text));
  return hex(sha.digest());
}

/// The definition, bit by bit.
std::uint32_t slow_crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> out(size);
  std::uint32_t state = 12345;
  for (std::byte& b : out) b = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
  return out;
}

// The check value of the CRC catalogue's CRC-32/ISO-HDLC, and values of zlib's crc32().
TEST(Crc32, PublishedValues) {
  EXPECT_EQ(crc32(bytes_of("")), 0u);
  EXPECT_EQ(crc32(bytes_of("a")), 0xe8b7be43u);
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32(bytes_of("The quick brown fox jumps over the lazy dog")), 0x414fa339u);
  EXPECT_EQ(crc32(std::vector<std::byte>(32)), 0x190a55adu);                   // zeros
  EXPECT_EQ(crc32(std::vector<std::byte>(32, std::byte{0xff})), 0xff6cab0bu);  // ones
}

TEST(Crc32, AgreesWithTheDefinitionAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = noise(200);
  for (std::size_t begin = 0; begin < 17; ++begin) {
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      const auto piece = std::span(bytes).subspan(begin, size);
      ASSERT_EQ(crc32(piece), slow_crc32(piece)) << begin << " " << size;
    }
  }
}

TEST(Crc32, GoesOnFromAnEarlierValue) {
  const std::vector<std::byte> bytes = noise(100);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32(std::span(bytes).subspan(cut), crc32(std::span(bytes).first(cut))), crc32(bytes)) << cut;
  }
}

TEST(Crc32, CombinesTwoPieces) {
  const std::vector<std::byte> bytes = noise(70'000);
  for (const std::size_t cut : {0u, 1u, 2u, 63u, 1000u, 65'536u, 69'999u, 70'000u}) {
    const auto a = std::span(bytes).first(cut);
    const auto b = std::span(bytes).subspan(cut);
    EXPECT_EQ(crc32_combine(crc32(a), crc32(b), b.size()), crc32(bytes)) << cut;
  }
}

TEST(Crc32, CombinesAcrossMoreThan4GiB) {
  // 2^33 zero bytes by doubling: crc(AA) from crc(A), which the direct computation confirms up to 64 KiB.
  std::uint32_t crc = crc32(std::vector<std::byte>(1));
  std::uint64_t size = 1;
  for (; size < std::uint64_t{1} << 33; size *= 2) {
    if (size <= 65'536) {
      ASSERT_EQ(crc, crc32(std::vector<std::byte>(size))) << size;
    }
    crc = crc32_combine(crc, crc, size);
  }
  const std::uint32_t one = crc32(bytes_of("x"));
  // (x + zeros) + zeros = x + (zeros + zeros): the long way round gives the same
  const std::uint32_t left = crc32_combine(crc32_combine(one, crc, size), crc, size);
  EXPECT_EQ(left, crc32_combine(one, crc32_combine(crc, crc, size), 2 * size));
}

// FIPS 180-4's examples as NIST publishes them, and the empty message.
TEST(Sha256, PublishedValues) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
                   "pqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeTheSameDigest) {
  const std::vector<std::byte> bytes = noise(300);
  Sha256 whole;
  whole.update(bytes);
  for (std::size_t step = 1; step < 140; ++step) {
    Sha256 pieces;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      pieces.update(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
    }
    EXPECT_EQ(hex(pieces.digest()), hex(whole.digest())) << step;
  }
}

TEST(Sha256, EveryLengthAroundABlock) {
  // SHA-256 of n times 'a', by coreutils' sha256sum.
  EXPECT_EQ(sha256(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(sha256(std::string(63, 'a')), "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  EXPECT_EQ(sha256(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(sha256(std::string(65, 'a')), "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
}

TEST(Sha256, CanGoOnAfterADigest) {
  Sha256 sha;
  sha.update(bytes_of("abc"));
  EXPECT_EQ(hex(sha.digest()), hex(sha.digest()));
  sha.update(bytes_of("dbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
  EXPECT_EQ(hex(sha.digest()), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace qsf
