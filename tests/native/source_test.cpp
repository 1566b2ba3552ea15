#include "native/sources/source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "native/http_server.h"
#include "native/source_reads.h"
#include "native/sources/mapped_file.h"
#include "native/temp.h"
#include "tests/support/error_of.h"

namespace qsf {
namespace {

using test::Fault;
using test::HttpRequest;
using test::HttpServer;
using test::open_error;
using test::part;
using test::quick;
using test::Read;
using test::read;
using test::read_pieces;
using test::some_bytes;

// As every kind of source, at awkward places and in several pieces.
TEST(Source, UrlsReadTheSame) {
  const std::vector<std::byte> content = some_bytes(3'000'001);
  HttpServer server(content);
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) test::expect_bytes(*kind, server.url(), content);
  }
}

TEST(Source, UrlsHoldAsManyRequestsAsTheySay) {
  const std::vector<std::byte> content = some_bytes(300'000);
  HttpServer server(content);
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) test::expect_room(*kind, server.url(), content);
  }
}

// What is mapped and then cut off cannot be copied, and kills nobody.
TEST(Source, AMappedFileMayShrinkWhileItIsCopied) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const test::TempDir dir;
  const std::vector<std::byte> content = some_bytes(3 * page);
  test::write_bytes(dir / "file", content);
  const int fd = ::open((dir / "file").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* mapped = ::mmap(nullptr, content.size(), PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto* at = static_cast<const std::byte*>(mapped);
  std::vector<std::byte> copy(content.size());
  EXPECT_EQ(copy_mapped(at, copy), static_cast<ssize_t>(content.size()));
  EXPECT_TRUE(copy == content);
  std::filesystem::resize_file(dir / "file", page);
  EXPECT_EQ(copy_mapped(at, copy), static_cast<ssize_t>(page));
  EXPECT_EQ(copy_mapped(at + page, std::span(copy).first(page)), 0);
  ::munmap(mapped, content.size());
  ::close(fd);
}

class HttpSource : public ::testing::Test {
 protected:
  Result<Source> open() { return Source::open(server_.url(), quick()); }
  /// Faults for the requests from `from` on, `n` of them, not counting the one that open() makes.
  void fault(Fault fault, int n = 1, int from = 1) {
    server_.set_fault(
        [=](const HttpRequest& r) { return r.number >= from && r.number < from + n ? fault : Fault::none; });
  }
  void expect_good(Source& source) {
    const Read got = read(source, 1000, 200'000);
    EXPECT_EQ(got.code, ErrorCode::none) << got.sentence;
    EXPECT_TRUE(got.bytes == part(content_, 1000, 200'000));
  }

  const std::vector<std::byte> content_ = some_bytes(300'000);
  HttpServer server_{content_};
};

TEST_F(HttpSource, KeepsItsConnection) {
  Result<Source> source = open();
  ASSERT_TRUE(source) << source.error().sentence;
  for (int i = 0; i < 5; ++i) expect_good(*source);
  EXPECT_EQ(server_.connections(), 1);
  const std::vector<HttpRequest> requests = server_.requests();
  ASSERT_EQ(requests.size(), 6u);
  EXPECT_EQ(requests[0].if_range, "");
  EXPECT_EQ(requests[5].if_range, "\"v1\"");
  EXPECT_EQ(requests[5].first, 1000u);
  EXPECT_EQ(requests[5].last, 200'999u);
}

TEST_F(HttpSource, WhatPassesIsTriedAgain) {
  for (const Fault f : {Fault::unavailable, Fault::hang_up, Fault::cut_body, Fault::endless_error}) {
    Result<Source> source = open();
    ASSERT_TRUE(source);
    fault(f, 3, static_cast<int>(server_.requests().size()));
    expect_good(*source);
  }
}

TEST_F(HttpSource, ACutBodyIsContinuedNotRepeated) {
  Result<Source> source = open();
  ASSERT_TRUE(source);
  fault(Fault::cut_body);
  expect_good(*source);
  EXPECT_EQ(server_.requests().back().first, 1000u + 100'000u);
}

TEST_F(HttpSource, AServerMaySendLess) {
  Result<Source> source = open();
  ASSERT_TRUE(source);
  fault(Fault::short_range, 1000);
  expect_good(*source);
}

TEST_F(HttpSource, AZeroMayPassForNoLastByte) {
  fault(Fault::zero_is_none, 1000);
  Result<Source> source = open();
  ASSERT_TRUE(source) << source.error().sentence;
  expect_good(*source);
}

TEST_F(HttpSource, WhatStaysIsTold) {
  const std::pair<Fault, ErrorCode> cases[] = {
      {Fault::unavailable, ErrorCode::http_status},   {Fault::missing, ErrorCode::http_status},
      {Fault::hang_up, ErrorCode::network_error},     {Fault::endless_error, ErrorCode::http_status},
      {Fault::wrong_range, ErrorCode::network_error}, {Fault::no_range_told, ErrorCode::no_ranges},
      {Fault::compressed, ErrorCode::no_ranges},      {Fault::redirect_loop, ErrorCode::network_error},
  };
  for (const auto& [f, code] : cases) {
    server_.set_fault(nullptr);
    Result<Source> source = open();
    ASSERT_TRUE(source);
    const std::size_t before = server_.requests().size();
    fault(f, 1000, static_cast<int>(before));
    EXPECT_EQ(read(*source, 0, 100'000).code, code) << static_cast<int>(f);
    EXPECT_EQ(open_error(server_.url(), quick()), code) << static_cast<int>(f);
    if (f == Fault::unavailable) {
      EXPECT_EQ(server_.requests().size() - before, 8u) << "4 attempts of each";
    }
    if (f == Fault::missing) {
      EXPECT_EQ(server_.requests().size() - before, 2u) << "404 is not tried again";
    }
  }
}

TEST_F(HttpSource, WaitsLongerEachTime) {
  SourceOptions options = quick();
  options.first_wait = std::chrono::milliseconds(20);
  options.longest_wait = std::chrono::milliseconds(50);
  Result<Source> source = Source::open(server_.url(), options);
  ASSERT_TRUE(source);
  fault(Fault::unavailable, 3);
  const auto begin = std::chrono::steady_clock::now();
  expect_good(*source);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20 + 40 + 50));
}

TEST_F(HttpSource, ANewETagIsAChangedFile) {
  Result<Source> source = open();
  ASSERT_TRUE(source);
  server_.set_etag("\"v2\"");
  EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::file_changed);
}

TEST_F(HttpSource, ANewSizeIsAChangedFile) {
  server_.set_etag("");
  Result<Source> source = open();
  ASSERT_TRUE(source);
  server_.set_content(some_bytes(299'999), "");
  EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::file_changed);
  server_.set_content(some_bytes(10), "");
  EXPECT_EQ(read(*source, 1000, 10).code, ErrorCode::file_changed);
}

TEST_F(HttpSource, NeedsRanges) {
  server_.set_ranges(false);
  EXPECT_EQ(open_error(server_.url(), quick()), ErrorCode::no_ranges);
  server_.set_ranges(true);
  Result<Source> source = open();
  ASSERT_TRUE(source);
  server_.set_ranges(false);
  EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::no_ranges);
}

TEST_F(HttpSource, AnEmptyFileIsTruncated) {
  server_.set_content({}, "\"v1\"");
  EXPECT_EQ(open_error(server_.url(), quick()), ErrorCode::truncated);
}

TEST_F(HttpSource, FollowsRedirections) {
  server_.set_fault([](const HttpRequest& r) { return r.number == 0 ? Fault::redirect : Fault::none; });
  Result<Source> source = open();
  ASSERT_TRUE(source) << source.error().sentence;
  expect_good(*source);
  EXPECT_EQ(server_.requests().back().if_range, "\"v1\"");
}

TEST_F(HttpSource, NobodyListens) {
  EXPECT_EQ(open_error("http://127.0.0.1:1/model.qsf", quick()), ErrorCode::network_error);
  EXPECT_EQ(open_error("http://[nonsense", quick()), ErrorCode::network_error);
}

TEST_F(HttpSource, AStalledServerIsGivenUp) {
  SourceOptions options = quick();
  options.stall = std::chrono::seconds(1);
  options.attempts = 1;
  Result<Source> source = Source::open(server_.url(), options);
  ASSERT_TRUE(source);
  fault(Fault::stall, 1000);
  EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::network_error);
}

TEST_F(HttpSource, AByteNowAndThenIsGivenUp) {
  SourceOptions options = quick();
  options.stall = std::chrono::seconds(1);
  options.attempts = 2;
  for (const Fault f : {Fault::drip, Fault::one_byte}) {
    server_.set_fault(nullptr);
    Result<Source> source = Source::open(server_.url(), options);
    ASSERT_TRUE(source);
    fault(f, 1'000'000, static_cast<int>(server_.requests().size()));
    const Read got = read(*source, 0, 100'000);
    EXPECT_EQ(got.code, ErrorCode::network_error) << got.sentence;
  }
}

// The second request's answer does not wait for the first one's.
TEST_F(HttpSource, RequestsCompleteOutOfOrder) {
  Result<Source> source = open();
  ASSERT_TRUE(source);
  server_.set_fault([](const HttpRequest& r) { return r.first == 0 ? Fault::stall : Fault::none; });
  std::vector<std::byte> bytes(2000);
  std::array<ReadRequest, 2> requests{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    requests[i].offset = i * 200'000;
    requests[i].size = 1000;
    requests[i].ticket = i;
    requests[i].into = bytes.data() + i * 1000;
  }
  ASSERT_EQ(source->submit(requests), 2u);
  std::array<Completion, 2> done;
  ASSERT_EQ(source->reap(done, std::chrono::seconds(20)), 1u);
  EXPECT_EQ(done[0].ticket, 1u);
  EXPECT_TRUE(done[0].status);
  source->cancel();
  ASSERT_EQ(source->reap(done, std::chrono::seconds(20)), 1u);
  EXPECT_EQ(done[0].ticket, 0u);
  EXPECT_EQ(error_of(done[0].status).code, ErrorCode::cancelled);
  EXPECT_EQ(source->under_way(), 0u);
}

// Waits and stalls may take longer than any test, so a read that ends has not waited for them.
TEST_F(HttpSource, CancelEndsAReadAtOnce) {
  for (const Fault f : {Fault::stall, Fault::unavailable}) {
    server_.set_fault(nullptr);
    SourceOptions options;
    options.first_wait = options.longest_wait = options.connect = std::chrono::hours(10);
    options.stall = std::chrono::hours(10);
    Result<Source> source = Source::open(server_.url(), options);
    ASSERT_TRUE(source);
    fault(f, 1000, static_cast<int>(server_.requests().size()));
    const std::size_t before = server_.requests().size();
    std::thread canceller([&] {
      while (server_.requests().size() == before) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // more often in the wait than before it
      source->cancel();
    });
    EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::cancelled);
    canceller.join();
    EXPECT_EQ(server_.requests().size(), before + 1);
  }
}

}  // namespace
}  // namespace qsf
