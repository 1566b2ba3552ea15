// Rotated types of keys and values against a reference in double precision.
#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "tests/support/farthest.h"

namespace qsf::test {
namespace {

/// A distance from a tie that the errors of single precision do not reach, in codes of 8 bits.
constexpr double kNear = 2e-4;
/// Queries and weights have 13 bits. One that is rounded the other way changes by 2^-13 of itself, and a few are.
constexpr double kMost = 1e-3;

// Of the rotated types one reads its last and first positions in f16, also in windows, in layers that share keys and
// over latents. The text is so long that other positions are read too. A text whose codes come near a tie may be
// rounded another way in single precision, so that the first text is taken that has none. The logits are also nearer to
// the reference than to one that keeps everything in f16.
TEST(Session, RotatedTypesAgreeWithDoublePrecision) {
  int seen = 0;
  for (Named variant : variants()) {
    variant.options.max_seq_len = 200;
    const bool plain = std::string_view(variant.name) == "plain";
    const SmallFile file = small_file(variant.options);
    for (std::size_t type = 0; type < kKvNames.size(); ++type) {
      OpenOptions options = with_logits();
      options.kv = static_cast<KvType>(type);
      if (!forms_of(*options.kv).rotates() || (!plain && *options.kv != KvType::k8v4)) continue;
      std::vector<std::uint32_t> ids;
      Vec all;
      nearest_tie = 0;
      for (std::size_t first = 0; nearest_tie < kNear && first < 40; ++first) {
        ids = some_tokens(80, variant.options.vocab_size, first);
        all.clear();
        nearest_tie = 0.5;
        for (const Vec& row : reference_logits(variant.options, file, ids, *options.kv)) {
          all.insert(all.end(), row.begin(), row.end());
        }
      }
      ASSERT_GE(nearest_tie, kNear) << variant.name << ": every text comes near a tie";
      Host host(file.bytes, 8 * kMiB, options);
      const Generation run = host.generate(all_logits(ids, 0));
      ASSERT_EQ(run.error.code, ErrorCode::none) << variant.name << ": " << run.error.sentence;
      Vec exact;
      for (const Vec& row : reference_logits(variant.options, file, ids, KvType::f16)) {
        exact.insert(exact.end(), row.begin(), row.end());
      }
      const double difference = relative_difference(run.logits, all);
      EXPECT_LT(difference, kMost) << variant.name << " " << kKvNames[type];
      EXPECT_LT(difference, relative_difference(run.logits, exact) / 5) << variant.name << " " << kKvNames[type];
      ++seen;
    }
  }
  EXPECT_GT(seen, 20);
}

}  // namespace
}  // namespace qsf::test
