// llama.cpp's mixtures of types. The expected types are those of published files, and of llama-quantize's rules.
#include "converter/types/mixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/types/written_type.h"

namespace qsf::test {
namespace {

using convert::MixedModel;
using convert::Mixture;

std::string type(std::string_view mixture, Role role, std::uint32_t i, std::uint32_t n, const MixedModel& model = {}) {
  const Mixture* const found = convert::find_mixture(mixture);
  if (found == nullptr) return "none";
  const std::optional<FormatId> id = convert::type_in(*found, model, role, i, n);
  return id ? std::string(convert::format_of(*id).name) : std::string(found->type);
}

/// The layers whose matrix has a type.
std::vector<std::uint32_t> layers(std::string_view mixture, Role role, std::uint32_t n, std::string_view wanted) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (type(mixture, role, i, n) == wanted) out.push_back(i);
  }
  return out;
}

TEST(Mixture, MediumHasMoreBitsInTheLayersOfPublishedFiles) {
  // Llama 2 7B in Q4_K_M.
  const std::vector<std::uint32_t> more{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
  for (const std::string_view name : {"Q4_K_M", "q5_k_m"}) {
    EXPECT_EQ(layers(name, Role::attn_v, 32, "q6_k"), more) << name;
    EXPECT_EQ(layers(name, Role::ffn_down, 32, "q6_k"), more) << name;
    EXPECT_EQ(layers(name, Role::expert_down, 32, "q6_k"), more) << name;
    EXPECT_EQ(type(name, Role::head, 0, 1), "q6_k");
  }
  EXPECT_EQ(type("q4_k_m", Role::attn_v, 4, 32), "q4_k");
  EXPECT_EQ(type("q5_k_m", Role::attn_v, 4, 32), "q5_k");
  EXPECT_EQ(type("q4_k_m", Role::attn_q, 0, 32), "q4_k");
  EXPECT_EQ(type("q4_k_m", Role::token_embd, 0, 1), "q4_k");
}

TEST(Mixture, SmallAndLargeHaveTheTypesOfLlamaQuantize) {
  EXPECT_EQ(layers("q4_k_s", Role::attn_v, 32, "q5_k"), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(layers("q4_k_s", Role::ffn_down, 16, "q5_k"), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(layers("q3_k_m", Role::attn_v, 32, "q5_k"), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(layers("q3_k_m", Role::ffn_down, 32, "q5_k"), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(type("q3_k_m", Role::ffn_down, 2, 32), "q4_k");
  EXPECT_EQ(type("q3_k_m", Role::attn_o, 9, 32), "q4_k");
  EXPECT_EQ(type("q3_k_l", Role::attn_o, 9, 32), "q5_k");
  EXPECT_EQ(type("q3_k_s", Role::attn_v, 0, 32), "q3_k");
  EXPECT_EQ(type("q2_k_s", Role::attn_v, 0, 32), "q2_k");
}

TEST(Mixture, FewKeysAndEightExpertsCostLittle) {
  EXPECT_EQ(type("q2_k_s", Role::attn_v, 20, 32, {.heads_per_kv = 4}), "q4_k");
  const MixedModel eight{.heads_per_kv = 4, .n_experts = 8};
  EXPECT_EQ(type("q4_k_m", Role::attn_k, 20, 32, eight), "q8_0");
  EXPECT_EQ(type("q4_k_m", Role::attn_v, 20, 32, eight), "q8_0");
  EXPECT_EQ(type("q4_k_m", Role::attn_o, 20, 32, eight), "q5_k");
  EXPECT_EQ(type("q4_k_m", Role::attn_q, 20, 32, eight), "q4_k");
}

TEST(Mixture, OthersAreNone) {
  for (const std::string_view name : {"q2_k", "q4_k", "q4_k_xl", "mixed", ""}) {
    EXPECT_EQ(convert::find_mixture(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace qsf::test
