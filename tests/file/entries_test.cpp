// What each check of a single table entry says.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/file/open_file.h"
#include "tests/file/repair.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

class Entries : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallOptions options;
    options.format = FormatId::q8;
    options.tied = false;
    file_ = small_file(options).bytes;
    const Result<OpenFile> opened = open_file(file_);
    ASSERT_TRUE(opened) << opened.error().sentence;
    open_ = *opened;
  }

  std::vector<std::byte> section(std::uint32_t tag) const {
    const SectionEntry* s = find_section(open_.sections, tag);
    return piece(file_, s->offset, s->size);
  }
  /// Position in the tensor table.
  std::uint32_t tensor(std::uint32_t stage, Role role) const {
    for (std::uint32_t i = 0; i < open_.tensors.size(); ++i) {
      if (open_.tensors[i].stage == stage && open_.tensors[i].role == role) return i;
    }
    ADD_FAILURE();
    return 0;
  }

  static void expect(const Status& status, ErrorCode code, const char* part_of_sentence) {
    EXPECT_EQ(error_name(error_of(status).code), error_name(code)) << status.error().sentence;
    EXPECT_NE(std::string(error_of(status).sentence).find(part_of_sentence), std::string::npos)
        << status.error().sentence;
  }
  template <class T>
  void expect_layer(std::uint32_t at, T value, ErrorCode code, const char* part) {
    const std::uint64_t place = open_.header.layer_index_offset;
    std::vector<std::byte> bytes = piece(file_, place, open_.layers.size() * kLayerEntrySize);
    store_le(bytes.data() + kLayerEntrySize + at, value);
    Header header = open_.header;
    header.layer_index_crc = crc32(bytes);
    std::vector<LayerEntry> out(open_.layers.size());
    expect(read_layer_index(header, bytes, file_.size(), out), code, part);
  }
  template <class T>
  void expect_tensor(std::uint32_t i, std::uint32_t at, T value, ErrorCode code, const char* part) {
    std::vector<std::byte> bytes = section(kTagTensors);
    store_le(bytes.data() + i * kTensorEntrySize + at, value);
    std::vector<TensorEntry> out(open_.tensors.size());
    expect(read_tensors(open_.header, bytes, out), code, part);
  }
  template <class T>
  void expect_segment(std::uint32_t at, T value, ErrorCode code, const char* part) {
    std::vector<std::byte> bytes = section(kTagSegments);
    store_le(bytes.data() + kSegmentEntrySize + at, value);
    std::vector<SegmentEntry> out(open_.segments.size());
    expect(read_segments(open_.header, bytes, file_.size(), out), code, part);
  }

  std::vector<std::byte> file_;
  OpenFile open_;
};

TEST_F(Entries, Layers) {
  using U8 = std::uint8_t;
  expect_layer(0, std::uint64_t{127}, ErrorCode::bad_index, "layer 1 at 127");
  expect_layer(0, std::uint64_t{file_.size()}, ErrorCode::bad_index, "layer 1 at");
  expect_layer(0, ~std::uint64_t{0}, ErrorCode::bad_index, "layer 1 at");
  expect_layer(8, 0xffffffffu, ErrorCode::bad_index, "4294967295 bytes long");
  expect_layer(16, U8{63}, ErrorCode::unsupported, "quantization type 63");
  expect_layer(17, U8{4}, ErrorCode::unsupported, "compression type 4");
  expect_layer(24, std::nanf(""), ErrorCode::bad_index, "importance");
  expect_layer(24, std::numeric_limits<float>::infinity(), ErrorCode::bad_index, "importance");
  expect_layer(24, 0.5f, ErrorCode::none, "");
  expect_layer(28, 1u, ErrorCode::unsupported, "reserved bytes 28-31 hold 0x1");
}

