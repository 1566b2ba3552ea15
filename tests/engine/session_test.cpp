// The whole engine on small models: against a double-precision reference, and against itself wherever a choice of
// plan, chunk, thread or instruction set must not change a bit.
#include <thread>

#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "file/repair.h"
#include "qsf/text/tokenizer_builder.h"
#include "tests/support/error_of.h"
#include "tests/support/farthest.h"

namespace qsf::test {
namespace {

// A value near the middle between two codes may be rounded otherwise than in double; none is, of these seeds.
TEST(Session, AgreesWithDoublePrecision) {
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const auto ids = some_tokens(21, variant.options.vocab_size, 7);
    for (std::size_t type = 0; type < kKvNames.size(); ++type) {
      OpenOptions options = with_logits();
      options.kv = static_cast<KvType>(type);
      if (forms_of(*options.kv).rotates()) continue;
      Host host(file.bytes, 8 * kMiB, options);
      const Generation run = host.generate(all_logits(ids, 0));
      ASSERT_EQ(run.error.code, ErrorCode::none) << variant.name << ": " << run.error.sentence;
      const auto expected = reference_logits(variant.options, file, ids, *options.kv);
      Vec all;
      for (const Vec& row : expected) all.insert(all.end(), row.begin(), row.end());
      EXPECT_LT(relative_difference(run.logits, all), 1e-4) << variant.name << " " << kKvNames[type];
    }
  }
}

TEST(Session, SameBitsWhateverThePlan) {
  for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4}) {
    for (Named variant : variants()) {
      variant.options.format = format;
      const SmallFile file = small_file(variant.options);
      const auto ids = some_tokens(23, variant.options.vocab_size);
      Host reference(file.bytes, 8 * kMiB, with_logits());
      const Generation expected = reference.generate(all_logits(ids, 12));
      ASSERT_EQ(expected.error.code, ErrorCode::none) << expected.error.sentence;
      ASSERT_EQ(expected.tokens.size(), 12u);
      for (const std::uint32_t chunk : {1u, 7u, 32u}) {
        for (const std::uint32_t ring : {0u, 1u, 2u, 5u}) {
          OpenOptions options = with_logits();
          options.chunk = chunk;
          options.ring_slots = ring;
          options.stream_all = ring != 0;
          Host host(file.bytes, 8 * kMiB, options);
          const Generation run = host.generate(all_logits(ids, 12));
          ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
          EXPECT_EQ(run.hash, expected.hash) << variant.name << " chunk " << chunk << " ring " << ring;
          EXPECT_EQ(run.tokens, expected.tokens);
          EXPECT_EQ(host.session->stats().ring_slots, ring);
        }
      }
      for (const Kernels* kernels : available_kernels()) {
        OpenOptions options = with_logits();
        options.isa = kernels->isa;
        EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).generate(all_logits(ids, 12)).hash, expected.hash)
            << kernels->isa;
      }
    }
  }
}

// Prompts longer than what a pass has and than what shares a reading of keys and values, in windows too.
TEST(Session, SameBitsHoweverManyTokensShareAReading) {
  for (const std::uint32_t window : {0u, 40u}) {
    SmallOptions o;
    o.max_seq_len = 300;
    o.head_dim = 16;
    o.window = window;
    const SmallFile file = small_file(o);
    const auto ids = some_tokens(200, o.vocab_size);
    for (std::size_t type = 0; type < kKvNames.size(); ++type) {
      OpenOptions options = with_logits();
      options.kv = static_cast<KvType>(type);
      options.chunk = 1;
      const std::string expected = Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 3)).hash;
      options.chunk = 0;
      for (const Kernels* kernels : available_kernels()) {
        options.isa = kernels->isa;
        Host host(file.bytes, 16 * kMiB, options);
        EXPECT_EQ(host.session->stats().chunk, 128u);
        EXPECT_EQ(host.generate(all_logits(ids, 3)).hash, expected) << window << kKvNames[type] << kernels->isa;
      }
      options.stream_all = true;
      Host host(file.bytes, 16 * kMiB, options);
      EXPECT_EQ(host.session->stats().chunk, 32u);
      EXPECT_EQ(host.generate(all_logits(ids, 3)).hash, expected) << window << kKvNames[type];
    }
  }
}

