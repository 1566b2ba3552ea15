// Tables that are wrong in a way no single field shows: several entries changed so that they agree with each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "qsf/base/bytes.h"
#include "tests/file/open_file.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

class Tables : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallOptions options;
    options.format = FormatId::q8;
    options.dim = 64;
    options.vocab_size = 96;
    options.tied = false;
    options.biases = true;
    options.segment_bytes = 16 * 66;  // one strip each
    const Result<OpenFile> opened = open_file(small_file(options).bytes);
    ASSERT_TRUE(opened) << opened.error().sentence;
    f_ = *opened;
    ASSERT_TRUE(check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments));
  }

  void expect(ErrorCode code, const char* part_of_sentence) {
    const Status status = check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments);
    ASSERT_FALSE(status);
    EXPECT_EQ(error_name(error_of(status).code), error_name(code)) << status.error().sentence;
    EXPECT_NE(std::string(error_of(status).sentence).find(part_of_sentence), std::string::npos)
        << status.error().sentence;
  }

  TensorEntry& tensor(std::uint32_t stage, Role role) {
    return *std::ranges::find_if(f_.tensors, [&](auto& t) { return t.stage == stage && t.role == role; });
  }

  OpenFile f_;
};

TEST_F(Tables, ACutWithinAStrip) {
  const TensorEntry& t = tensor(1, Role::attn_q);
  ASSERT_GE(t.n_segments, 2u);
  SegmentEntry& a = f_.segments[t.first_segment];
  SegmentEntry& b = f_.segments[t.first_segment + 1];
  const std::uint32_t half = b.raw_size / 2;
  a.raw_size += half, a.stored_size += half;
  b.raw_begin += half, b.offset += half, b.raw_size -= half, b.stored_size -= half;
  expect(ErrorCode::bad_segment, "a boundary of strips of attn_q");
}

TEST_F(Tables, ASegmentOfTwoExperts) {
  SmallOptions options;
  options.format = FormatId::q8;
  options.dim = 64;
  options.segment_bytes = 2 * 16 * 66;  // two strips
  options.shape = [](std::uint32_t, LayerKind& kind) {
    kind.ffn = Ffn::mixture;
    kind.n_experts = 3;
    kind.experts_used = 2;
    kind.expert_dim = 48;  // one strip, then two
  };
  const Result<OpenFile> opened = open_file(small_file(options).bytes);
  ASSERT_TRUE(opened) << opened.error().sentence;
  f_ = *opened;
  const TensorEntry& t = tensor(1, Role::expert_up);
  ASSERT_EQ(t.n_segments, 6u);
  SegmentEntry& a = f_.segments[t.first_segment + 1];
  SegmentEntry& b = f_.segments[t.first_segment + 2];
  const std::uint32_t strip = b.raw_size;
  ASSERT_EQ(a.raw_size, 2 * strip);
  a.raw_size -= strip, a.stored_size -= strip;
  b.raw_begin -= strip, b.offset -= strip, b.raw_size += strip, b.stored_size += strip;
  expect(ErrorCode::bad_segment, "holds rows of expert_up of several experts");
}

TEST_F(Tables, AFirstSegmentOfTheHeaderAlone) {
  const TensorEntry& t = tensor(1, Role::attn_q);
  SegmentEntry& a = f_.segments[t.first_segment];
  SegmentEntry& b = f_.segments[t.first_segment + 1];
  const std::uint32_t moved = a.raw_size - kTensorHeaderSize;
  a.raw_size -= moved, a.stored_size -= moved;
  b.raw_begin -= moved, b.offset -= moved, b.raw_size += moved, b.stored_size += moved;
  expect(ErrorCode::bad_segment, "a boundary of strips of attn_q");
}

