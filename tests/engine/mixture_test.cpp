// Mixtures of experts: what is read of them, what is kept, and that neither changes a bit.
#include <map>
#include <set>
#include <thread>

#include "engine/variants.h"
#include "file/open_file.h"

namespace qsf::test {
namespace {

SmallOptions mixture(FormatId format = FormatId::q8) {
  SmallOptions o;
  o.format = format;
  o.n_layers = 3;
  o.shape = [](std::uint32_t, LayerKind& k) {
    k.ffn = Ffn::mixture;
    k.n_experts = 16;
    k.experts_used = 3;
    k.expert_dim = 48;
    k.shared_dim = 16;
    k.router_norm = 1;
  };
  return o;
}

bool is_experts(Role role) { return role >= Role::expert_gate && role <= Role::expert_down; }

/// The experts' segments: which expert of which section each is of.
std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> segments_of_experts(const OpenFile& file) {
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> out;
  for (const TensorEntry& t : file.tensors) {
    if (!is_experts(t.role)) continue;
    const std::uint32_t rows = t.rows / file.table.view().kind(t.stage - 1).n_experts;
    for (std::uint32_t i = 0; i < t.n_segments; ++i) {
      const SegmentEntry& s = file.segments[t.first_segment + i];
      const std::uint64_t at = s.raw_begin < t.raw_offset ? 0 : s.raw_begin - t.raw_offset;
      out[t.first_segment + i] = {t.stage,
                                  static_cast<std::uint32_t>(at / row_bytes(*find_format(t.format), t.cols) / rows)};
    }
  }
  return out;
}

TEST(Mixture, SameBitsOnAnyNumberOfThreads) {
  for (const FormatId format : {FormatId::f32, FormatId::q8}) {
    const SmallFile file = small_file(mixture(format));
    const auto ids = some_tokens(29, 40);
    const std::string expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 3)).hash;
    for (const std::uint32_t threads : {2u, 3u, 8u}) {
      OpenOptions options = with_logits();
      options.workers = {run_on_threads, nullptr, threads};
      EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).generate(all_logits(ids, 3)).hash, expected);
    }
  }
}

// Experts of widths that are no whole tiles are stored as rows.
TEST(Mixture, SameBitsCompressedAndRowMajor) {
  SmallOptions o = mixture();
  const auto ids = some_tokens(9, o.vocab_size);
  const auto hash = [&](const SmallFile& file, bool stream_all) {
    OpenOptions options = with_logits();
    options.stream_all = stream_all;
    const Generation run = Host(file.bytes, 8 * kMiB, options).generate(all_logits(ids, 5));
    EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    return run.hash;
  };
  for (const std::uint32_t width : {48u, 20u}) {
    o.shape = [width, before = mixture().shape](std::uint32_t layer, LayerKind& k) {
      before(layer, k);
      k.expert_dim = width;
    };
    o.layout = Layout::rows;
    o.compression = Compression::none;
    const std::string expected = hash(small_file(o), false);
    o.layout = width == 48 ? Layout::tiles : Layout::rows;
    for (const Compression compression : {Compression::none, Compression::lz4}) {
      o.compression = compression;
      const SmallFile file = small_file(o);
      EXPECT_EQ(hash(file, false), expected) << width;
      EXPECT_EQ(hash(file, true), expected) << width;
    }
  }
}