TEST_F(Entries, Tensors) {
  using U8 = std::uint8_t;
  const std::uint32_t q = tensor(1, Role::attn_q), norm = tensor(1, Role::attn_norm),
                      last = tensor(3, Role::final_norm);
  expect_tensor(q, 0, 4u, ErrorCode::bad_tensor, "stage is 4, the last is 3");
  expect_tensor(q, 0, 3u, ErrorCode::bad_tensor, "attn_q cannot be in section 3");
  expect_tensor(q, 4, U8{19}, ErrorCode::unsupported, "role 19");
  expect_tensor(q, 5, U8{5}, ErrorCode::unsupported, "quantization type 5 of attn_q");
  expect_tensor(q, 5, U8{16}, ErrorCode::bad_tensor, "cannot have layout 1");
  expect_tensor(q, 6, U8{0}, ErrorCode::none, "");
  expect_tensor(q, 6, U8{2}, ErrorCode::bad_tensor, "cannot have layout 2");
  expect_tensor(q, 7, U8{1}, ErrorCode::unsupported, "reserved byte 7");
  expect_tensor(q, 28, 0u, ErrorCode::bad_tensor, "attn_q has no segments");
  expect_tensor(norm, 5, U8{17}, ErrorCode::none, "");
  expect_tensor(norm, 5, U8{18}, ErrorCode::bad_tensor, "attn_norm has type 18");
  expect_tensor(norm, 5, U8{19}, ErrorCode::bad_tensor, "attn_norm has type 19");
  expect_tensor(last, 5, U8{17}, ErrorCode::bad_tensor, "the header's flags say 16");
}

TEST_F(Entries, Segments) {
  using U8 = std::uint8_t;
  using U16 = std::uint16_t;
  const SegmentEntry& s = open_.segments[1];
  expect_segment(0, std::uint64_t{127}, ErrorCode::bad_segment, "segment 1 at 127");
  expect_segment(0, ~std::uint64_t{0}, ErrorCode::bad_segment, "segment 1 at");
  expect_segment(0, file_.size() - s.stored_size, ErrorCode::none, "");
  expect_segment(0, file_.size() - s.stored_size + 1, ErrorCode::bad_segment, "segment 1 at");
  expect_segment(8, s.raw_size - 1, ErrorCode::bad_segment, "stored_size");
  expect_segment(12, 0u, ErrorCode::bad_segment, "raw_size is 0");
  expect_segment(12, kMaxSegmentRaw + 1, ErrorCode::bad_segment, "raw_size is 16777217");
  expect_segment(24, 4u, ErrorCode::bad_segment, "stage is 4, the last is 3");
  expect_segment(28, U8{1}, ErrorCode::bad_segment, "compression 1");  // and yet not smaller
  expect_segment(28, U8{4}, ErrorCode::unsupported, "compression type 4");
  expect_segment(29, U8{2}, ErrorCode::unsupported, "flags are 0x2");
  expect_segment(30, U16{1}, ErrorCode::unsupported, "reserved bytes 30-31");
}

TEST_F(Entries, TablesOfTheWrongSize) {
  std::vector<std::byte> bytes = section(kTagTensors);
  std::vector<TensorEntry> tensors(open_.tensors.size());
  bytes.pop_back();
  expect(read_tensors(open_.header, bytes, tensors), ErrorCode::bad_section, "not a multiple of 32");
  expect(read_tensors(open_.header, {}, {}), ErrorCode::bad_section, "0 bytes");
  expect(read_tensors(open_.header, section(kTagTensors), std::span(tensors).first(1)), ErrorCode::bad_argument,
         "room for 1");
  const auto index = piece(file_, open_.header.layer_index_offset, open_.layers.size() * kLayerEntrySize);
  std::vector<LayerEntry> layers(open_.layers.size());
  expect(read_layer_index(open_.header, std::span(index).first(63), file_.size(), layers), ErrorCode::truncated,
         "63 bytes given");
  expect(read_layer_index(open_.header, index, file_.size(), std::span(layers).first(1)), ErrorCode::bad_argument,
         "room for 1");
  const auto directory = piece(file_, open_.header.directory_offset, open_.sections.size() * kSectionEntrySize);
  std::vector<SectionEntry> sections(open_.sections.size());
  expect(read_directory(open_.header, directory, file_.size(), std::span(sections).first(1)), ErrorCode::bad_argument,
         "room for 1");
  const SectionEntry& meta = *find_section(open_.sections, kTagMeta);
  const auto content = section(kTagMeta);
  expect(check_section(meta, std::span(content).first(4)), ErrorCode::truncated, "META: 4 bytes given");
  EXPECT_EQ(find_section(open_.sections, kTagTokenizer), nullptr);
}

