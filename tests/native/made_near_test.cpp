// Segments of made files that several threads make together from the page cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "native/convert_to.h"
#include "native/made/made_model.h"
#include "native/made/made_source.h"
#include "native/source_reads.h"
#include "native/temp.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kThreads = 3;

/// The outcome of each segment's request.
struct Outcome {
  std::atomic<int> times{0};
  std::atomic<ErrorCode> code{ErrorCode::none};
};

/// Reads all segments by helping threads and a reaping one. Cancels after so many.
std::vector<Outcome> read_together(Source& source, const std::vector<ReadRequest>& requests, std::size_t cancel_after) {
  std::vector<Outcome> out(requests.size());
  std::atomic<std::size_t> left{requests.size()};
  const auto settle = [&](Completion& c) {
    if (!source.finish(c)) return;
    ++out.at(c.ticket).times;
    out.at(c.ticket).code = c.status ? ErrorCode::none : c.status.error().code;
    if (requests.size() - --left == cancel_after) source.cancel();
  };
  std::vector<std::thread> helpers;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    helpers.emplace_back([&] {
      Completion c;
      while (left > 0) {
        if (source.read_cached(c) == Helped::last) settle(c);
      }
    });
  }
  std::vector<Completion> done(3);
  for (std::span<const ReadRequest> next = requests; left > 0;) {
    next = next.subspan(source.submit(next));
    const std::size_t n = source.reap(done, std::chrono::milliseconds(1));
    for (Completion& c : std::span(done).first(n)) settle(c);
  }
  for (std::thread& helper : helpers) helper.join();
  EXPECT_EQ(source.under_way(), 0u);
  return out;
}

// Each request completes once: with the converted file's bytes, or as cancelled before its memory is used again.
TEST(MadeNear, SegmentsAreMadeTogether) {
  const TempDir dir;
  const std::string gguf = source_dir() + "/tests/data/gguf/llama.gguf";
  convert_to(gguf, dir / "whole.qsf");
  const std::vector<std::byte> file = read_bytes(dir / "whole.qsf");
  SourceOptions options = quick();
  options.kind = "pread";
  options.helped = true;
  const Result<std::shared_ptr<MadeModel>> model = MadeModel::open(gguf, options);
  ASSERT_TRUE(model) << model.error().sentence;
  const FilePlan& plan = (*model)->file().plan();
  const std::size_t n = plan.segments().size();
  for (const std::size_t cancel_after : {std::size_t{0}, std::size_t{1}, n / 2}) {
    for (int round = 0; round < 10; ++round) {
      std::vector<std::byte> memory(file.size());
      std::vector<ReadRequest> requests;
      for (const SegmentEntry& s : plan.segments()) {
        requests.push_back({.offset = s.offset, .size = s.raw_size, .into = memory.data() + s.offset});
        requests.back().ticket = static_cast<std::uint32_t>(requests.size() - 1);
      }
      Result<Source> source = open_made(*model, options);
      ASSERT_TRUE(source) << source.error().sentence;
      const std::vector<Outcome> outcomes = read_together(*source, requests, cancel_after);
      std::size_t read = 0;
      for (const ReadRequest& r : requests) {
        const Outcome& outcome = outcomes[r.ticket];
        ASSERT_EQ(outcome.times, 1);
        if (outcome.code == ErrorCode::cancelled && cancel_after != 0) continue;
        ASSERT_EQ(outcome.code, ErrorCode::none);
        EXPECT_TRUE(std::equal(r.into, r.into + r.size, file.begin() + static_cast<std::ptrdiff_t>(r.offset)));
        ++read;
      }
      EXPECT_GE(read, cancel_after == 0 ? n : cancel_after);
    }
  }
}

}  // namespace
}  // namespace qsf::test