TEST_F(Tables, ASegmentOfTwoMatrices) {
  TensorEntry& q = tensor(1, Role::attn_q);
  const std::size_t last = q.first_segment + q.n_segments - 1;
  f_.segments[last].raw_size += f_.segments[last + 1].raw_size;
  f_.segments[last].stored_size += f_.segments[last + 1].stored_size;
  f_.segments.erase(f_.segments.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  expect(ErrorCode::bad_tensor, "attn_q ends at");
}

TEST_F(Tables, AMissingTensor) {
  std::erase_if(f_.tensors, [](const TensorEntry& t) { return t.stage == 2 && t.role == Role::ffn_norm; });
  expect(ErrorCode::bad_tensor, "");
}

TEST_F(Tables, AnOptionalTensorMayBeMissingOnlyWithItsBytes) {
  std::erase_if(f_.tensors, [](const TensorEntry& t) { return t.stage == 2 && t.role == Role::attn_v_bias; });
  expect(ErrorCode::bad_tensor, "");
}

TEST_F(Tables, ATensorTwice) {
  TensorEntry& v = tensor(1, Role::attn_v);
  v.role = Role::attn_k;  // the same shape
  expect(ErrorCode::bad_tensor, "attn_k twice");
}

TEST_F(Tables, MatricesMayComeInAnyOrder) {
  std::swap(tensor(1, Role::attn_k).role, tensor(1, Role::attn_v).role);
  EXPECT_TRUE(check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments));
}

TEST_F(Tables, ATensorOfAnotherShape) {
  TensorEntry& t = tensor(1, Role::attn_q);
  const std::uint32_t rows = std::exchange(t.rows, t.rows + 1);
  expect(ErrorCode::bad_tensor, "the model's sizes make it");
  t.rows = rows;
  t.cols = 0;
  expect(ErrorCode::bad_tensor, " x 0, ");
  t.rows = t.cols = ~0u;
  expect(ErrorCode::bad_tensor, "attn_q is 4294967295 x 4294967295");
}

TEST_F(Tables, ATensorThatItsKindHasNot) {
  tensor(1, Role::attn_v_bias).role = Role::attn_norm_bias;  // only beside LayerNorm
  expect(ErrorCode::bad_tensor, "attn_norm_bias");
}

TEST_F(Tables, SectionsOutOfOrder) {
  std::ranges::rotate(f_.tensors, f_.tensors.begin() + 1);
  expect(ErrorCode::bad_tensor, "stage 0");
  std::ranges::rotate(f_.tensors, f_.tensors.end() - 1);
  std::ranges::rotate(f_.segments, f_.segments.end() - 1);
  expect(ErrorCode::bad_segment, "stage 0");
}

TEST_F(Tables, AGapBetweenSegments) {
  for (std::size_t i = 3; i < f_.segments.size(); ++i) ++f_.segments[i].offset;
  expect(ErrorCode::bad_segment, "the next byte of stage");
}

TEST_F(Tables, SegmentsOfAnAlignedFileThatAreTooFarApart) {
  f_.header.flags |= kFlagAligned;  // what has no gaps is right too
  ASSERT_TRUE(check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments));
  const auto move = [&](std::size_t from, std::uint64_t by) {
    for (std::size_t i = from; i < f_.segments.size(); ++i) {
      f_.segments[i].offset += by;
      const bool first = f_.segments[i].stage != f_.segments[i - 1].stage;
      if (!first || f_.segments[i].stage == 0) continue;
      (f_.segments[i].stage <= f_.header.n_layers ? f_.layers[f_.segments[i].stage - 1].offset
                                                  : f_.header.final_offset) += by;
    }
  };
  move(2, 63);
  EXPECT_TRUE(check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments));
  move(2, 1);
  expect(ErrorCode::bad_segment, "the next byte of stage");
  move(2, ~std::uint64_t{0} - 63);  // back by 64
  f_.segments[2].offset -= 1;
  expect(ErrorCode::bad_segment, "the next byte of stage");
  f_.segments[2].offset += 1;
  ASSERT_TRUE(check_tables(f_.header, f_.table.view(), f_.layers, f_.tensors, f_.segments));
  const std::size_t of_layer = tensor(1, Role::attn_norm).first_segment;
  f_.segments[of_layer].offset += 1;  // the index says where a stage begins
  expect(ErrorCode::bad_segment, "the next byte of stage");
}

