// A model that is streamed from a file which is cut, written anew or replaced under it.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "native/host/host.h"
#include "native/models.h"
#include "qsf/file/reader.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

struct Streamed {
  ErrorCode code = ErrorCode::none;
  std::string hash;
};

/// Some tokens from an empty context.
Streamed generate_some(Host& host) {
  const std::uint32_t ids[] = {0, 1700, 328};
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 6;
  prompt.ignore_eos = prompt.hash_logits = true;
  prompt.sampler.temperature = 0;
  Session& session = host.session();
  if (!session.rewind(0) || !session.start(prompt)) return {ErrorCode::internal, ""};
  while (true) {
    const Result<Step> step = host.next();
    if (!step) return {step.error().code, ""};
    if (*step == Step::done) return {ErrorCode::none, std::string(session.logits_hash())};
  }
}

class Streaming : public ::testing::TestWithParam<const SourceKind*> {
 protected:
  Streaming() { fs::copy(stories("8bit"), file()); }
  std::string file() const { return dir_ / "m.qsf"; }
  /// Slots, unless everything is used where it is mapped.
  static void expect_ring(Host& host) {
    EXPECT_EQ(host.session().stats().ring_slots == 0, !host.source().mapped().empty());
  }
  std::unique_ptr<Host> open(std::uint32_t threads, std::uint64_t budget = 4u << 20, std::uint32_t slots = 0) {
    HostOptions options;
    options.budget = budget;
    options.open.ring_slots = slots;
    options.threads = threads;
    options.source.kind = GetParam()->name;
    Result<std::unique_ptr<Host>> host = Host::open(file(), options, cancel_);
    EXPECT_TRUE(host) << host.error().sentence;
    return host ? std::move(*host) : nullptr;
  }

  TempDir dir_;
  std::atomic<bool> cancel_{false};
};

TEST_P(Streaming, ACutFileEndsTheGenerationAndAWholeOneGoesOn) {
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    const std::unique_ptr<Host> host = open(threads);
    ASSERT_TRUE(host);
    expect_ring(*host);
    const Streamed before = generate_some(*host);
    ASSERT_EQ(before.code, ErrorCode::none);
    const std::vector<std::byte> content = read_bytes(file());
    fs::resize_file(file(), content.size() / 3);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(generate_some(*host).code, ErrorCode::truncated) << threads;
    write_bytes(file(), content);
    EXPECT_EQ(generate_some(*host).hash, before.hash) << "with " << threads << " threads";
  }
}

// Whoever reads and unpacks, of segments stored as they are or compressed, also in the ring's deepest.
TEST_P(Streaming, EveryCompressionGivesTheSameBits) {
  std::string expected;
  for (const char* compress : {"none", "lz4", "zstd"}) {
    if (!can_decompress(Compression::zstd) && std::string_view(compress) == "zstd") continue;
    fs::remove(file());  // mingw-w64 overwrites nothing
    fs::copy(stories("f16", compress), file());
    for (const std::uint32_t threads : {1u, 2u, 5u}) {
      for (const std::uint32_t slots : {0u, 1u, 9u}) {
        const std::unique_ptr<Host> host = open(threads, 6u << 20, slots);
        ASSERT_TRUE(host);
        if (std::string_view(compress) == "none") expect_ring(*host);
        for (int i = 0; i < 2; ++i) {  // read for the first time, then again
          const Streamed made = generate_some(*host);
          ASSERT_EQ(made.code, ErrorCode::none) << compress << " " << threads << " " << slots;
          if (expected.empty()) expected = made.hash;
          EXPECT_EQ(made.hash, expected) << compress << " " << threads << " " << slots;
        }
      }
    }
  }
}

#ifndef _WIN32  // where an open file keeps its name
// Another file under the name is another file: what is open goes on.
TEST_P(Streaming, AReplacedFileChangesNothing) {
  const std::unique_ptr<Host> host = open(2);
  ASSERT_TRUE(host);
  const Streamed before = generate_some(*host);
  write_bytes(dir_ / "other", some_bytes(1'000'000));
  fs::rename(dir_ / "other", file());
  EXPECT_EQ(generate_some(*host).hash, before.hash);
  fs::remove(file());
  EXPECT_EQ(generate_some(*host).hash, before.hash);
}
#endif

TEST_P(Streaming, BytesThatAreWrongTheFirstTimeAreToldOnceAndRightTheNext) {
  const std::vector<std::byte> content = read_bytes(file());
  std::vector<std::byte> wrong = content;
  const std::unique_ptr<Host> host = open(2);
  ASSERT_TRUE(host);
  for (std::size_t i = wrong.size() / 2; i < wrong.size(); ++i) wrong[i] ^= std::byte{1};
  write_bytes(file(), wrong);
  EXPECT_EQ(generate_some(*host).code, ErrorCode::bad_checksum);
  write_bytes(file(), content);
  const Streamed good = generate_some(*host);
  EXPECT_EQ(good.code, ErrorCode::none);
  const std::unique_ptr<Host> again = open(1);
  EXPECT_EQ(generate_some(*again).hash, good.hash);
}

std::vector<const SourceKind*> file_kinds() {
  std::vector<const SourceKind*> kinds;
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->url) kinds.push_back(kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Sources, Streaming, ::testing::ValuesIn(file_kinds()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace qsf::test
