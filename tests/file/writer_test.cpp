#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/file/open_file.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

/// Writes a source that must be refused before a byte is written.
void expect_refused(const FileSpec& source, ErrorCode code, const char* part_of_sentence) {
  std::size_t writes = 0;
  const FileSink sink{[&](std::uint64_t, std::span<const std::byte>) -> Status {
    ++writes;
    return {};
  }};
  const Result<std::uint64_t> result = write_file(source, sink, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(error_name(error_of(result).code), error_name(code)) << result.error().sentence;
  EXPECT_NE(std::string(error_of(result).sentence).find(part_of_sentence), std::string::npos)
      << result.error().sentence;
  EXPECT_EQ(writes, 0u);
}

TEST(Writer, RefusesWhatCannotBeRead) {
  SmallFile file;
  const FileSpec good = small_source({}, file);
  const auto refused = [&](auto change, ErrorCode code, const char* part) {
    FileSpec source = good;
    change(source);
    expect_refused(source, code, part);
  };
  refused([](FileSpec& s) { s.tensors.pop_back(); }, ErrorCode::bad_tensor, "section 0 has no tensors");
  refused([](FileSpec& s) { s.tensors.erase(s.tensors.begin() + 1); }, ErrorCode::bad_tensor, "lacks");
  refused([](FileSpec& s) { s.tensors.push_back(s.tensors[3]); }, ErrorCode::bad_tensor, "twice");
  refused([](FileSpec& s) { ++s.tensors[3].rows; }, ErrorCode::bad_tensor, "the model's sizes make it");
  refused([](FileSpec& s) { s.tensors[3].format = FormatId::mixed; }, ErrorCode::unsupported, "type 5");
  refused([](FileSpec& s) { s.tensors[3].layout = Layout::tiles; }, ErrorCode::bad_tensor, "layout 1");
  refused([](FileSpec& s) { s.header.n_layers = 0; }, ErrorCode::bad_header, "n_layers is 0");
  refused([](FileSpec& s) { s.header.n_layers = kMaxLayers + 1; }, ErrorCode::bad_argument, "n_layers");
  refused([](FileSpec& s) { s.header.eos = s.header.vocab_size; }, ErrorCode::bad_header, "eos is 40");
  refused([](FileSpec& s) { s.meta.push_back(s.meta[0]); }, ErrorCode::bad_section, "ascending");
  refused([](FileSpec& s) { s.meta[1].text.assign(kMaxMetaText + 1, 'x'); }, ErrorCode::bad_argument, "longer");
  refused([](FileSpec& s) { s.rope_divisors = {1}; }, ErrorCode::bad_section, "ROPE has 4 bytes");
  refused([](FileSpec& s) { s.rope_divisors = {1, 1, 1, 0}; }, ErrorCode::bad_section, "divisor 3");
  if (!can_decompress(Compression::zstd)) {
    refused([](FileSpec& s) { s.compression = Compression::zstd; }, ErrorCode::unsupported, "3");
  }
  refused([](FileSpec& s) { s.compression = static_cast<Compression>(4); }, ErrorCode::unsupported, "4");
  refused([](FileSpec& s) { s.segment_bytes = kMaxSegmentRaw + 1; }, ErrorCode::bad_argument, "segment size");
  refused(
      [](FileSpec& s) {
        s.header.vocab_size = kMaxVocab;
        s.header.dim = kMaxDim;
        s.tensors.back().rows = kMaxVocab;
        s.tensors.back().cols = kMaxDim;
      },
      ErrorCode::unsupported, "2^32 - 1 raw bytes");
}

TEST(Writer, PassesErrorsOn) {
  SmallFile file;
  FileSpec source = small_source({}, file);
  const FileSink full{[](std::uint64_t, std::span<const std::byte>) -> Status {
    return make_error(ErrorCode::io_error, "the disk is full");
  }};
  Result<std::uint64_t> result = write_file(source, full, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(error_of(result).code, ErrorCode::io_error);

  source.tensors[5].rows_of = [](std::uint32_t, std::uint32_t, std::span<std::byte>) -> Status {
    return make_error(ErrorCode::bad_input, "the shard is short");
  };
  std::vector<std::byte> out;
  result = write_file(source, memory_sink(out), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(error_of(result).code, ErrorCode::bad_input);
  EXPECT_FALSE(open_file(out));  // no header yet, so no file that looks whole
}

TEST(Writer, TablesComeFirstAndLayersBeginAligned) {
  SmallOptions options;
  options.tokenizer.assign(1000, std::byte{1});
  const SmallFile file = small_file(options);
  const Result<OpenFile> f = open_file(file.bytes);
  ASSERT_TRUE(f) << f.error().sentence;
  std::uint64_t tables_end = f->header.layer_index_offset + f->layers.size() * kLayerEntrySize;
  for (const SectionEntry& s : f->sections) tables_end = std::max(tables_end, s.offset + s.size);
  EXPECT_LE(tables_end, f->segments[0].offset);
  EXPECT_LT(f->segments[0].offset - tables_end, 64u);
  EXPECT_EQ(f->header.embedding_offset % 64u, 0u);
  EXPECT_EQ(f->header.final_offset % 64u, 0u);
  for (const LayerEntry& layer : f->layers) EXPECT_EQ(layer.offset % 64u, 0u);
}

TEST(Writer, LeavesNoHoles) {
  SmallFile file;
  SmallOptions options;
  options.compression = Compression::lz4;
  options.repetitive = true;
  for (const bool aligned : {false, true}) {
    options.aligned = aligned;
    const FileSpec source = small_source(options, file);
    std::vector<int> times;
    const FileSink sink{[&](std::uint64_t offset, std::span<const std::byte> bytes) -> Status {
      times.resize(std::max<std::size_t>(times.size(), offset + bytes.size()));
      for (std::size_t i = 0; i < bytes.size(); ++i) ++times[offset + i];
      return {};
    }};
    const Result<std::uint64_t> size = write_file(source, sink, {});
    ASSERT_TRUE(size) << size.error().sentence;
    EXPECT_EQ(times.size(), *size);
    EXPECT_EQ(std::ranges::count(times, 0), 0);
  }
}

/// Where the weights of a segment of matrices begin in the file.
std::uint64_t weights_at(const OpenFile& f, std::size_t segment) {
  const bool begins = std::ranges::any_of(
      f.tensors, [&](const TensorEntry& t) { return t.first_segment == segment && rule_of(t.role).matrix; });
  return f.segments[segment].offset + (begins ? kTensorHeaderSize : 0);
}

TEST(Writer, AlignsWeightsAndNothingElseChanges) {
  for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4}) {
    for (const Compression compression : {Compression::none, Compression::lz4}) {
      for (const bool tied : {false, true}) {
        SmallOptions options;
        options.format = format;
        options.compression = compression;
        options.repetitive = true;
        options.tied = tied;
        options.vectors = FormatId::f16;
        const Result<OpenFile> plain = open_file(small_file(options).bytes);
        options.aligned = true;
        const std::vector<std::byte> bytes = small_file(options).bytes;
        const Result<OpenFile> aligned = open_file(bytes);
        ASSERT_TRUE(plain && aligned);
        EXPECT_EQ(aligned->header.flags, plain->header.flags | kFlagAligned);
        ASSERT_EQ(aligned->raw.size(), plain->raw.size());
        for (std::size_t i = 0; i < plain->raw.size(); ++i) {
          const SegmentEntry& s = aligned->segments[i];
          EXPECT_EQ(aligned->raw[i].size(), plain->raw[i].size());
          // The embedding's header says where the section ends, which depends on nothing but stored sizes.
          EXPECT_EQ(aligned->raw[i], plain->raw[i]);
          if ((s.flags & kSegmentVectors) == 0) {
            EXPECT_EQ(weights_at(*aligned, i) % 64, 0u) << i;
          }
          if (i == 0) continue;
          const SegmentEntry& before = aligned->segments[i - 1];
          const std::uint64_t end = before.offset + before.stored_size;
          ASSERT_LT(s.offset - end, 64u);
          for (std::uint64_t at = end; at < s.offset; ++at) EXPECT_EQ(bytes[at], std::byte{0});
        }
      }
    }
  }
}

TEST(Writer, AlignsLargeSegments) {
  SmallOptions options;
  options.vocab_size = 3000;
  for (const std::uint32_t target : {(256u << 10) - 1, 256u << 10}) {
    options.segment_bytes = target;
    const Result<OpenFile> f = open_file(small_file(options).bytes);
    ASSERT_TRUE(f) << f.error().sentence;
    EXPECT_EQ((f->header.flags & kFlagAligned) != 0, target == 256u << 10);
  }
}

TEST(Writer, ReportsProgressUpToTheTotal) {
  SmallFile file;
  const FileSpec source = small_source({}, file);
  std::uint64_t last = 0, all = 0;
  const Result<std::uint64_t> size =
      write_file(source, memory_sink(file.bytes), [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GT(done, last);
        last = done;
        all = total;
      });
  ASSERT_TRUE(size);
  EXPECT_EQ(last, all);
  EXPECT_GT(last, 0u);
}

TEST(Writer, SegmentsAreNearTheTarget) {
  SmallOptions options;
  options.vocab_size = 1000;
  options.segment_bytes = 10'000;
  const Result<OpenFile> f = open_file(small_file(options).bytes);
  ASSERT_TRUE(f);
  for (std::size_t i = 0; i < f->tensors[0].n_segments; ++i) {
    EXPECT_LE(f->segments[i].raw_size, 10'000u + kTensorHeaderSize);
    EXPECT_GE(f->segments[i].raw_size, 9'000u);  // evenly cut: no short piece at the end
  }
}

TEST(Writer, CompressesOnlyWhatShrinks) {
  SmallOptions options;
  options.compression = Compression::lz4;
  const Result<OpenFile> noise = open_file(small_file(options).bytes);
  ASSERT_TRUE(noise) << noise.error().sentence;
  for (const SegmentEntry& s : noise->segments) EXPECT_LE(s.stored_size, s.raw_size);
  options.repetitive = true;
  const Result<OpenFile> f = open_file(small_file(options).bytes);
  ASSERT_TRUE(f) << f.error().sentence;
  EXPECT_EQ(f->segments[0].compression, Compression::none);  // the embedding's header is read where it lies
  EXPECT_EQ(f->layers[0].compression, Compression::lz4);
  EXPECT_LT(f->layers[0].stored_size, f->layers[0].raw_size * 2 / 3);
  options.least_saved = 99;
  const Result<OpenFile> asked_too_much = open_file(small_file(options).bytes);
  ASSERT_TRUE(asked_too_much);
  for (const SegmentEntry& s : asked_too_much->segments) EXPECT_EQ(s.compression, Compression::none);
}

TEST(Writer, SaysWhichTypeTheMatricesShare) {
  SmallOptions options;
  options.format = FormatId::f16;
  SmallFile file;
  FileSpec source = small_source(options, file);
  Result<std::uint64_t> size = write_file(source, memory_sink(file.bytes), {});
  ASSERT_TRUE(size) << size.error().sentence;
  Result<OpenFile> f = open_file(file.bytes);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->header.quant, static_cast<std::uint8_t>(FormatId::f16));

  SmallFile other;
  options.format = FormatId::f32;
  FileSpec f32 = small_source(options, other);
  for (std::size_t i = 0; i < source.tensors.size(); ++i) {
    if (source.tensors[i].role == Role::ffn_down && source.tensors[i].stage == 2) source.tensors[i] = f32.tensors[i];
  }
  file.bytes.clear();
  size = write_file(source, memory_sink(file.bytes), {});
  ASSERT_TRUE(size) << size.error().sentence;
  f = open_file(file.bytes);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->header.quant, static_cast<std::uint8_t>(FormatId::mixed));
  EXPECT_EQ(f->layers[0].quant, static_cast<std::uint8_t>(FormatId::f16));
  EXPECT_EQ(f->layers[1].quant, static_cast<std::uint8_t>(FormatId::mixed));
}

TEST(Writer, TheSameSourceGivesTheSameBytes) { EXPECT_EQ(small_file().bytes, small_file().bytes); }

TEST(Writer, KeepsMetadataSorted) {
  const Result<OpenFile> f = open_file(small_file().bytes);
  ASSERT_TRUE(f);
  const std::vector<std::string> want{"attention.window=0", "general.architecture=llama",
                                      "norm.epsilon=0x1.4f8b58p-17"};
  EXPECT_EQ(f->meta, want);
}

}  // namespace
}  // namespace qsf::test