TEST(Session, SameBitsCompressedAndRowMajor) {
  for (const FormatId format : {FormatId::f32, FormatId::q8, FormatId::q4, ggml_type(2)}) {
    SmallOptions o;
    o.format = format;
    o.repetitive = true;  // so that segments do shrink
    o.ffn_dim = 172;      // partial last blocks
    const auto ids = some_tokens(9, o.vocab_size);
    const SmallFile plain = small_file(o);
    const std::string expected = Host(plain.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 5)).hash;
    for (const Layout layout : {Layout::tiles, Layout::rows}) {
      for (const Compression compression :
           {Compression::none, Compression::lz4, Compression::lz4hc, Compression::zstd}) {
        if (!can_decompress(compression)) continue;
        o.layout = layout;
        o.compression = compression;
        const SmallFile file = small_file(o);
        EXPECT_TRUE(compression == Compression::none || file.bytes.size() < plain.bytes.size());
        for (const bool stream_all : {false, true}) {
          OpenOptions options = with_logits();
          options.stream_all = stream_all;
          const Generation run = Host(file.bytes, 8 * kMiB, options).generate(all_logits(ids, 5));
          ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
          EXPECT_EQ(run.hash, expected) << static_cast<int>(format) << static_cast<int>(compression);
        }
      }
    }
  }
}

// Segments lie in slots of whole blocks then, whose other bytes are overwritten; all that are streamed can be read so.
TEST(Session, SameBitsAligned) {
  for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4}) {
    SmallOptions o = compressible(format);
    const auto ids = some_tokens(9, o.vocab_size);
    o.aligned = false;
    const std::string expected = Host(small_file(o).bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 5)).hash;
    o.aligned = true;
    for (const Layout layout : {Layout::tiles, Layout::rows}) {
      for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd}) {
        if (!can_decompress(compression)) continue;
        o.layout = layout;
        o.compression = compression;
        const SmallFile file = small_file(o);
        for (const std::uint32_t ring : {0u, 1u, 2u, 5u}) {
          OpenOptions options = with_logits();
          options.ring_slots = ring;
          options.stream_all = ring != 0;
          Host host(file.bytes, 8 * kMiB, options);
          const Generation run = host.generate(all_logits(ids, 5));
          ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
          EXPECT_EQ(run.hash, expected) << static_cast<int>(format) << static_cast<int>(compression) << ring;
          EXPECT_EQ(host.in_place != 0, host.session->stats().ring_slots != 0);
          EXPECT_EQ(host.in_place, host.of_blocks);
        }
      }
    }
  }
}

// The flag alone, over segments that lie anywhere: memory is as odd as they are.
TEST(Session, SameBitsWhereTheFlagIsWrong) {
  for (const FormatId format : {FormatId::f32, FormatId::bf16, FormatId::q8, FormatId::q4, ggml_type(2)}) {
    SmallOptions o;
    o.format = format;
    o.ffn_dim = 172;
    o.tied = false;
    const auto ids = some_tokens(9, o.vocab_size);
    SmallFile file = small_file(o);
    const std::string expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 5)).hash;
    std::byte* const header = file.bytes.data();
    store_le(header + 120, load_le<std::uint32_t>(header + 120) | kFlagAligned);
    store_le(header + 124, crc32({header + 100, 24}));
    OpenOptions options = with_logits();
    options.stream_all = true;
    for (const Kernels* kernels : available_kernels()) {
      options.isa = kernels->isa;
      Host host(file.bytes, 8 * kMiB, options);
      EXPECT_EQ(host.generate(all_logits(ids, 5)).hash, expected) << static_cast<int>(format) << kernels->isa;
      EXPECT_NE(host.in_place, 0u);
    }
  }
}

