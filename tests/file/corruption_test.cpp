// Damaged and hostile files: every field set to 0, 1, the most, one more and one less, with and without the checksums
// around it repaired; every truncation; flipped bits. What is not refused must read as the same weights.
#include <gtest/gtest.h>

#include <string>

#include "tests/file/open_file.h"
#include "tests/file/repair.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using Bytes = std::vector<std::byte>;

enum class Expect {
  refused,
  told,  // the model's meaning or a remark, not its bytes: accepted within the field's range, the weights unchanged
};

struct Field {
  const char* name;
  std::uint32_t at;
  std::uint32_t size;
  Expect when_repaired = Expect::refused;
};

constexpr Field kHeaderFields[] = {{"magic", 0, 4},
                                   {"version", 4, 4},
                                   {"header_size", 8, 4},
                                   {"arch", 12, 4, Expect::told},
                                   {"n_layers", 16, 4},
                                   {"dim", 20, 4},
                                   {"n_heads", 24, 4},
                                   {"n_kv_heads", 28, 4},
                                   {"vocab_size", 32, 4},
                                   {"max_seq_len", 36, 4, Expect::told},
                                   {"ffn_dim", 40, 4},
                                   {"head_dim", 44, 4},
                                   {"quant", 48, 1},
                                   {"activation", 49, 1, Expect::told},
                                   {"norm", 50, 1, Expect::told},
                                   {"position", 51, 1},
                                   {"rope_theta", 52, 4, Expect::told},
                                   {"layer_index_offset", 56, 8},
                                   {"embedding_offset", 64, 8},
                                   {"final_offset", 72, 8},
                                   {"bos", 80, 4, Expect::told},
                                   {"eos", 84, 4, Expect::told},
                                   {"pad", 88, 4, Expect::told},
                                   {"file_size_low", 92, 4},
                                   {"directory_offset", 100, 8},
                                   {"n_sections", 108, 4},
                                   {"directory_crc", 112, 4},
                                   {"layer_index_crc", 116, 4},
                                   {"flags", 120, 4}};
constexpr Field kHeaderCrcs[] = {{"header crc", 96, 4}, {"extension crc", 124, 4}};
constexpr Field kLayerFields[] = {
    {"offset", 0, 8},       {"stored_size", 8, 4}, {"raw_size", 12, 4}, {"quant", 16, 1},
    {"compression", 17, 1}, {"n_tensors", 18, 2},  {"crc", 20, 4},      {"importance", 24, 4, Expect::told},
    {"reserved", 28, 4}};
// A section that a reader can do without may take another tag; flag 0 says that it is such a section.
constexpr Field kDirectoryFields[] = {
    {"tag", 0, 4, Expect::told}, {"flags", 4, 4, Expect::told}, {"offset", 8, 8}, {"size", 16, 4}, {"crc", 20, 4}};
constexpr Field kTensorFields[] = {
    {"section", 0, 4}, {"role", 4, 1},  {"format", 5, 1},      {"layout", 6, 1},         {"reserved", 7, 1},
    {"rows", 8, 4},    {"cols", 12, 4}, {"raw_offset", 16, 8}, {"first_segment", 24, 4}, {"n_segments", 28, 4}};
// LZ4 and LZ4-HC are one format to a reader; only layers, by their index, must agree with themselves.
constexpr Field kSegmentFields[] = {{"offset", 0, 8},
                                    {"stored_size", 8, 4},
                                    {"raw_size", 12, 4},
                                    {"raw_begin", 16, 4},
                                    {"crc", 20, 4},
                                    {"section", 24, 4},
                                    {"compression", 28, 1, Expect::told},
                                    {"flags", 29, 1},
                                    {"reserved", 30, 2}};
// 0xff in a tensor's own header stands for the model's one type.
constexpr Field kTensorHeaderFields[] = {{"type", 0, 4},    {"rows", 4, 4},
                                         {"cols", 8, 4},    {"quant", 12, 1, Expect::told},
                                         {"layout", 13, 1}, {"reserved", 14, 2}};
constexpr Field kEmbeddingHeaderFields[] = {{"quant", 0, 4}, {"size", 4, 4}, {"rows", 8, 4}, {"cols", 12, 4}};
constexpr Field kFinalFlag[] = {{"flag byte", 0, 1}};

struct Case {
  const char* name;
  SmallOptions options;
};