/// Of one token, with nothing kept: at most the experts that it took are read.
TEST(Mixture, WhatWasNotChosenIsNotRead) {
  const SmallFile file = small_file(mixture());
  const auto opened = open_file(file.bytes);
  ASSERT_TRUE(opened);
  const auto experts = segments_of_experts(*opened);
  std::map<std::uint64_t, std::uint32_t> by_offset;
  for (const auto& [segment, of] : experts) by_offset[opened->segments[segment].offset] = segment;
  for (const std::uint32_t ring : {1u, 2u, 6u}) {
    OpenOptions options = with_logits();
    options.stream_all = true;
    options.ring_slots = ring;
    std::map<std::uint32_t, std::set<std::uint32_t>> read;  // experts by section
    std::map<std::uint32_t, int> times;
    Host host(file.bytes, 8 * kMiB, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    host.fault = [&](const ReadRequest& r) {
      if (const auto found = by_offset.find(r.offset); found != by_offset.end()) {
        const auto [section, expert] = experts.at(found->second);
        read[section].insert(expert);
        ++times[found->second];
      }
      return false;
    };
    const Generation run = host.generate(all_logits(some_tokens(1, 40), 0));
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    ASSERT_EQ(read.size(), 3u);
    for (const auto& [section, which] : read) EXPECT_EQ(which.size(), 3u) << "section " << section;
    for (const auto& [segment, n] : times) EXPECT_EQ(n, 1) << "segment " << segment;
  }
}

/// A chunk reads an expert that it takes once, however many of its columns take it.
TEST(Mixture, AChunkReadsAnExpertOnce) {
  const SmallFile file = small_file(mixture());
  const auto opened = open_file(file.bytes);
  ASSERT_TRUE(opened);
  std::map<std::uint64_t, int> times;
  for (const auto& [segment, of] : segments_of_experts(*opened)) times[opened->segments[segment].offset] = 0;
  OpenOptions options = with_logits();
  options.stream_all = true;
  options.chunk = 32;
  Host host(file.bytes, 8 * kMiB, options);
  host.fault = [&](const ReadRequest& r) {
    if (const auto found = times.find(r.offset); found != times.end()) ++found->second;
    return false;
  };
  const Generation run = host.generate(all_logits(some_tokens(30, 40), 0));
  ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
  for (const auto& [offset, n] : times) EXPECT_LE(n, 1) << offset;
}

/// Routers of zeros, which choose the first experts always.
SmallFile impartial() {
  SmallFile small;
  FileSpec source = small_source(mixture(), small);
  for (auto& [tensor, weights] : small.weights) {
    if (tensor.second == Role::router) std::ranges::fill(weights, 0.0f);
  }
  EXPECT_TRUE(write_file(source, memory_sink(small.bytes), {}));
  return small;
}

/// A budget that leaves room for some experts of each layer.
std::uint64_t some_experts(const SmallFile& file, const OpenOptions& options, std::uint64_t eighths) {
  const Host all(file.bytes, 8 * kMiB, options);
  std::uint64_t free = 0;
  for (const MemoryRegion& region : all.session->memory_map()) free += region.region == Region::free ? region.bytes : 0;
  return 8 * kMiB - free - all.session->stats().weight_bytes * (8 - eighths) / 8;
}

TEST(Mixture, WhatIsFoundAndReadIsCounted) {
  OpenOptions options = with_logits();
  options.max_seq_len = 64;
  options.chunk = 1;
  const SmallFile file = impartial();
  const auto opened = open_file(file.bytes);
  ASSERT_TRUE(opened);
  std::uint64_t bytes = 0;  // of the first three experts
  for (const auto& [segment, of] : segments_of_experts(*opened)) {
    if (of.second < 3) bytes += opened->segments[segment].stored_size;
  }
  Host host(file.bytes, some_experts(file, options, 4), options);
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  ASSERT_GT(host.session->stats().ring_slots, 0u);
  EXPECT_EQ(host.session->stats().experts_chosen, 0u);
  constexpr std::uint64_t kOfToken = 3 * 3;
  ASSERT_EQ(host.generate(greedy(some_tokens(1, 40), 0)).error.code, ErrorCode::none);
  Stats s = host.session->stats();
  EXPECT_EQ(s.experts_chosen, kOfToken);
  EXPECT_EQ(s.experts_found, 0u);
  EXPECT_EQ(s.expert_bytes, bytes);
  ASSERT_EQ(host.generate(greedy(some_tokens(6, 40), 0)).error.code, ErrorCode::none);
  s = host.session->stats();
  EXPECT_EQ(s.experts_chosen, 7 * kOfToken);
  EXPECT_EQ(s.experts_found, 6 * kOfToken);
  EXPECT_EQ(s.expert_bytes, bytes);
}

/// Columns of a pass take an expert together; what is read is what the host gives.
TEST(Mixture, CountsOfChunksAndOfWhatIsRead) {
  const SmallFile even = impartial(), random = small_file(mixture());
  for (const bool all : {false, true}) {
    OpenOptions options = with_logits();
    options.max_seq_len = 64;
    options.chunk = 8;
    options.stream_all = all;
    Host chunks(even.bytes, 8 * kMiB, options);
    ASSERT_EQ(chunks.generate(greedy(some_tokens(20, 40), 0)).error.code, ErrorCode::none);
    EXPECT_EQ(chunks.session->stats().experts_chosen, 3u * 3 * 3);

    const auto opened = open_file(random.bytes);
    ASSERT_TRUE(opened);
    std::set<std::uint64_t> offsets;
    for (const auto& [segment, of] : segments_of_experts(*opened)) offsets.insert(opened->segments[segment].offset);
    Host host(random.bytes, all ? 8 * kMiB : some_experts(random, options, 5), options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    std::uint64_t bytes = 0;
    host.fault = [&](const ReadRequest& r) {
      if (offsets.contains(r.offset)) bytes += r.size;
      return false;
    };
    ASSERT_EQ(host.generate(greedy(some_tokens(20, 40), 20)).error.code, ErrorCode::none);
    const Stats s = host.session->stats();
    EXPECT_EQ(s.expert_bytes, bytes);
    EXPECT_GT(bytes, 0u);
    EXPECT_LT(s.experts_found, s.experts_chosen);
    EXPECT_EQ(s.experts_found == 0, all);
    EXPECT_GE(s.experts_chosen, 3u * 3 * (3 + 19));
  }
}

/// With every read of an expert held back until the session can do nothing without it: by then those that were in
/// memory are computed, whichever of the layer's they are.
TEST(Mixture, WhatIsThereIsComputedBeforeWaiting) {
  const SmallFile file = small_file(mixture());
  const auto opened = open_file(file.bytes);
  ASSERT_TRUE(opened);
  std::set<std::uint64_t> offsets;
  for (const auto& [segment, of] : segments_of_experts(*opened)) offsets.insert(opened->segments[segment].offset);
  const std::size_t of_expert = offsets.size() / (3 * 16);
  OpenOptions options = with_logits();
  options.max_seq_len = 64;
  options.chunk = 1;
  const auto is_expert = [&](const ReadRequest& r) { return offsets.contains(r.offset); };
  Host host(file.bytes, some_experts(file, options, 5), options, is_expert);
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  const auto products = [&] {
    std::uint64_t n = 0;
    for (const KernelCount& count : host.session->kernel_counts()) n += count.op == "matmul" ? count.calls : 0;
    return n;
  };
  std::uint64_t chosen = 0, found = 0, before = 0, base = 0, found_now = 0;
  bool waits = false;
  int part = 0;  // how often some were there, and some were not
  const auto look = [&] {
    const Stats s = host.session->stats();
    if (s.experts_chosen != chosen) {
      base = before;
      found_now = s.experts_found - found;
      chosen = s.experts_chosen;
      waits = true;
    }
    found = s.experts_found;
    before = products();
    return false;
  };
  host.stop_when = look;
  host.fault = [&](const ReadRequest& r) {
    look();
    if (!is_expert(r) || !waits) return false;
    EXPECT_EQ(before - base, found_now * of_expert);
    part += found_now > 0 ? 1 : 0;
    waits = false;
    return false;
  };
  ASSERT_EQ(host.generate(greedy(some_tokens(20, 40), 20)).error.code, ErrorCode::none);
  EXPECT_GT(part, 20);
}

/// Between the least budget and everything: the same bits, never more than the budget, and with room for experts fewer
/// bytes are read.
TEST(Mixture, BudgetsKeepExpertsAndBits) {
  const SmallFile file = small_file(mixture());
  const auto ids = some_tokens(21, 40);
  OpenOptions options = with_logits();
  options.max_seq_len = 64;
  options.chunk = 8;
  Host all(file.bytes, 8 * kMiB, options);
  const Generation expected = all.generate(all_logits(ids, 30));
  ASSERT_EQ(expected.error.code, ErrorCode::none) << expected.error.sentence;
  const std::uint64_t weights = all.session->stats().weight_bytes;
  std::uint64_t free = 0;
  for (const MemoryRegion& region : all.session->memory_map()) free += region.region == Region::free ? region.bytes : 0;
  const std::uint64_t whole = 8 * kMiB - free;
  std::uint64_t most = 0, least = ~0ull;
  int streamed = 0;
  for (int eighths = 0; eighths <= 8; ++eighths) {
    const std::uint64_t budget = (whole - weights * 7 / 8 + weights * 7 / 8 * eighths / 8 + 4096) / 4096 * 4096;
    Host host(file.bytes, budget, options);
    if (host.error.code == ErrorCode::budget_too_small) continue;
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    const Generation run = host.generate(all_logits(ids, 30));
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    EXPECT_EQ(run.hash, expected.hash) << budget;
    EXPECT_EQ(run.tokens, expected.tokens) << budget;
    std::uint64_t total = 0;
    for (const MemoryRegion& region : host.session->memory_map()) total += region.bytes;
    EXPECT_EQ(total, budget);
    const std::uint64_t read = host.session->stats().bytes_read;
    if (host.session->stats().ring_slots == 0) continue;
    ++streamed;
    EXPECT_LE(read, least) << "more memory, more reading: " << budget;
    most = std::max(most, read);
    least = std::min(least, read);
  }
  EXPECT_GE(streamed, 3);
  EXPECT_LT(least, most / 2);
}

// Late answers, whatever is asked for: slots are never needed twice.
TEST(Mixture, ReadsThatComeLate) {
  const SmallFile file = small_file(mixture());
  const auto ids = some_tokens(11, 40);
  const std::string expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 9)).hash;
  for (const std::uint32_t ring : {1u, 2u, 3u}) {
    for (const std::uint64_t budget : {8 * kMiB, kHostReserve + 600 * 1024}) {
      OpenOptions options = with_logits();
      options.ring_slots = ring;
      options.stream_all = budget == 8 * kMiB;
      options.max_seq_len = 64;
      options.chunk = 8;
      std::uint32_t n = 0;
      Host host(file.bytes, budget, options, [&](const ReadRequest&) { return n++ % 3 != 0; });
      ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
      const Generation run = host.generate(all_logits(ids, 9));
      ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
      EXPECT_EQ(run.hash, expected) << ring;
    }
  }
}