TEST(Session, SameBitsOnAnyNumberOfThreads) {
  SmallOptions o;
  o.format = FormatId::q8;
  o.ffn_dim = 300;  // several tasks of 64 rows, the last one partial
  o.qk_norm = true;
  const SmallFile file = small_file(o);
  const auto ids = some_tokens(9, o.vocab_size);
  const std::string expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 3)).hash;
  for (const std::uint32_t threads : {2u, 3u, 8u}) {
    OpenOptions options = with_logits();
    options.workers = {run_on_threads, nullptr, threads};
    EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).generate(all_logits(ids, 3)).hash, expected);
  }
}

TEST(Session, StoppingAnywhereLeavesACleanInstance) {
  for (const std::uint32_t window : {0u, 6u}) {
    SmallOptions o;
    o.window = window;
    const SmallFile file = small_file(o);
    const auto ids = some_tokens(19, o.vocab_size);
    OpenOptions options = with_logits();
    options.stream_all = true;
    options.chunk = 8;
    const Generation expected = Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, 10));
    Host host(file.bytes, 8 * kMiB, options);
    for (int stop_after = 1; stop_after < 400; stop_after += 13) {
      int steps = 0;
      host.stop_when = [&] { return ++steps == stop_after; };
      (void)host.generate(greedy(ids, 10));
      host.session->stop();
      host.stop_when = nullptr;
      ASSERT_TRUE(host.session->rewind(0));
      const Generation again = host.generate(greedy(ids, 10));
      EXPECT_EQ(again.tokens, expected.tokens) << stop_after;
      EXPECT_EQ(again.hash, expected.hash) << stop_after;
      ASSERT_TRUE(host.session->rewind(0));
    }
  }
}

TEST(Session, ContinuesAndRewindsAsIfComputedAtOnce) {
  for (const std::uint32_t window : {0u, 6u}) {
    SmallOptions o;
    o.window = window;
    const SmallFile file = small_file(o);
    const auto ids = some_tokens(20, o.vocab_size);
    const std::vector<std::uint32_t> first(ids.begin(), ids.begin() + 11), second(ids.begin() + 11, ids.end());
    const Generation expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(greedy(ids, 6));

    Host host(file.bytes, 8 * kMiB, with_logits());
    (void)host.generate(greedy(first, 0));
    EXPECT_EQ(host.generate(greedy(second, 6)).tokens, expected.tokens);
    ASSERT_TRUE(host.session->rewind(11));
    EXPECT_EQ(host.generate(greedy(second, 6)).tokens, expected.tokens) << window;
    EXPECT_FALSE(host.session->rewind(1000));
  }
}

TEST(Session, GoesOnWithoutANewToken) {
  for (Named variant : variants()) {
    TokenizerSource source;
    source.kind = TokenizerKind::spm_bpe;
    source.tokens = {{"<unk>", 0, TokenType::unknown}, {"a"}};
    while (source.tokens.size() < variant.options.vocab_size) source.tokens.push_back({"", 0, TokenType::unused});
    variant.options.tokenizer = *build_tokenizer(source);
    const SmallFile file = small_file(variant.options);
    const auto ids = some_tokens(23, variant.options.vocab_size);
    Host host(file.bytes, 8 * kMiB, with_logits());
    const Generation expected = host.generate(greedy(ids, 12));
    ASSERT_EQ(expected.tokens.size(), 12u) << variant.name;
    for (const std::uint32_t kept : {0u, 5u}) {
      ASSERT_TRUE(host.session->rewind(23 + kept)) << variant.name;
      const Generation rest = host.generate(greedy({}, 12 - kept));
      EXPECT_EQ(rest.error.code, ErrorCode::none) << variant.name << ": " << rest.error.sentence;
      EXPECT_EQ(rest.tokens, std::vector(expected.tokens.begin() + kept, expected.tokens.end())) << variant.name;
    }
  }
}