std::vector<Case> cases() {
  SmallOptions plain;
  plain.n_layers = 1;
  SmallOptions aligned = plain;
  aligned.aligned = true;
  SmallOptions rich;
  rich.n_layers = 2;
  rich.format = FormatId::q8;
  rich.dim = 64;
  rich.head_dim = 16;
  rich.tied = false;
  rich.biases = rich.qk_norm = rich.repetitive = true;
  rich.vectors = FormatId::f16;
  rich.compression = Compression::lz4;
  rich.segment_bytes = 2000;
  rich.rope_divisors = {1, 1, 1, 2, 2, 4, 8, 8};
  rich.tokenizer.assign(50, std::byte{3});
  std::vector<Case> all{{"plain", plain}, {"aligned", aligned}, {"rich", rich}};
  rich.aligned = true;
  rich.compression = Compression::zstd;
  if (can_decompress(rich.compression)) all.push_back({"zstd", rich});
  return all;
}

class Corruption : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    file_ = small_file(GetParam().options).bytes;
    Result<OpenFile> opened = open_file(file_);
    ASSERT_TRUE(opened) << opened.error().sentence;
    open_ = std::move(*opened);
  }

  void expect_refused(const Bytes& bytes) {
    const Result<OpenFile> result = open_file(bytes);
    ASSERT_FALSE(result);
    EXPECT_NE(error_of(result).code, ErrorCode::none);
    EXPECT_NE(error_of(result).code, ErrorCode::internal);
    EXPECT_NE(error_of(result).code, ErrorCode::bad_argument);
    EXPECT_GT(std::strlen(error_of(result).sentence), 10u);
  }

  void change(std::uint64_t at, const Field& field, Inside inside) {
    std::uint64_t was = 0;
    std::memcpy(&was, file_.data() + at + field.at, field.size);
    const std::uint64_t most = field.size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * field.size)) - 1;
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, most, (was + 1) & most, (was - 1) & most}) {
      if (value == was) continue;
      SCOPED_TRACE(std::string(field.name) + " at " + std::to_string(at + field.at) + ": " + std::to_string(was) +
                   " becomes " + std::to_string(value));
      Bytes bytes = file_;
      std::memcpy(bytes.data() + at + field.at, &value, field.size);
      expect_refused(bytes);
      repair(bytes, inside);
      if (field.when_repaired == Expect::refused) {
        expect_refused(bytes);
        continue;
      }
      const Result<OpenFile> result = open_file(bytes);
      if (result) {
        EXPECT_EQ(result->raw.size(), open_.raw.size());
        EXPECT_TRUE(std::ranges::equal(result->tensors, open_.tensors,
                                       [](auto& a, auto& b) { return a.role == b.role && a.stage == b.stage; }));
        if (inside != Inside::weights) {
          EXPECT_EQ(result->raw, open_.raw);
        }
      } else {
        expect_refused(bytes);
      }
    }
  }

  std::uint64_t scope_of_stage(std::uint32_t tag) { return find_section(open_.sections, tag)->offset; }

  Bytes file_;
  OpenFile open_;
};

TEST_P(Corruption, HeaderFields) {
  for (const Field& field : kHeaderFields) change(0, field, Inside::header);
  for (const Field& field : kHeaderCrcs) {
    for (std::uint32_t byte = 0; byte < 4; ++byte) {
      Bytes bytes = file_;
      bytes[field.at + byte] ^= std::byte{1};
      expect_refused(bytes);
    }
  }
}

TEST_P(Corruption, LayerIndexFields) {
  for (std::size_t i = 0; i < open_.layers.size(); ++i) {
    for (const Field& field : kLayerFields) {
      change(open_.header.layer_index_offset + i * kLayerEntrySize, field, Inside::tables);
    }
  }
}

TEST_P(Corruption, DirectoryFields) {
  for (std::size_t i = 0; i < open_.sections.size(); ++i) {
    for (const Field& field : kDirectoryFields) {
      change(open_.header.directory_offset + i * kSectionEntrySize, field, Inside::tables);
    }
  }
}

TEST_P(Corruption, NeededSectionsKeepTheirTags) {
  for (std::size_t i = 0; i < open_.sections.size(); ++i) {
    if (open_.sections[i].flags == 0) continue;
    Bytes bytes = file_;
    bytes[open_.header.directory_offset + i * kSectionEntrySize] ^= std::byte{0x20};
    repair(bytes, Inside::tables);
    expect_refused(bytes);
  }
}

TEST_P(Corruption, TensorTableFields) {
  for (std::size_t i = 0; i < open_.tensors.size(); ++i) {
    for (const Field& field : kTensorFields) {
      change(scope_of_stage(kTagTensors) + i * kTensorEntrySize, field, Inside::sections);
    }
  }
}

