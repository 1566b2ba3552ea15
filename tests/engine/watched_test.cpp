// A source that others watch: what they see read tells how many tokens there are, and not which.
#include <algorithm>
#include <set>

#include "engine/variants.h"
#include "file/open_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// What is asked for, in order: offset and size.
using Log = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

/// How a model is run.
struct Way {
  std::uint64_t budget = 8 * kMiB;
  std::uint32_t chunk = 0, ring = 0;
  bool stream_all = false;
  bool late = false;  // some reads end after all others
  int fails = 0;      // the number of the read that fails once, after which the text is begun anew
};

OpenOptions options_of(const Way& way, bool watched) {
  OpenOptions options = with_logits();
  options.chunk = way.chunk;
  options.ring_slots = way.ring;
  options.stream_all = way.stream_all;
  options.watched = watched;
  return options;
}

struct Seen {
  Log log;
  std::vector<std::string> hashes;
};

/// A text, then another as the first one's continuation, then one from the beginning; each is answered.
Seen watch(const SmallFile& file, const Way& way, bool watched, std::uint32_t vocab, std::size_t first) {
  Seen seen;
  int n = 0;
  const auto is_late = [&](const ReadRequest&) { return way.late && n % 3 == 0; };
  Host host(file.bytes, way.budget, options_of(way, watched), [&](const ReadRequest& r) {
    seen.log.emplace_back(r.offset, r.size);
    ++n;
    return is_late(r);
  });
  EXPECT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  bool failed = way.fails == 0;
  host.fault = [&](const ReadRequest&) { return !failed && n >= way.fails && (failed = true); };
  for (const std::size_t length : {13u, 9u, 4u}) {
    const Ids ids = some_tokens(length, vocab, first + length);
    if (length == 4u) {
      EXPECT_TRUE(host.session->rewind(0));
    }
    Generation run = host.generate(greedy(ids, 5));
    if (run.error.code == ErrorCode::io_error) {
      host.error = {};
      EXPECT_TRUE(host.session->rewind(0));
      run = host.generate(greedy(ids, 5));
    }
    EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    seen.hashes.push_back(run.hash);
  }
  EXPECT_TRUE(failed);
  return seen;
}

bool has_role(const SmallFile& file, Role role) {
  const auto opened = open_file(file.bytes);
  return std::ranges::any_of(opened->tensors, [&](const TensorEntry& t) { return t.role == role; });
}

/// All variants whose passes use the same weights whatever the text, and one whose tables are positions'.
std::vector<Named> without_choices() {
  std::vector<Named> all = variants();
  std::erase_if(all, [](const Named& v) { return has_role(small_file(v.options), Role::expert_down); });
  for (const bool tied : {true, false}) {
    Named learnt{"learnt positions", {}};
    learnt.options.tied = tied;
    learnt.options.optional = {Role::pos_embd};
    learnt.options.shape = [](std::uint32_t, LayerKind& k) { k.rope_dims = 0; };
    all.push_back(learnt);
  }
  return all;
}

std::vector<Way> ways() {
  std::vector<Way> all;
  all.push_back({});
  for (const std::uint32_t ring : {1u, 2u, 5u}) {
    for (const std::uint32_t chunk : {1u, 7u, 32u}) all.push_back({8 * kMiB, chunk, ring, true});
  }
  all.push_back({8 * kMiB, 7, 2, true, true});
  all.push_back({8 * kMiB, 7, 2, true, false, 50});
  return all;
}

TEST(Watched, TwoTextsOfOneLengthReadTheSame) {
  for (Named variant : without_choices()) {
    for (const FormatId format : {FormatId::f32, FormatId::q8}) {
      variant.options.format = format;
      variant.options.segment_bytes = 256;  // so that a segment of the embedding has few rows
      const std::uint32_t vocab = variant.options.vocab_size;
      const SmallFile file = small_file(variant.options);
      for (const Way& way : ways()) {
        const Seen one = watch(file, way, true, vocab, 5), other = watch(file, way, true, vocab, 21);
        EXPECT_NE(one.hashes, other.hashes);
        EXPECT_EQ(one.log, other.log) << variant.name << " chunk " << way.chunk << " ring " << way.ring;
        // The bits are those without a watcher, where the log tells the texts apart by the rows that are looked up.
        // None are if the only table is the head too and stays in memory.
        const Seen open = watch(file, way, false, vocab, 5);
        EXPECT_EQ(one.hashes, open.hashes) << variant.name << " chunk " << way.chunk << " ring " << way.ring;
        const bool looks_up = way.stream_all || !variant.options.tied || has_role(file, Role::layer_embd);
        EXPECT_EQ(open.log != watch(file, way, false, vocab, 21).log, looks_up) << variant.name << " ring " << way.ring;
      }
    }
  }
}