TEST(Session, AFailedReadCanBeTriedAgain) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, 40);
  OpenOptions options = with_logits();
  options.stream_all = true;
  const Generation expected = Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, 4));
  for (int faulty = 0; faulty < 60; faulty += 7) {
    Host host(file.bytes, 8 * kMiB, options);
    int reads = 0;
    host.fault = [&](const ReadRequest&) { return reads++ == faulty; };
    const Generation failed = host.generate(greedy(ids, 4));
    ASSERT_EQ(failed.error.code, ErrorCode::io_error) << faulty;
    EXPECT_STREQ(failed.error.sentence, "the test's fault");
    host.error = {};
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_EQ(host.generate(greedy(ids, 4)).tokens, expected.tokens) << faulty;
  }
}

TEST(Session, DamageIsNamedNotComputedWith) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(5, 40);
  Host sound(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(sound.generate(greedy(ids, 2)).error.code, ErrorCode::none);
  for (const SegmentEntry& segment : sound.session->segments()) {
    std::vector<std::byte> damaged = file.bytes;
    damaged[segment.offset + segment.stored_size / 2] ^= std::byte{4};
    const Generation run = Host(damaged, 8 * kMiB, {}).generate(greedy(ids, 2));
    EXPECT_EQ(run.error.code, ErrorCode::bad_checksum);
    EXPECT_NE(std::string(run.error.sentence).find("segment"), std::string::npos) << run.error.sentence;
  }
}

TEST(Session, RefusesABudgetThatIsTooSmallAndNamesOneThatDoes) {
  SmallOptions o;
  o.ffn_dim = 400;
  o.n_layers = 8;
  o.segment_bytes = 4096;
  const SmallFile file = small_file(o);
  Host refused(file.bytes, kHostReserve + 60 * 1024, {});
  ASSERT_EQ(refused.error.code, ErrorCode::budget_too_small) << refused.error.sentence;
  double needed = 0;
  ASSERT_EQ(std::sscanf(refused.error.sentence, "this model needs at least %lf MiB", &needed), 1)
      << refused.error.sentence;
  Host opened(file.bytes, static_cast<std::uint64_t>(needed * kMiB), {});
  EXPECT_EQ(opened.error.code, ErrorCode::none) << opened.error.sentence;
  EXPECT_EQ(opened.generate(greedy(some_tokens(5, 40), 3)).tokens.size(), 3u);
}

TEST(Session, RefusesHeadsWiderThanKernelsTake) {
  SmallOptions o;
  o.n_heads = o.n_kv_heads = 1;
  o.head_dim = kMaxHeadDim;
  o.segment_bytes = 1 << 16;
  const SmallFile widest = small_file(o);
  Host opened(widest.bytes, 8 * kMiB, {});
  ASSERT_EQ(opened.error.code, ErrorCode::none) << opened.error.sentence;
  EXPECT_EQ(opened.generate(greedy(some_tokens(5, 40), 3)).tokens.size(), 3u);
  o.head_dim = kMaxHeadDim + 2;
  SmallFile wider;  // by the check that opening makes too
  const auto written = write_file(small_source(o, wider), memory_sink(wider.bytes), {});
  ASSERT_FALSE(written);
  EXPECT_EQ(error_of(written).code, ErrorCode::unsupported);
  EXPECT_STREQ(error_of(written).sentence, "head_dim 1026 is more than 1024");
}

