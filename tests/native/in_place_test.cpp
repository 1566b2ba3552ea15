// Reads past the page cache into memory that lies as the file does: what no buffer is between.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <utility>

#include "file/small_file.h"
#include "native/host/host.h"
#include "native/past_cache.h"
#include "native/sources/source.h"

namespace qsf::test {
namespace {

bool right(const ReadRequest& r, const std::vector<std::byte>& content) {
  return std::equal(r.into, r.into + r.size, content.begin() + static_cast<std::ptrdiff_t>(r.offset));
}

/// Waits for `n` completions, helping as a host does; gives them by ticket.
std::vector<ErrorCode> all_of(Source& source, std::size_t n) {
  std::vector<ErrorCode> out(n, ErrorCode::internal);
  std::array<Completion, 8> done;
  for (std::size_t left = n; left != 0;) {
    const Helped helped = source.read_cached(done[0]);
    if (helped == Helped::some) continue;
    const std::size_t some = helped == Helped::last ? 1 : source.reap(done, std::chrono::seconds(30));
    EXPECT_NE(some, 0u);
    for (const Completion& c : std::span(done).first(some)) {
      EXPECT_EQ(out[c.ticket], ErrorCode::internal) << "twice";
      out[c.ticket] = c.status ? ErrorCode::none : c.status.error().code;
    }
    left -= some;
  }
  return out;
}

// Of a cold file and a cached one: its end, which is no block's; less than a block; odd places; memory that lies as the
// file does or not.
TEST(InPlace, EveryKindReadsTheSame) {
  const SomeFile file;
  const auto size = static_cast<std::uint32_t>(file.content.size());
  ASSERT_NE(size % kBlock, 0u);
  const std::pair<std::uint32_t, std::uint32_t> ranges[] = {
      {0, size}, {48, 1'000'000}, {4096, 262'144},  {size - 300'000, 300'000}, {1'234'567, 777'777},      {size - 7, 7},
      {100, 20}, {4090, 12},      {4095, 1 << 20},  {8192 + 48, 600'001},      {size - 262'144, 262'144}, {64, 0},
      {size, 0}, {size - 1, 1},   {65'536, 1 << 20}};
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) continue;
    for (const bool cold : {true, false}) {
      for (const bool helped : {false, true}) {
        if (cold) drop_cached(file.fd);
        SourceOptions options;
        options.kind = kind->name;
        options.helped = helped;
        Result<Source> source = Source::open(file.path, options);
        ASSERT_TRUE(source);
        std::vector<ReadRequest> all;
        std::vector<std::vector<std::byte>> memory(3 * std::size(ranges));
        for (const auto& [offset, bytes] : ranges) {
          for (const std::uint32_t beside : {0u, 64u, 1u}) {
            const auto ticket = static_cast<std::uint32_t>(all.size());
            all.push_back(request(offset, bytes, ticket, nullptr));
            all.back().into = placed(memory[ticket], all.back(), beside);
            all.back().blocks = true;
          }
        }
        ASSERT_EQ(source->submit(all), all.size());
        const std::vector<ErrorCode> codes = all_of(*source, all.size());
        for (const ReadRequest& r : all) {
          EXPECT_EQ(codes[r.ticket], ErrorCode::none);
          EXPECT_TRUE(right(r, file.content)) << kind->name << " " << r.offset << " " << r.size << " " << r.ticket % 3;
        }
      }
    }
  }
}

TEST(InPlace, AFileThatWasCutIsTold) {
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->past_cache) continue;
    const SomeFile file;
    SourceOptions options;
    options.kind = kind->name;
    Result<Source> source = Source::open(file.path, options);
    ASSERT_TRUE(source);
    std::filesystem::resize_file(file.path, 1'000'000);
    drop_cached(file.fd);
    std::array<std::vector<std::byte>, 3> memory;
    std::array all{request(100'000, 900'000, 0, nullptr), request(100'000, 900'001, 1, nullptr),
                   request(1'100'000, 600'000, 2, nullptr)};
    for (ReadRequest& r : all) {
      r.into = placed(memory[r.ticket], r, 0);
      r.blocks = true;
    }
    ASSERT_EQ(source->submit(all), all.size());
    EXPECT_EQ(all_of(*source, all.size()), (std::vector{ErrorCode::none, ErrorCode::truncated, ErrorCode::truncated}));
    EXPECT_TRUE(right(all[0], file.content));
  }
}

TEST(InPlace, WhatIsCancelledIsOverBeforeItsMemoryIsUsedAgain) {
  const SomeFile file;
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->past_cache) continue;
    drop_cached(file.fd);
    SourceOptions options;
    options.kind = kind->name;
    Result<Source> source = Source::open(file.path, options);
    ASSERT_TRUE(source);
    std::vector<std::vector<std::byte>> memory(40);
    std::vector<ReadRequest> all;
    for (std::uint32_t i = 0; i < memory.size(); ++i) {
      all.push_back(request(i * 40'000, 800'000, i, nullptr));
      all[i].into = placed(memory[i], all[i], 0);
      all[i].blocks = true;
    }
    ASSERT_EQ(source->submit(all), all.size());
    source->cancel();
    const std::vector<ErrorCode> codes = all_of(*source, all.size());
    for (const ReadRequest& r : all) {
      EXPECT_TRUE(codes[r.ticket] == ErrorCode::cancelled || right(r, file.content));
      std::ranges::fill(memory[r.ticket], std::byte{0x5a});
    }
    EXPECT_EQ(source->under_way(), 0u);
    for (const auto& bytes : memory) EXPECT_EQ(std::ranges::count(bytes, std::byte{0x5a}), std::ssize(bytes));
  }
}

struct Made {
  std::string hash;
  std::uint32_t slots = 0;
};

Made generate_by(const std::string& path, std::string_view kind, std::uint32_t threads, std::uint32_t ring) {
  HostOptions options;
  options.budget = 64u << 20;
  options.threads = threads;
  options.source.kind = kind;
  options.open.stream_all = ring != 0;
  options.open.ring_slots = ring;
  options.open.kv = KvType::f16;
  const std::atomic<bool> cancel{false};
  Result<std::unique_ptr<Host>> opened = Host::open(path, options, cancel);
  EXPECT_TRUE(opened) << opened.error().sentence;
  if (!opened) return {};
  Host& host = **opened;
  const std::uint32_t ids[] = {3, 700, 41};
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 4;
  prompt.ignore_eos = prompt.hash_logits = true;
  prompt.sampler.temperature = 0;
  EXPECT_TRUE(host.session().start(prompt));
  while (true) {
    const Result<Step> step = host.next();
    EXPECT_TRUE(step) << step.error().sentence;
    if (!step) return {};
    if (*step == Step::done) break;
  }
  return {std::string(host.session().logits_hash()), host.session().stats().ring_slots};
}

// A model of large segments, aligned and not, compressed and not, streamed and resident, by every source.
TEST(InPlace, LogitsAreTheSame) {
  SmallOptions o;
  o.n_layers = 3;
  o.dim = 256;
  o.ffn_dim = 688;
  o.n_heads = 8;
  o.head_dim = 32;
  o.vocab_size = 2001;
  o.repetitive = true;
  o.tied = false;
  const TempDir dir;
  const std::string path = dir / "m.qsf";
  std::string expected;
  for (const bool aligned : {false, true}) {
    o.segment_bytes = aligned ? 300'000 : 250'000;
    for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd}) {
      if (!can_decompress(compression)) continue;
      o.compression = compression;
      write_bytes(path, small_file(o).bytes);
      if (expected.empty()) expected = generate_by(path, "pread", 1, 0).hash;
      for (const SourceKind* kind : source_kinds()) {
        if (kind->url) continue;
        for (const std::uint32_t ring : {1u, 3u, 9u}) {
          for (const std::uint32_t threads : {1u, 2u}) {
            const int fd = sys::open_file(path);
            drop_cached(fd);
            sys::close_file(fd);
            const Made made = generate_by(path, kind->name, threads, ring);
            EXPECT_EQ(made.slots, ring);
            EXPECT_EQ(made.hash, expected) << kind->name << " " << aligned << static_cast<int>(compression) << ring;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
