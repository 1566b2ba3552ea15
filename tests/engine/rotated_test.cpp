// Rotated types of keys and values against a reference in double precision.
#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "tests/support/farthest.h"

namespace qsf::test {
namespace {

// Of the rotated types one reads its last and first positions in f16, also in windows, in layers that share keys and
// over latents. The text is so long that other positions are read too.
TEST(Session, RotatedTypesAgreeWithDoublePrecision) {
  int seen = 0;
  for (Named variant : variants()) {
    variant.options.max_seq_len = 200;
    const bool plain = std::string_view(variant.name) == "plain";
    const SmallFile file = small_file(variant.options);
    const auto ids = some_tokens(80, variant.options.vocab_size, 7);
    for (std::size_t type = 0; type < kKvNames.size(); ++type) {
      OpenOptions options = with_logits();
      options.kv = static_cast<KvType>(type);
      if (!forms_of(*options.kv).rotates() || (!plain && *options.kv != KvType::k8v4)) continue;
      Host host(file.bytes, 8 * kMiB, options);
      const Generation run = host.generate(all_logits(ids, 0));
      ASSERT_EQ(run.error.code, ErrorCode::none) << variant.name << ": " << run.error.sentence;
      Vec all;
      for (const Vec& row : reference_logits(variant.options, file, ids, *options.kv)) {
        all.insert(all.end(), row.begin(), row.end());
      }
      EXPECT_LT(relative_difference(run.logits, all), 1e-4) << variant.name << " " << kKvNames[type];
      ++seen;
    }
  }
  EXPECT_GT(seen, 20);
}

}  // namespace
}  // namespace qsf::test
