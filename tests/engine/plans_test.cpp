// What a budget gives: how keys and values are kept and how long the context is, and that a text depends on nothing
// else.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "engine/variants.h"

namespace qsf::test {
namespace {

/// Keys and values of 256 positions take as much as the weights, and less with each coarser type.
SmallOptions with_large_heads() {
  SmallOptions o;
  o.format = FormatId::q8;
  o.dim = 64;
  o.n_heads = o.n_kv_heads = 2;
  o.head_dim = 32;
  o.ffn_dim = 172;
  o.n_layers = 3;
  o.max_seq_len = 1000;
  return o;
}

struct Way {
  const char* name;
  OpenOptions options;
};
std::vector<Way> ways(std::span<const std::byte> file) {
  std::vector<Way> all{
      {"as planned", {}},         {"a column", {}},   {"seven columns", {}},          {"wide passes", {}},
      {"one slot", {}},           {"nine slots", {}}, {"all streamed", {}},           {"three sequences", {}},
      {"where it is mapped", {}}, {"all logits", {}}, {"of many columns, mapped", {}}};
  all[1].options.chunk = 1;
  all[2].options.chunk = 7;
  all[3].options.chunk = 128;
  all[4].options.ring_slots = 1;
  all[5].options.ring_slots = 9;
  all[6].options.stream_all = true;
  all[7].options.sequences = 3;
  all[8].options.mapped = file;
  all[9].options.all_logits = true;
  all[10].options.chunk = 128;
  all[10].options.mapped = file;
  return all;
}

/// From the least budget to everything, however a model is opened: the budget and the context that is asked for decide
/// how keys and values are kept, that decides the text, and whatever is coarser than f16 is told.
TEST(Plans, ATextDependsOnThePrecisionAndThatOnTheBudget) {
  const SmallFile file = small_file(with_large_heads());
  const auto ids = some_tokens(9, 40);
  std::map<KvType, std::string> hashes;
  for (const KvType kv : {KvType::f16, KvType::q8, KvType::k8v4, KvType::k4v4, KvType::q4}) {
    OpenOptions options;
    options.kv = kv;
    hashes[kv] = Host(file.bytes, 16 * kMiB, options).generate(greedy(ids, 5)).hash;
  }
  ASSERT_NE(hashes[KvType::f16], hashes[KvType::q8]);
  ASSERT_NE(hashes[KvType::q8], hashes[KvType::q4]);
  for (const std::uint32_t context : {0u, 60u, 900u}) {
    std::map<KvType, int> opened;
    int refused = 0;
    for (std::uint64_t budget = kHostReserve + 60 * 1024; budget < kHostReserve + 1100 * 1024; budget += 13 * 1024) {
      std::set<KvType> seen;
      for (Way& way : ways(file.bytes)) {
        way.options.max_seq_len = context;
        Host host(file.bytes, budget, way.options);
        if (host.error.code == ErrorCode::budget_too_small) {
          ++refused;
          continue;
        }
        ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
        const Stats s = host.session->stats();
        seen.insert(s.kv);
        ++opened[s.kv];
        EXPECT_EQ(host.generate(greedy(ids, 5)).hash, hashes[s.kv]) << way.name << " " << budget;
        const std::string warning(s.warning);
        EXPECT_EQ(warning.empty(), s.kv == KvType::f16) << way.name << " " << budget << " " << warning;
        if (s.kv == KvType::f16) continue;
        EXPECT_TRUE(warning.starts_with("keys and values are kept in " + std::string(kv_name(s.kv)))) << warning;
        EXPECT_EQ(s.kv_reason, "finer ones do not fit");
      }
      EXPECT_LE(seen.size(), 1u) << budget << " " << context;
    }
    EXPECT_GT(refused, 5) << context;
    EXPECT_GT(opened[KvType::f16], 100) << context;
    EXPECT_EQ(opened.count(KvType::f32) + opened.count(KvType::q2), 0u);
    if (context == 60) continue;  // so short that nothing coarser has to be
    EXPECT_GT(opened[KvType::q8], 5) << context;
    EXPECT_GT(opened[KvType::q4], 5) << context;
  }
}

/// A warning names the budget with which there would be none.
TEST(Plans, AWarningNamesTheBudgetThatKeepsFinerOnes) {
  const SmallFile file = small_file(with_large_heads());
  for (const std::uint32_t context : {0u, 900u}) {
    OpenOptions options;
    options.max_seq_len = context;
    std::string warning;
    for (std::uint64_t budget = kHostReserve + 60 * 1024; warning.empty(); budget += 13 * 1024) {
      const Host host(file.bytes, budget, options);
      if (host.error.code == ErrorCode::none) warning = host.session->stats().warning;
    }
    unsigned needs = 0;
    double mib = 0;
    const char* const from = std::strstr(warning.c_str(), "in f16 a context of ");
    ASSERT_NE(from, nullptr) << warning;
    ASSERT_EQ(std::sscanf(from, "in f16 a context of %u needs %lf MiB", &needs, &mib), 2) << warning;
    EXPECT_EQ(needs, context == 0 ? 256 : context);
    const Host enough(file.bytes, static_cast<std::uint64_t>(mib * kMiB), options);
    EXPECT_EQ(enough.session->stats().kv, KvType::f16);
    EXPECT_EQ(enough.session->stats().warning, "");
    EXPECT_NE(Host(file.bytes, static_cast<std::uint64_t>((mib - 0.02) * kMiB), options).session->stats().kv,
              KvType::f16);
  }
}

/// What is asked for by name is no surprise.
TEST(Plans, WhatWasAskedForIsNotWarnedOf) {
  const SmallFile file = small_file(with_large_heads());
  OpenOptions options;
  options.kv = KvType::q2;
  const Host host(file.bytes, 8 * kMiB, options);
  EXPECT_EQ(host.session->stats().kv, KvType::q2);
  EXPECT_EQ(host.session->stats().warning, "");
  EXPECT_EQ(host.session->stats().kv_reason, "as asked for");
}

/// Weights first: all of them stay where 256 positions fit beside, and whatever is left is context, up to the model's.
TEST(Plans, WhatWeightsLeaveIsContext) {
  const SmallFile file = small_file(with_large_heads());
  std::uint32_t before = 0;
  std::set<std::string> reasons;
  for (std::uint64_t budget = kHostReserve + 400 * 1024; budget < kHostReserve + 2000 * 1024; budget += 13 * 1024) {
    const Host host(file.bytes, budget, {});
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    const Stats s = host.session->stats();
    EXPECT_GE(s.max_seq_len, std::max(before, 256u)) << budget;
    before = s.max_seq_len;
    reasons.insert(std::string(s.context_reason));
    EXPECT_TRUE(s.ring_slots == 0 || s.max_seq_len == 256) << budget;
    EXPECT_TRUE(s.ring_slots == 0 || s.resident_budget > budget) << budget;
    EXPECT_TRUE(s.ring_slots != 0 || s.resident_budget <= budget) << budget;
  }
  EXPECT_EQ(before, 1000u);
  EXPECT_EQ(reasons,
            (std::set<std::string>{"no longer while weights are streamed", "all that fits", "the model's own"}));
}

/// A model that turns its queries can go on beyond what it was made for, which may spoil the text; rows of positions
/// are all that there are.
TEST(Plans, AContextBeyondTheModelsOwnIsWarnedOfOrRefused) {
  SmallOptions o = with_large_heads();
  o.max_seq_len = 64;
  const SmallFile turned = small_file(o);
  OpenOptions options;
  options.max_seq_len = 65;
  Host beyond(turned.bytes, 8 * kMiB, options);
  EXPECT_EQ(beyond.session->stats().warning, "the model was made for 64 tokens of context; beyond, text may get worse");
  EXPECT_EQ(beyond.generate(greedy(some_tokens(64, 40), 1)).tokens.size(), 1u);
  o.optional = {Role::pos_embd};
  const SmallFile rows = small_file(o);
  const Host refused(rows.bytes, 8 * kMiB, options);
  EXPECT_EQ(refused.error.code, ErrorCode::bad_argument);
  EXPECT_STREQ(refused.error.sentence, "the model has 64 positions, and a context of 65 was asked for");
  options.max_seq_len = 64;
  Host whole(rows.bytes, 8 * kMiB, options);
  EXPECT_EQ(whole.session->stats().warning, "");
  EXPECT_EQ(whole.generate(greedy(some_tokens(63, 40), 1)).tokens.size(), 1u);
}

/// How many tokens there are, how many fit, and what would help.
TEST(Plans, ATextThatIsTooLongIsToldWhatWouldHelp) {
  const SmallFile file = small_file(with_large_heads());
  const auto many = some_tokens(2000, 40);
  const auto told = [&](std::uint64_t budget, const OpenOptions& options) {
    return std::string(Host(file.bytes, budget, options).generate(greedy(many, 1)).error.sentence);
  };
  OpenOptions options;
  EXPECT_EQ(told(8 * kMiB, options),
            "2000 tokens do not fit in the 1000 that are left of a context of 1000: a shorter text would help");
  const std::string streamed = told(kHostReserve + 400 * 1024, options);
  EXPECT_EQ(streamed,
            "2000 tokens do not fit in the 256 that are left of a context of 256: a longer context (max_seq_len), a "
            "larger budget, keys and values in 8bit (kv) or a shorter text would help");
  options.kv = KvType::q8;
  EXPECT_EQ(told(kHostReserve + 300 * 1024, options).find("keys and values"), std::string::npos);
  options.max_seq_len = 50;
  EXPECT_EQ(told(8 * kMiB, options),
            "2000 tokens do not fit in the 50 that are left of a context of 50: a longer context (max_seq_len) or a "
            "shorter text would help");
}

}  // namespace
}  // namespace qsf::test