TEST_F(Tables, SectionsThatLieOverEachOther) {
  const std::uint64_t shift = 64;
  for (SegmentEntry& s : f_.segments) {
    if (s.stage >= 2) s.offset -= shift;
  }
  for (std::size_t i = 1; i < f_.layers.size(); ++i) f_.layers[i].offset -= shift;
  f_.header.final_offset -= shift;
  expect(ErrorCode::bad_segment, "the one before ends at");
}

TEST_F(Tables, AnEmbeddingThatBeginsCompressed) {
  f_.segments[0].compression = Compression::lz4;
  expect(ErrorCode::bad_segment, "the embedding's first");
}

TEST_F(Tables, ALayerOfTwoCompressions) {
  const TensorEntry& t = tensor(1, Role::attn_q);
  f_.segments[t.first_segment].compression = Compression::lz4;
  f_.segments[t.first_segment + 1].compression = Compression::zstd;
  expect(ErrorCode::bad_segment, "others of its layer");
}

TEST_F(Tables, VectorsInASegmentOfAMatrix) {
  f_.segments[tensor(1, Role::attn_norm).first_segment].flags = 0;
  expect(ErrorCode::bad_segment, "holds attn_norm");
}

TEST_F(Tables, AMatrixInASegmentOfVectors) {
  f_.segments[tensor(1, Role::attn_q).first_segment + 1].flags = kSegmentVectors;
  expect(ErrorCode::bad_segment, "holds attn_q");
}

TEST_F(Tables, SegmentsBehindTheLast) {
  f_.segments.push_back(f_.segments.back());
  f_.segments.back().stage = 0;
  expect(ErrorCode::bad_segment, "comes after segments of later stages");
}

TEST_F(Tables, ASegmentOfNoTensor) {
  SegmentEntry s = f_.segments.back();
  s.offset += s.stored_size;
  s.raw_begin += s.raw_size;
  f_.segments.push_back(s);
  expect(ErrorCode::bad_tensor, "its tensors end at");
}

TEST_F(Tables, AHeadAlthoughTied) {
  f_.header.flags |= kFlagTied;
  expect(ErrorCode::bad_tensor, "has head, the header's flags say that it is tied");
}

TEST_F(Tables, TensorsBehindTheLast) {
  f_.tensors.push_back(f_.tensors[0]);
  expect(ErrorCode::bad_tensor, "comes after tensors of later stages");
}

TEST_F(Tables, VectorsBehindAMatrix) {
  const TensorEntry q = tensor(1, Role::attn_q);
  const auto vectors = std::ranges::find(f_.segments, 1u, &SegmentEntry::stage);
  const auto first = static_cast<std::uint32_t>(vectors - f_.segments.begin());
  ASSERT_EQ(q.first_segment, first + 1);
  const std::uint32_t vectors_size = vectors->raw_size;
  std::rotate(vectors, vectors + 1, vectors + 1 + q.n_segments);
  std::uint32_t raw = 0;
  for (auto s = vectors; s != vectors + 1 + q.n_segments; ++s) {
    s->raw_begin = raw;
    s->offset = f_.layers[0].offset + raw;
    raw += s->raw_size;
  }
  const auto begin = std::ranges::find(f_.tensors, 1u, &TensorEntry::stage);
  const auto matrix = std::ranges::find(begin, f_.tensors.end(), Role::attn_q, &TensorEntry::role);
  for (auto t = begin; t != matrix; ++t) {
    t->first_segment += q.n_segments;
    t->raw_offset += raw - vectors_size;
  }
  matrix->first_segment = first;
  matrix->raw_offset = kTensorHeaderSize;
  std::rotate(begin, matrix, matrix + 1);
  expect(ErrorCode::bad_tensor, "attn_norm comes after a matrix");
}