/// Budgets between those that stream as much as can be and those that keep all: nothing of a plan is given up for it.
TEST(Watched, SoDoTheyInAnyBudget) {
  for (const bool tied : {true, false}) {
    SmallOptions o;
    o.tied = tied;
    o.vocab_size = 400;
    o.n_layers = 3;
    const SmallFile file = small_file(o);
    std::set<std::uint32_t> pinned;
    std::string expected;
    for (std::uint64_t budget = kMiB + 192 * 1024; budget < kMiB + 640 * 1024; budget += 16 * 1024) {
      Way way;
      way.budget = budget;
      const Result<Session*> tried = [&]() -> Result<Session*> {
        Host host(file.bytes, budget, options_of(way, true));
        if (host.error.code != ErrorCode::none) return host.error;
        EXPECT_LE(host.session->stats().pinned_bytes, budget);
        pinned.insert(host.session->stats().n_pinned);
        return host.session;
      }();
      if (!tried) {
        EXPECT_EQ(error_of(tried).code, ErrorCode::budget_too_small);
        continue;
      }
      const Seen one = watch(file, way, true, o.vocab_size, 5), other = watch(file, way, true, o.vocab_size, 21);
      EXPECT_EQ(one.log, other.log) << budget;
      if (expected.empty()) expected = one.hashes[0];
    }
    EXPECT_GT(pinned.size(), 3u) << "budgets make a difference";
  }
}

/// The segments of a tensor of the first section, by offset.
std::vector<std::uint64_t> offsets_of(const OpenFile& file, Role role) {
  std::vector<std::uint64_t> offsets;
  for (const TensorEntry& t : file.tensors) {
    if (t.role != role || t.stage != 0) continue;
    for (std::uint32_t i = 0; i < t.n_segments; ++i) offsets.push_back(file.segments[t.first_segment + i].offset);
  }
  return offsets;
}

// What does not stay of the embedding is read whole by each pass, and once more where it is the head; a token takes as
// many bytes as the plan says.
TEST(Watched, APassReadsTheEmbeddingInOrder) {
  for (const bool tied : {true, false}) {
    SmallOptions o;
    o.tied = tied;
    o.format = FormatId::q8;
    o.segment_bytes = 256;
    o.vocab_size = 400;  // several segments
    const SmallFile file = small_file(o);
    const auto opened = open_file(file.bytes);
    ASSERT_TRUE(opened);
    const std::vector<std::uint64_t> table = offsets_of(*opened, Role::token_embd);
    ASSERT_GT(table.size(), 3u);
    for (const std::uint32_t ring : {1u, 3u}) {
      Way way;
      way.stream_all = true;
      way.ring = ring;
      std::vector<std::uint64_t> read;
      Host host(file.bytes, way.budget, options_of(way, true), [&](const ReadRequest& r) {
        if (std::ranges::find(table, r.offset) != table.end()) read.push_back(r.offset);
        return false;
      });
      const auto bytes_after = [&](std::uint32_t tokens) {
        EXPECT_TRUE(host.session->rewind(0));
        const std::uint64_t before = host.session->stats().bytes_read;
        EXPECT_EQ(host.generate(greedy(some_tokens(3, o.vocab_size), tokens)).error.code, ErrorCode::none);
        return host.session->stats().bytes_read - before;
      };
      bytes_after(1);
      const std::uint64_t two = bytes_after(2), three = bytes_after(3);
      EXPECT_EQ(three - two, host.session->stats().token_bytes);
      for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], table[i % table.size()]) << i;
      const std::size_t sweeps = (1 + 2 + 3) * (tied ? 2 : 1);
      EXPECT_GE(read.size(), sweeps * table.size());
      EXPECT_LT(read.size(), (sweeps + 1) * table.size());
    }
  }
}

// Only experts that do not stay can be told apart; without a watcher it is whatever no pass uses as a whole.
TEST(Watched, WhatTheTextDecidesIsTold) {
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const auto opened = open_file(file.bytes);
    ASSERT_TRUE(opened);
    for (const bool watched : {true, false}) {
      for (const bool stream_all : {true, false}) {
        Way way;
        way.stream_all = stream_all;
        Host host(file.bytes, way.budget, options_of(way, watched));
        ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
        for (const TensorEntry& t : opened->tensors) {
          const bool expert = t.role >= Role::expert_gate && t.role <= Role::expert_down;
          const bool table = t.role == Role::layer_embd || (t.role == Role::token_embd && !variant.options.tied);
          const bool expected = watched ? expert && stream_all : expert || table;
          for (std::uint32_t i = 0; i < t.n_segments; ++i) {
            EXPECT_EQ(host.session->is_by_text(t.first_segment + i), expected)
                << variant.name << " role " << static_cast<int>(t.role) << watched << stream_all;
          }
        }
      }
    }
  }
}

/// A mixture that stays is read before the first pass, in the file's order.
TEST(Watched, ExpertsThatStayAreReadBeforeTheText) {
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const Seen one = watch(file, {}, true, variant.options.vocab_size, 5);
    EXPECT_EQ(one.log, watch(file, {}, true, variant.options.vocab_size, 21).log) << variant.name;
    EXPECT_EQ(one.hashes, watch(file, {}, false, variant.options.vocab_size, 5).hashes) << variant.name;
  }
}

}  // namespace
}  // namespace qsf::test
