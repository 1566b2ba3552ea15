// Models whose file is memory.
#include <gtest/gtest.h>

#include "engine/host.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

// The file as memory: what is stored as it is used stays there, whatever the rest needs; nothing of it is written.
TEST(Mapped, SameBits) {
  for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4, ggml_type(2)}) {
    SmallOptions o = compressible(format);
    const auto ids = some_tokens(9, o.vocab_size);
    for (const bool aligned : {false, true}) {
      o.aligned = aligned;
      for (const Layout layout : {Layout::tiles, Layout::rows}) {
        for (const Compression compression : {Compression::none, Compression::lz4}) {
          o.layout = layout;
          o.compression = compression;
          const SmallFile file = small_file(o);
          Host alone(file.bytes, 8 * kMiB, with_logits());
          const std::string expected = alone.generate(all_logits(ids, 5)).hash;
          const std::vector<std::byte> read_only = file.bytes;
          OpenOptions options = with_logits();
          options.mapped = read_only;
          Host host(read_only, 8 * kMiB, options);
          const Generation run = host.generate(all_logits(ids, 5));
          ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
          EXPECT_EQ(run.hash, expected) << static_cast<int>(format) << aligned << static_cast<int>(layout);
          EXPECT_TRUE(read_only == file.bytes);
          const bool floats = format == FormatId::f32 || format == FormatId::f16;
          const bool as_used = floats || layout == Layout::tiles;
          if (!as_used) {
            EXPECT_EQ(host.of_mapped, 0u);
          }
          if (as_used && compression == Compression::none) {  // others keep what does not shrink as it is
            EXPECT_NE(host.of_mapped, 0u);
            EXPECT_LT(host.session->stats().pinned_bytes, alone.session->stats().pinned_bytes / 4);
          }
        }
      }
    }
  }
}

// With what does not stay there passing through slots, and with none of it fitting otherwise.
TEST(Mapped, AModelTakesNoMemoryForItsMatrices) {
  SmallOptions o;
  o.format = FormatId::q8;
  o.ffn_dim = 172;
  o.n_layers = 3;
  const SmallFile file = small_file(o);
  const auto ids = some_tokens(9, o.vocab_size);
  OpenOptions options;
  options.max_seq_len = 32;
  Host resident(file.bytes, 8 * kMiB, options);
  const std::uint64_t weights = resident.session->stats().pinned_bytes;
  const std::uint64_t least = 8 * kMiB - resident.session->memory_map().back().bytes - weights + weights / 4;
  ASSERT_EQ(resident.session->memory_map().back().region, Region::free);
  options.mapped = file.bytes;
  Host mapped(file.bytes, least, options);
  ASSERT_EQ(mapped.error.code, ErrorCode::none) << mapped.error.sentence;
  EXPECT_EQ(mapped.session->stats().ring_slots, 0u);
  EXPECT_EQ(mapped.generate(greedy(ids, 5)).hash, resident.generate(greedy(ids, 5)).hash);
}

}  // namespace
}  // namespace qsf::test