TEST_F(Entries, RopeDivisors) {
  const float good[] = {1, 2, 3, 4};
  std::vector<float> out(4);
  expect(read_rope(open_.header, std::as_bytes(std::span(good)), out), ErrorCode::none, "");
  EXPECT_EQ(out, std::vector<float>(good, good + 4));
  expect(read_rope(open_.header, std::as_bytes(std::span(good)).first(12), out), ErrorCode::bad_section, "12 bytes");
  for (const float bad : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const float divisors[] = {1, 2, bad, 4};
    expect(read_rope(open_.header, std::as_bytes(std::span(divisors)), out), ErrorCode::bad_section, "divisor 2");
  }
}

TEST_F(Entries, TensorHeadersBetweenTheWeights) {
  const std::uint32_t q = tensor(1, Role::attn_q);
  const std::uint32_t segment = open_.tensors[q].first_segment;
  const auto expect_header = [&](std::uint32_t at, auto value, ErrorCode code, const char* part) {
    std::vector<std::byte> raw = open_.raw[segment];
    store_le(raw.data() + at, value);
    expect(check_inline_headers(open_.header, open_.tensors, open_.segments, segment, raw), code, part);
  };
  expect_header(0, 1u, ErrorCode::bad_tensor, "type is 1");
  expect_header(4, 31u, ErrorCode::bad_tensor, "rows is 31");
  expect_header(8, 31u, ErrorCode::bad_tensor, "cols is 31");
  expect_header(12, std::uint8_t{16}, ErrorCode::bad_tensor, "quantization type is 16");
  expect_header(12, std::uint8_t{0xff}, ErrorCode::none, "");
  expect_header(13, std::uint8_t{0}, ErrorCode::bad_tensor, "layout is 0");
  expect_header(14, std::uint16_t{1}, ErrorCode::bad_tensor, "reserved is 1");
  open_.header.quant = static_cast<std::uint8_t>(FormatId::mixed);
  expect_header(12, std::uint8_t{0xff}, ErrorCode::bad_tensor, "quantization type is 255");

  expect(check_inline_headers(open_.header, open_.tensors, open_.segments, segment,
                              std::span<const std::byte>(open_.raw[segment]).first(20)),
         ErrorCode::bad_argument, "20 raw bytes");
  expect(check_inline_headers(open_.header, open_.tensors, open_.segments, 10'000, {}), ErrorCode::bad_argument,
         "segment 10000");
}

TEST_F(Entries, TheFinalFlagByte) {
  const TensorEntry& norm = open_.tensors[tensor(3, Role::final_norm)];
  std::vector<std::byte> raw = open_.raw[norm.first_segment];
  EXPECT_EQ(raw.back(), std::byte{0});
  raw.back() = std::byte{0xff};
  expect(check_inline_headers(open_.header, open_.tensors, open_.segments, norm.first_segment, raw),
         ErrorCode::bad_tensor, "its flag byte is 0xff");
}

TEST(Decompress, Blocks) {
  std::vector<std::byte> raw(100), stored(100, std::byte{9});
  EXPECT_TRUE(decompress(Compression::none, stored, raw));
  EXPECT_EQ(raw, stored);
  EXPECT_EQ(error_of(decompress(Compression::none, std::span(stored).first(99), raw)).code, ErrorCode::bad_compression);
  const bool zstd = can_decompress(Compression::zstd);
  EXPECT_EQ(error_of(decompress(Compression::zstd, stored, raw)).code,
            zstd ? ErrorCode::bad_compression : ErrorCode::unsupported);
  EXPECT_EQ(error_of(decompress(static_cast<Compression>(4), stored, raw)).code, ErrorCode::unsupported);
  EXPECT_EQ(error_of(decompress(Compression::lz4, {}, raw)).code, ErrorCode::bad_compression);
  std::vector<std::byte> huge(kMaxSegmentRaw + 1);
  EXPECT_EQ(error_of(decompress(Compression::lz4, stored, huge)).code, ErrorCode::bad_compression);
  // An LZ4 block by hand: a token of five literals, and the five.
  const std::byte five[] = {std::byte{0x50}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  std::vector<std::byte> out(5);
  EXPECT_TRUE(decompress(Compression::lz4, five, out));
  EXPECT_EQ(out, std::vector<std::byte>(five + 1, five + 6));
  out.resize(6);
  EXPECT_EQ(error_of(decompress(Compression::lz4hc, five, out)).code, ErrorCode::bad_compression);
  out.resize(4);
  EXPECT_EQ(error_of(decompress(Compression::lz4hc, five, out)).code, ErrorCode::bad_compression);
}

/// Decompresses a frame in place, with exactly the margin.
Status in_place(std::span<const std::byte> frame, std::vector<std::byte>& raw) {
  const auto size = static_cast<std::uint32_t>(raw.size());
  std::vector<std::byte> slot(size +
                              in_place_margin(Compression::zstd, size, static_cast<std::uint32_t>(frame.size()))),
      workspace(decompress_workspace(Compression::zstd));
  if (frame.size() > slot.size()) return make_error(ErrorCode::bad_argument, "too long");
  const std::span<std::byte> stored = std::span(slot).last(frame.size());
  std::ranges::copy(frame, stored.begin());
  const Status status = decompress(Compression::zstd, stored, std::span(slot).first(size), workspace);
  std::copy_n(slot.begin(), size, raw.begin());
  return status;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

// By hand, as RFC 8878 has it: magic, a descriptor (single segment, a byte of content size), the size, blocks of
// 1 + 2 * kind + 8 * size where the last has the 1.
TEST(Decompress, ZstdFrames) {
  if (!can_decompress(Compression::zstd)) return;
  std::vector<std::byte> raw(3);
  EXPECT_TRUE(in_place(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 7, 8, 9}), raw));
  EXPECT_EQ(raw, bytes_of({7, 8, 9}));
  EXPECT_TRUE(in_place(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x08, 0, 0, 5, 0x13, 0, 0, 6}), raw));
  EXPECT_EQ(raw, bytes_of({5, 6, 6}));  // one as it is, one byte twice
  const auto refused = [&](const std::vector<std::byte>& frame) {
    EXPECT_EQ(error_of(in_place(frame, raw)).code, ErrorCode::bad_compression);
  };
  const std::vector<std::byte> good = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 7, 8, 9});
  for (std::size_t n = 0; n < good.size(); ++n) refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)});
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  refused(longer);
  refused(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x19, 0, 0, 7, 8, 9}));     // says another size
  refused(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x18, 0, 0, 7, 8, 9}));     // no last block
  refused(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x1f, 0, 0, 7, 8, 9}));     // a block of no kind
  refused(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x21, 1, 3, 0x19, 0, 0, 7, 8, 9}));  // a dictionary
  refused(bytes_of({0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 8, 9}));              // to be skipped
  // A window of 32 KiB, which is the most, then of 64 KiB: one byte 259 times, and a size of two bytes, to which 256 is
  // added.
  raw.resize(259);
  EXPECT_TRUE(in_place(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x40, 0x28, 3, 0, 0x1b, 8, 0, 7}), raw));
  EXPECT_EQ(raw, std::vector<std::byte>(259, std::byte{7}));
  refused(bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x40, 0x30, 3, 0, 0x1b, 8, 0, 7}));
  // Two blocks of one byte each, repeated 32,768 and 7,232 times, and so many empty ones that the frame lies where
  // these are written.
  raw.resize(40'000);
  std::vector<std::byte> many = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x40, 0x28, 0x40, 0x9b, 2, 0, 4, 7, 2, 0xe2, 0, 8});
  const std::vector<std::byte> empty = bytes_of({0, 0, 0}), last = bytes_of({1, 0, 0});
  std::vector<std::byte> few = many;
  few.insert(few.end(), last.begin(), last.end());
  EXPECT_TRUE(in_place(few, raw));
  EXPECT_TRUE(raw[32'767] == std::byte{7} && raw[32'768] == std::byte{8} && raw[39'999] == std::byte{8});
  for (int i = 0; i < 20'000; ++i) many.insert(many.end(), empty.begin(), empty.end());
  many.insert(many.end(), last.begin(), last.end());
  EXPECT_STREQ(error_of(in_place(many, raw)).sentence, "a ZSTD frame of 60019 bytes cannot be decompressed in place");
}

TEST(Decompress, ZstdOfAnySizeInPlace) {
  if (!can_decompress(Compression::zstd)) return;
  std::uint32_t state = 3;
  for (const std::uint32_t size : {1u, 100u, 32'767u, 32'768u, 32'769u, 100'000u, 1u << 20}) {
    for (const std::uint32_t levels : {1u, 16u, 100u, 256u}) {  // the less, the shorter
      std::vector<std::byte> content(size), out(size), raw(size);
      for (std::byte& b : content) {
        state = state * 1664525u + 1013904223u;
        b = static_cast<std::byte>((state >> 16) % levels);
      }
      const std::uint32_t made = compress(Compression::zstd, content, out);
      if (made == 0) {
        EXPECT_TRUE(levels == 256 || size <= 100);
        continue;
      }
      EXPECT_LT(made, size);
      const Status status = in_place(std::span(out).first(made), raw);
      EXPECT_TRUE(status) << status.error().sentence;
      EXPECT_TRUE(raw == content) << size << " of " << levels;
    }
  }
}

// The hardest block to decompress in place: noise, which LZ4 makes longer, up to a run that shrinks the whole just
// enough; then what is written comes as near as it can to what is still to be read.
TEST(Decompress, InPlaceWithNothingToSpare) {
  for (const std::uint32_t rows : {10u, 100u, 1000u, 10'000u}) {
    std::uint32_t least_saved = ~0u;
    const std::uint32_t near = rows / 255 + 1;  // rows; each 255 literals cost a byte
    for (std::uint32_t zeros = near > 8 ? near - 8 : 1; zeros < near + 4; ++zeros) {
      SmallOptions options;
      options.n_layers = 1;
      options.vocab_size = rows;
      options.dim = options.head_dim = 4;
      options.n_heads = options.n_kv_heads = 1;
      options.ffn_dim = 4;
      options.tied = false;
      options.compression = Compression::lz4hc;
      options.segment_bytes = 1 << 20;
      SmallFile file;
      const FileSpec source = small_source(options, file);
      auto& head = file.weights.at({2, Role::head});
      std::fill_n(head.end() - zeros * 4, zeros * 4, 0.0f);
      const Result<std::uint64_t> size = write_file(source, memory_sink(file.bytes), {});
      ASSERT_TRUE(size) << size.error().sentence;
      const Result<OpenFile> f = open_file(file.bytes);  // in place, with exactly the margin
      ASSERT_TRUE(f) << f.error().sentence;
      const std::vector<std::byte>& raw = f->raw.back();
      ASSERT_EQ(raw.size(), kTensorHeaderSize + head.size() * 4);
      EXPECT_EQ(std::memcmp(raw.data() + kTensorHeaderSize, head.data(), head.size() * 4), 0) << rows;
      const SegmentEntry& s = f->segments.back();
      if (s.compression == Compression::lz4hc) least_saved = std::min(least_saved, s.raw_size - s.stored_size);
    }
    EXPECT_LE(least_saved, 32u) << rows;
  }
}

}  // namespace
}  // namespace qsf::test