/// The file with the vectors of every layer in two segments, as another writer may cut them: a new segment table at the
/// end, the tensor table's places moved along.
std::vector<std::byte> with_split_vectors(const std::vector<std::byte>& file) {
  std::vector<std::byte> out = file;
  const std::uint64_t directory = load_le<std::uint64_t>(&out[100]);
  const std::uint32_t n_sections = load_le<std::uint32_t>(&out[108]);
  std::byte *tens = nullptr, *segs = nullptr;
  for (std::uint32_t i = 0; i < n_sections; ++i) {
    std::byte* entry = &out[directory + i * kSectionEntrySize];
    if (load_le<std::uint32_t>(entry) == kTagTensors) tens = entry;
    if (load_le<std::uint32_t>(entry) == kTagSegments) segs = entry;
  }
  const std::uint64_t segs_at = load_le<std::uint64_t>(segs + 8), tens_at = load_le<std::uint64_t>(tens + 8);
  const std::uint32_t n_segments = load_le<std::uint32_t>(segs + 16) / kSegmentEntrySize;
  const std::uint32_t n_tensors = load_le<std::uint32_t>(tens + 16) / kTensorEntrySize;
  std::vector<std::byte> table;
  std::vector<std::uint32_t> moved(n_tensors);
  for (std::uint32_t i = 0; i < n_segments; ++i) {
    const std::byte* entry = &file[segs_at + i * kSegmentEntrySize];
    const std::uint32_t section = load_le<std::uint32_t>(entry + 24);
    std::uint32_t cut = 0;  // bytes of the first part: up to the second vector's header
    for (std::uint32_t t = 0; t < n_tensors; ++t) {
      const std::byte* tensor = &file[tens_at + t * kTensorEntrySize];
      const std::uint32_t first = load_le<std::uint32_t>(tensor + 24);
      const bool second = std::to_integer<int>(tensor[4]) == static_cast<int>(Role::ffn_norm);
      if (first == i && second) cut = static_cast<std::uint32_t>(load_le<std::uint64_t>(tensor + 16)) - 16;
    }
    const std::uint32_t behind = static_cast<std::uint32_t>(table.size()) / kSegmentEntrySize;
    for (std::uint32_t t = 0; t < n_tensors; ++t) {
      const std::byte* tensor = &file[tens_at + t * kTensorEntrySize];
      if (load_le<std::uint32_t>(tensor + 24) != i) continue;
      const bool second = std::to_integer<int>(tensor[4]) == static_cast<int>(Role::ffn_norm);
      moved[t] = behind + (cut != 0 && second ? 1 : 0);
    }
    const std::size_t at = table.size();
    table.insert(table.end(), entry, entry + kSegmentEntrySize);
    if (cut == 0 || section == 0) continue;
    table.insert(table.end(), entry, entry + kSegmentEntrySize);
    std::byte *first = &table[at], *second = &table[at + kSegmentEntrySize];
    for (const std::uint32_t size_field : {8u, 12u}) {
      store_le(second + size_field, load_le<std::uint32_t>(first + size_field) - cut);
      store_le(first + size_field, cut);
    }
    store_le(second, load_le<std::uint64_t>(first) + cut);
    store_le(second + 16, load_le<std::uint32_t>(first + 16) + cut);
  }
  for (std::uint32_t t = 0; t < n_tensors; ++t) store_le(&out[tens_at + t * kTensorEntrySize + 24], moved[t]);
  store_le(segs + 8, std::uint64_t{out.size()});
  store_le(segs + 16, static_cast<std::uint32_t>(table.size()));
  out.insert(out.end(), table.begin(), table.end());
  store_le(&out[92], static_cast<std::uint32_t>(out.size()));
  repair(out, Inside::weights);
  return out;
}

TEST(Session, WaitsForVectorsWhereverTheyLie) {
  const SmallFile file = small_file();
  const std::vector<std::byte> split = with_split_vectors(file.bytes);
  const auto ids = some_tokens(9, 40);
  const Generation expected = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 4));
  Host host(split, 8 * kMiB, {});
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  ASSERT_EQ(host.session->segments().size(), Host(file.bytes, 8 * kMiB, {}).session->segments().size() + 2);
  for (const SegmentEntry& segment : host.session->segments()) {
    Host waiting(split, 8 * kMiB, {}, [&](const ReadRequest& r) { return r.offset == segment.offset; });
    EXPECT_EQ(waiting.generate(greedy(ids, 4)).hash, expected.hash);
  }
}

