// Sources whose cached bytes are read by threads that help.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "native/sources/source.h"
#include "native/temp.h"

namespace qsf {
namespace {

using test::some_bytes;

/// Threads that read what is cached, until all requests have completed: how often each has.
std::vector<int> read_together(Source& source, const std::vector<ReadRequest>& requests, std::uint32_t threads,
                               std::atomic<int>& failed) {
  std::vector<std::atomic<int>> seen(requests.size());
  std::atomic<std::size_t> left{requests.size()};
  const auto settle = [&](const Completion& c) {
    ++seen.at(c.ticket);
    if (!c.status) ++failed;
    --left;
  };
  EXPECT_EQ(source.submit(requests), requests.size());
  std::vector<std::thread> helpers;
  for (std::uint32_t i = 0; i < threads; ++i) {
    helpers.emplace_back([&] {
      Completion c;
      while (left > 0) {
        if (source.read_cached(c) == Helped::last) settle(c);
      }
    });
  }
  std::vector<Completion> done(3);
  while (left > 0) {
    const std::size_t n = source.reap(done, std::chrono::milliseconds(1));
    for (const Completion& c : std::span(done).first(n)) settle(c);
  }
  for (std::thread& helper : helpers) helper.join();
  EXPECT_EQ(source.under_way(), 0u);
  return {seen.begin(), seen.end()};
}

// A request that helpers read part by part completes once, with all its bytes, whole or with an error.
TEST(Helped, OneRequestIsReadTogether) {
  const std::vector<std::byte> content = some_bytes(3'000'001);
  const test::TempDir dir;
  test::write_bytes(dir / "file", content);
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) continue;
    SourceOptions options;
    options.kind = kind->name;
    options.helped = true;
    Result<Source> source = Source::open(dir / "file", options);
    ASSERT_TRUE(source);
    std::vector<std::byte> bytes(content.size());
    std::vector<ReadRequest> requests(7);
    const std::uint64_t ends[] = {0, 1'000'000, 1'000'000, 1'000'001, 1'131'073, 1'262'145, 2'999'999, 3'000'001};
    for (std::uint32_t i = 0; i < 7; ++i) {
      requests[i].offset = ends[i];
      requests[i].size = static_cast<std::uint32_t>(ends[i + 1] - ends[i]);
      requests[i].into = bytes.data() + ends[i];
      requests[i].ticket = i;
    }
    for (const std::uint32_t threads : {1u, 3u}) {
      std::ranges::fill(bytes, std::byte{0});
      std::atomic<int> failed{0};
      EXPECT_EQ(read_together(*source, requests, threads, failed), std::vector<int>(7, 1)) << kind->name;
      EXPECT_EQ(failed, 0);
      EXPECT_TRUE(bytes == content) << kind->name;
    }
    // Cut in the middle of the last but one, which fails once; cancelled, all complete whoever was reading them.
    std::filesystem::resize_file(dir / "file", 2'000'000);
    std::atomic<int> failed{0};
    EXPECT_EQ(read_together(*source, requests, 3, failed), std::vector<int>(7, 1)) << kind->name;
    EXPECT_EQ(failed, 2) << kind->name;
    test::write_bytes(dir / "file", content);
    std::thread canceller([&] { source->cancel(); });
    EXPECT_EQ(read_together(*source, requests, 3, failed), std::vector<int>(7, 1)) << kind->name;
    canceller.join();
  }
}

}  // namespace
}  // namespace qsf
