// What is asked of every kind of source.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "native/sources/source.h"
#include "native/temp.h"
#include "tests/support/error_of.h"

namespace qsf::test {

inline SourceOptions quick() {
  SourceOptions options;
  options.first_wait = std::chrono::milliseconds(1);
  options.longest_wait = std::chrono::milliseconds(4);
  options.attempts = 4;
  return options;
}

struct Read {
  ErrorCode code;
  std::string sentence;
  std::vector<std::byte> bytes;
};

/// Submits neighbouring pieces from `offset` on, and reaps until all have completed: the first error, or success.
inline Status read_pieces(Source& source, std::uint64_t offset, std::vector<std::span<std::byte>> pieces) {
  std::vector<ReadRequest> requests;
  for (const std::span<std::byte> piece : pieces) {
    ReadRequest request;
    request.offset = offset;
    request.size = static_cast<std::uint32_t>(piece.size());
    request.ticket = static_cast<std::uint32_t>(requests.size());
    request.into = piece.data();
    requests.push_back(request);
    offset += piece.size();
  }
  EXPECT_EQ(source.submit(requests), requests.size());
  std::vector<int> seen(requests.size());
  std::vector<Completion> done(2);
  Status first;
  for (std::size_t left = requests.size(); left > 0;) {
    const std::size_t n = source.reap(done, std::chrono::seconds(30));
    for (const Completion& c : std::span(done).first(n)) {
      EXPECT_EQ(seen.at(c.ticket)++, 0);
      if (first && !c.status) first = c.status;
    }
    left -= n;
  }
  EXPECT_EQ(source.under_way(), 0u);
  return first;
}

inline Read read(Source& source, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  const Status status = read_pieces(source, offset, {bytes});
  if (!status) return {status.error().code, status.error().sentence, {}};
  return {ErrorCode::none, "", bytes};
}

inline std::vector<std::byte> part(const std::vector<std::byte>& all, std::size_t offset, std::size_t size) {
  return {all.begin() + static_cast<std::ptrdiff_t>(offset), all.begin() + static_cast<std::ptrdiff_t>(offset + size)};
}

inline ErrorCode open_error(const std::string& where, const SourceOptions& options) {
  const Result<Source> source = Source::open(where, options);
  if (source) return ErrorCode::none;
  EXPECT_GT(std::string(error_of(source).sentence).size(), 15u);
  return source.error().code;
}

/// Reads at awkward places and in several pieces.
inline void expect_bytes(const SourceKind& kind, const std::string& where, const std::vector<std::byte>& content) {
  SourceOptions options = quick();
  options.kind = kind.name;
  Result<Source> source = Source::open(where, options);
  ASSERT_TRUE(source) << kind.name << ": " << source.error().sentence;
  EXPECT_EQ(source->size(), content.size());
  EXPECT_EQ(source->kind().name, kind.name);
  for (const auto& [offset, size] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
           {0, 1}, {4095, 2}, {4096, 4096}, {1, 2'000'000}, {3'000'000, 1}, {0, 3'000'001}, {17, 0}}) {
    const Read got = read(*source, offset, size);
    EXPECT_EQ(got.code, ErrorCode::none) << got.sentence;
    EXPECT_TRUE(got.bytes == part(content, offset, size)) << kind.name << " at " << offset;
  }
  std::vector<std::byte> a(1000), b(0), c(2'500'000);
  EXPECT_TRUE(read_pieces(*source, 77, {a, b, c}));
  EXPECT_TRUE(a == part(content, 77, 1000) && c == part(content, 1077, 2'500'000)) << kind.name;
  EXPECT_EQ(read(*source, 3'000'000, 2).code, ErrorCode::truncated);
  EXPECT_EQ(read(*source, ~0ull, 2).code, ErrorCode::truncated);
  source->cancel();
  EXPECT_EQ(read(*source, 0, 1).code, ErrorCode::cancelled) << kind.name;
}

/// More requests than it takes, one of which cannot be read and harms no other; of 300,000 bytes.
inline void expect_room(const SourceKind& kind, const std::string& where, const std::vector<std::byte>& content) {
  SourceOptions options = quick();
  options.kind = kind.name;
  Result<Source> source = Source::open(where, options);
  ASSERT_TRUE(source) << kind.name;
  std::vector<std::byte> bytes(content.size());
  std::vector<ReadRequest> requests(100);
  for (std::uint32_t i = 0; i < 100; ++i) {  // backwards: no two are neighbours in order
    requests[i].offset = (99 - i) * 3000;
    requests[i].size = 3000;
    requests[i].into = bytes.data() + requests[i].offset;
    requests[i].ticket = i;
  }
  requests[7].offset = content.size();
  std::vector<Completion> done(5);
  std::span<const ReadRequest> left(requests);
  std::vector<ErrorCode> codes(100, ErrorCode::internal);
  EXPECT_EQ(source->room(), kSourceDepth);
  const std::size_t taken = source->submit(left);
  EXPECT_EQ(taken, kSourceDepth) << kind.name;
  EXPECT_EQ(source->submit(left.subspan(taken)), 0u);
  left = left.subspan(taken);
  while (source->under_way() > 0) {
    const std::size_t n = source->reap(done, std::chrono::seconds(30));
    ASSERT_GT(n, 0u);
    for (const Completion& c : std::span(done).first(n)) {
      codes[c.ticket] = c.status ? ErrorCode::none : c.status.error().code;
    }
    left = left.subspan(source->submit(left));
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(codes[i], i == 7 ? ErrorCode::truncated : ErrorCode::none) << kind.name << " " << i;
  }
  std::fill_n(bytes.begin() + 92 * 3000, 3000, std::byte{0});
  std::vector<std::byte> expected = content;
  std::fill_n(expected.begin() + 92 * 3000, 3000, std::byte{0});
  EXPECT_TRUE(bytes == expected) << kind.name;
  EXPECT_EQ(source->reap(done, std::chrono::milliseconds(1)), 0u) << "nothing is under way";
}

}  // namespace qsf::test