TEST(Mixture, AFailedReadCanBeTriedAgain) {
  const SmallFile file = small_file(mixture());
  const auto ids = some_tokens(11, 40);
  const std::string expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 9)).hash;
  for (std::uint32_t failing = 3; failing < 90; failing += 7) {
    OpenOptions options = with_logits();
    options.max_seq_len = 64;
    options.chunk = 8;
    Host host(file.bytes, kHostReserve + 600 * 1024, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    std::uint32_t n = 0;
    host.fault = [&](const ReadRequest&) { return ++n == failing; };
    Generation run = host.generate(all_logits(ids, 9));
    if (run.error.code != ErrorCode::none) {
      EXPECT_EQ(run.error.code, ErrorCode::io_error);
      host.error = {};
      ASSERT_TRUE(host.session->start(greedy({}, 0)) || host.session->rewind(0));
      ASSERT_TRUE(host.session->rewind(0));
      run = host.generate(all_logits(ids, 9));
    }
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    EXPECT_EQ(run.hash, expected) << failing;
  }
}

// The router's scores are no numbers, and neither are the logits: the generation ends with that, wherever the weights
// are.
TEST(Mixture, LogitsThatAreNoNumbers) {
  SmallFile small;
  FileSpec source = small_source(mixture(FormatId::f32), small);
  std::ranges::fill(small.weights.at({2, Role::router}), std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(write_file(source, memory_sink(small.bytes), {}));
  const auto ids = some_tokens(5, 40);
  OpenOptions streamed = with_logits();
  streamed.stream_all = true;
  for (const OpenOptions& options : {with_logits(), streamed}) {
    const Generation run = Host(small.bytes, 8 * kMiB, options).generate(all_logits(ids, 4));
    EXPECT_EQ(run.error.code, ErrorCode::not_finite) << run.error.sentence;
    EXPECT_TRUE(run.tokens.empty());
  }
}

TEST(Mixture, KindsThatCannotBeAreRefused) {
  LayerKind good = usual_kind({});
  mixture().shape(0, good);
  ASSERT_TRUE(check_kind(good));
  const auto refused = [&](auto change) {
    LayerKind kind = good;
    change(kind);
    const Status status = check_kind(kind);
    return status ? std::string() : std::string(status.error().sentence);
  };
  EXPECT_EQ(refused([](LayerKind& k) { k.n_experts = 0; }), "a mixture has 0 experts of width 48");
  EXPECT_EQ(refused([](LayerKind& k) { k.expert_dim = 0; }), "a mixture has 16 experts of width 0");
  EXPECT_EQ(refused([](LayerKind& k) { k.experts_used = 17; }), "experts_used is 17; it must be 1 to n_experts 16");
  EXPECT_EQ(refused([](LayerKind& k) { k.experts_used = 0; }), "experts_used is 0; it must be 1 to n_experts 16");
  EXPECT_EQ(refused([](LayerKind& k) { k.n_experts = 5000; }), "n_experts is 5000; it must be 0 to 1024");
  EXPECT_EQ(refused([](LayerKind& k) { k.router = Router{4}; }), "router is 4; it must be 0 to 3");
  EXPECT_EQ(refused([](LayerKind& k) {
              k.ffn = Ffn::plain;
              k.gate_limit = 7;
            }),
            "gate_limit, gate_slope and up_offset are of networks with a gate");
  const auto groups = [&](std::uint32_t n, std::uint32_t used, Router router = Router::softmax) {
    return refused([=](LayerKind& k) {
      k.router_groups = n;
      k.router_groups_used = used;
      k.router = router;
    });
  };
  EXPECT_EQ(groups(4, 2), "");
  EXPECT_EQ(groups(3, 3), "3 of 3 groups of 16 experts do not have the 3 that a token selects");
  EXPECT_EQ(groups(4, 0), "0 of 4 groups of 16 experts do not have the 3 that a token selects");
  EXPECT_EQ(groups(4, 5), "5 of 4 groups of 16 experts do not have the 3 that a token selects");
  EXPECT_EQ(groups(8, 1), "1 of 8 groups of 16 experts do not have the 3 that a token selects");
  EXPECT_EQ(groups(4, 2, Router::softmax_near), "router 3 has no groups of experts");
  EXPECT_EQ(refused([](LayerKind& k) { k.query_growth = 0.5f; }), "query_growth is 0.5, but query_span is 0");
}

}  // namespace
}  // namespace qsf::test