TEST(Session, AnyBudgetIsOpenedOrRefusedWithANumber) {
  const SmallFile file = small_file();
  int refused = 0, opened = 0;
  for (std::uint64_t budget = kHostReserve; budget < kHostReserve + 128 * 1024; budget += 731) {
    const Host host(file.bytes, budget, {});
    opened += host.error.code == ErrorCode::none;
    if (host.error.code == ErrorCode::none) continue;
    ASSERT_EQ(host.error.code, ErrorCode::budget_too_small) << host.error.sentence;
    if (host.session == nullptr) continue;  // not even the session's own state fits
    double needed = 0;
    ASSERT_EQ(std::sscanf(host.error.sentence, "this model needs at least %lf MiB", &needed), 1) << host.error.sentence;
    EXPECT_GT(needed * kMiB, static_cast<double>(budget));
    ++refused;
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(opened, 10);
}

TEST(Session, TheMemoryMapAddsUpToTheBudget) {
  const SmallFile file = small_file();
  for (const std::uint64_t budget : {2 * kMiB, 8 * kMiB, 8 * kMiB + 12345}) {
    Host host(file.bytes, budget, {});
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    std::uint64_t total = 0;
    for (const MemoryRegion& region : host.session->memory_map()) total += region.bytes;
    EXPECT_EQ(total, budget);
  }
}

TEST(Session, ArgumentsAreChecked) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const std::vector<std::uint32_t> none, outside{3, 40}, many(65, 1), fine{1, 2};
  EXPECT_EQ(error_of(host.session->start(greedy(outside, 1))).code, ErrorCode::bad_token);
  EXPECT_EQ(error_of(host.session->start(greedy(many, 1))).code, ErrorCode::context_full);
  EXPECT_EQ(error_of(host.session->start(greedy(none, 1))).code, ErrorCode::bad_text);  // no tokenizer in the file
  EXPECT_EQ(error_of(host.session->start(all_logits(fine, 1))).code, ErrorCode::bad_argument);
  Prompt prompt = greedy(fine, 1);
  prompt.sampler.top_p = 1.5f;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::bad_argument);
  EXPECT_EQ(host.generate(greedy(fine, 1)).tokens.size(), 1u);
  EXPECT_EQ(error_of(host.session->complete(12345)).code, ErrorCode::bad_argument);

  OpenOptions options;
  options.isa = "mmx";
  EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).error.code, ErrorCode::bad_argument);
}

TEST(Session, EndsAtAnyEndToken) {
  const std::vector<std::uint32_t> ids{3, 9, 4};
  const SmallFile plain = small_file();
  Host host(plain.bytes, 8 * kMiB, {});
  const Generation whole = host.generate(greedy(ids, 8));
  ASSERT_EQ(whole.tokens.size(), 8u);
  SmallOptions o;
  o.end_tokens = "39, " + std::to_string(whole.tokens[2]);
  const SmallFile file = small_file(o);
  Host ending(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(ending.error.code, ErrorCode::none) << ending.error.sentence;
  Prompt prompt = greedy(ids, 8);
  prompt.ignore_eos = false;
  const auto first = std::find(whole.tokens.begin(), whole.tokens.end(), whole.tokens[2]);
  EXPECT_EQ(ending.generate(prompt).tokens, std::vector<std::uint32_t>(whole.tokens.begin(), first));
  EXPECT_TRUE(ending.session->end() == End::eos);
  for (const char* wrong : {"40", "x", "1,2", "-1", "99999999999"}) {
    o.end_tokens = wrong;
    EXPECT_EQ(Host(small_file(o).bytes, 8 * kMiB, {}).error.code, ErrorCode::bad_section) << wrong;
  }
}

TEST(Session, EndsWhereTheContextEnds) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const Generation run = host.generate(greedy(some_tokens(60, 40), 100));
  EXPECT_EQ(run.error.code, ErrorCode::none);
  EXPECT_EQ(run.tokens.size(), 4u);  // the last of 64 positions is fed, its successor has no room
}

}  // namespace
}  // namespace qsf::test