TEST_P(Corruption, SegmentTableFields) {
  for (std::size_t i = 0; i < open_.segments.size(); ++i) {
    for (const Field& field : kSegmentFields) {
      change(scope_of_stage(kTagSegments) + i * kSegmentEntrySize, field, Inside::sections);
    }
  }
}

/// Headers inside the weights: changed in the raw bytes of uncompressed segments.
TEST_P(Corruption, InlineTensorHeaders) {
  for (const TensorEntry& t : open_.tensors) {
    const SegmentEntry& s = open_.segments[t.first_segment];
    if (s.compression != Compression::none) continue;
    const std::uint64_t data = s.offset + t.raw_offset - s.raw_begin;
    if (t.role == Role::final_norm) {
      change(data + t.cols * (t.format == FormatId::f32 ? 4 : 2), kFinalFlag[0], Inside::weights);
    } else if (t.role == Role::token_embd) {
      for (const Field& field : kEmbeddingHeaderFields) change(data - kTensorHeaderSize, field, Inside::weights);
    } else {
      for (const Field& field : kTensorHeaderFields) change(data - kTensorHeaderSize, field, Inside::weights);
    }
  }
}

TEST_P(Corruption, EveryTruncation) {
  for (std::size_t size = 0; size < file_.size(); ++size) {
    SCOPED_TRACE(size);
    Bytes bytes(file_.begin(), file_.begin() + static_cast<std::ptrdiff_t>(size));
    expect_refused(bytes);
    if (size < kHeaderSize) continue;
    store_le(bytes.data() + 92, static_cast<std::uint32_t>(size));  // as if it had been meant
    repair(bytes, Inside::header);
    expect_refused(bytes);
  }
}

TEST_P(Corruption, OneFlippedBitInEverySegment) {
  std::uint32_t state = 1;
  for (std::uint32_t i = 0; i < open_.segments.size(); ++i) {
    const SegmentEntry& s = open_.segments[i];
    for (int n = 0; n < 8; ++n) {
      state = state * 1664525u + 1013904223u;
      Bytes bytes = file_;
      bytes[s.offset + state / 256 % s.stored_size] ^= std::byte{1} << (state >> 4) % 8;
      const Result<OpenFile> result = open_file(bytes);
      ASSERT_FALSE(result);
      EXPECT_EQ(error_of(result).code, ErrorCode::bad_checksum) << result.error().sentence;
    }
  }
}

/// Every bit in front of the weights is under a checksum, but the zeros between the tables.
TEST_P(Corruption, EveryFlippedBitOfTheTables) {
  std::vector<bool> used(open_.segments[0].offset);
  const auto use = [&](std::uint64_t at, std::uint64_t size) {
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(at), size, true);
  };
  use(0, kHeaderSize);
  use(open_.header.directory_offset, open_.sections.size() * kSectionEntrySize);
  use(open_.header.layer_index_offset, open_.layers.size() * kLayerEntrySize);
  for (const SectionEntry& s : open_.sections) use(s.offset, s.size);
  for (std::size_t at = 0; at < used.size(); ++at) {
    Bytes bytes = file_;
    bytes[at] ^= std::byte{1} << at % 8;
    if (used[at]) {
      SCOPED_TRACE(at);
      expect_refused(bytes);
    } else {
      EXPECT_EQ(file_[at], std::byte{0}) << at;
    }
  }
}

/// Damaged LZ4 or ZSTD with a matching checksum gives an error or other weights, but touches nothing outside the slot.
TEST_P(Corruption, HostileCompressedBytes) {
  std::uint32_t state = 7;
  for (std::uint32_t i = 0; i < open_.segments.size(); ++i) {
    const SegmentEntry& s = open_.segments[i];
    if (s.compression == Compression::none) continue;
    for (int n = 0; n < 200; ++n) {
      Bytes slot(s.raw_size + in_place_margin(s.compression, s.raw_size, s.stored_size));
      const std::span<std::byte> stored = std::span(slot).last(s.stored_size);
      std::memcpy(stored.data(), file_.data() + s.offset, stored.size());
      for (int k = 0; k < 1 + n % 5; ++k) {
        state = state * 1664525u + 1013904223u;
        stored[state / 256 % stored.size()] = static_cast<std::byte>(state >> 16);
      }
      Bytes workspace(decompress_workspace(s.compression));
      const Status status = decompress(s.compression, stored, std::span(slot).first(s.raw_size), workspace);
      if (!status) {
        EXPECT_EQ(error_of(status).code, ErrorCode::bad_compression) << status.error().sentence;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Corruption, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace qsf::test