TEST_F(Tables, ASectionOf4GiB) {
  SegmentEntry s = f_.segments[0];
  s.raw_size = s.stored_size = kMaxSegmentRaw;
  std::vector<SegmentEntry> segments{s};
  for (int i = 1; i < 256; ++i) {
    s.offset += s.stored_size;
    s.raw_begin += s.raw_size;
    s.stored_size = 1;
    s.compression = Compression::lz4;
    segments.push_back(s);
  }
  std::erase_if(f_.segments, [](const SegmentEntry& e) { return e.stage == 0; });
  f_.segments.insert(f_.segments.begin(), segments.begin(), segments.end());
  expect(ErrorCode::bad_segment, "more than 2^32 - 1");
}

TEST_F(Tables, CountsThatWrapAround) {
  TensorEntry& t = tensor(1, Role::attn_q);
  t.n_segments = 0xffffffffu;
  expect(ErrorCode::bad_tensor, "segments from");
  t.first_segment = 0xffffffffu;
  expect(ErrorCode::bad_tensor, "segments from");
  t.raw_offset = ~std::uint64_t{0} - 15;
  expect(ErrorCode::bad_tensor, "raw_offset");
}

TEST_F(Tables, NoTablesAtAll) {
  f_.segments.clear();
  expect(ErrorCode::bad_segment, "stage 0 has no segments");
  f_.layers.clear();
  expect(ErrorCode::bad_argument, "0 layer index entries");
}

/// Section directory entries as bytes, for read_directory.
class Directory : public ::testing::Test {
 protected:
  Status read(std::vector<SectionEntry> entries, std::uint64_t file_size = 1000) {
    std::vector<std::byte> bytes;
    for (const SectionEntry& e : entries) {
      bytes.resize(bytes.size() + kSectionEntrySize);
      std::byte* at = bytes.data() + bytes.size() - kSectionEntrySize;
      store_le(at, e.tag);
      store_le(at + 4, e.flags);
      store_le(at + 8, e.offset);
      store_le(at + 16, e.size);
      store_le(at + 20, e.crc);
    }
    Header header;
    header.n_sections = static_cast<std::uint32_t>(entries.size());
    header.directory_crc = crc32(bytes);
    std::vector<SectionEntry> out(entries.size());
    return read_directory(header, bytes, file_size, out);
  }
  const std::vector<SectionEntry> good_{
      {kTagTensors, 1, 200, 32, 0}, {kTagSegments, 1, 232, 32, 0}, {kTagMeta, 1, 264, 4, 0}};

  void expect(ErrorCode code, const SectionEntry& extra) {
    std::vector<SectionEntry> entries = good_;
    entries.push_back(extra);
    const Status status = read(entries);
    EXPECT_EQ(error_name(error_of(status).code), error_name(code)) << status.error().sentence;
  }
};

TEST_F(Directory, TagsThatAreNotKnown) {
  ASSERT_TRUE(read(good_));
  expect(ErrorCode::none, {tag("LATE"), 0, 300, 100, 0});
  expect(ErrorCode::none, {tag("LATE"), 0, 1000, 0, 0});
  expect(ErrorCode::unsupported, {tag("LATE"), kSectionNeeded, 300, 100, 0});
  expect(ErrorCode::unsupported, {tag("LATE"), 2, 300, 100, 0});
}

TEST_F(Directory, PlacesThatCannotBe) {
  expect(ErrorCode::bad_section, {kTagMeta, 0, 300, 100, 0});       // twice
  expect(ErrorCode::bad_section, {kTagTokenizer, 0, 300, 701, 0});  // past the end
  expect(ErrorCode::bad_section, {kTagTokenizer, 0, 127, 1, 0});    // over the header
  expect(ErrorCode::bad_section, {kTagTokenizer, 0, 267, 10, 0});   // over META
  expect(ErrorCode::bad_section, {kTagTokenizer, 0, ~std::uint64_t{0}, 0xffffffffu, 0});
  expect(ErrorCode::none, {kTagTokenizer, 0, 268, 732, 0});
}

TEST_F(Directory, NeededSectionsMissing) {
  for (std::size_t i = 0; i < good_.size(); ++i) {
    std::vector<SectionEntry> entries = good_;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    const Status status = read(entries);
    EXPECT_EQ(error_of(status).code, ErrorCode::bad_section);
  }
}

}  // namespace
}  // namespace qsf::test
