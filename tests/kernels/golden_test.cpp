// One hash per kernel over seeded inputs. The constants come from the scalar table on x86; every instruction set on
// every machine must give them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cases.h"

namespace qsf::test {
namespace {

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  Hash hash;
  hash.add(std::span<const T>(values));
  return hash.value();
}

std::vector<float> unit_values(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = random.symmetric();
  return values;
}

std::uint64_t matmul_hash(const Kernels& kernels, const Format& f) {
  Hash hash;
  for (const std::uint32_t cols : {64u, 172u, 320u}) {
    const Weights w = make_weights(f, 37, cols, cols);
    for (const Values kind : kAllValues) {
      const std::vector<float> y = multiply(kernels, w, make_values(kind, std::size_t{11} * cols, 3), 11);
      hash.add(std::span<const float>(y));
    }
  }
  return hash.value();
}

std::uint64_t quantize_hash(const Kernels& kernels) {
  Hash hash;
  for (const Values kind : kAllValues) {
    const Columns columns(kernels, make_values(kind, 3 * 300, 17), 300, 290, 3);
    hash.add(columns.codes());
    hash.add(columns.d());
    hash.add(columns.sums());
  }
  return hash.value();
}

std::uint64_t attend_hash(const Kernels& kernels, KvType type) {
  const auto kv = static_cast<std::size_t>(type);
  Hash hash;
  for (const std::uint32_t head_dim : {10u, 64u, 80u, 128u}) {
    const std::uint32_t capacity = 13;
    std::vector<std::byte> k_codes(capacity * head_dim * std::max(2u, kv_code_bytes(type)));
    std::vector<std::byte> v_codes(capacity * head_dim * std::max(2u, kv_code_bytes(type)));
    std::vector<float> k_scales(capacity);
    std::vector<float> v_scales(capacity);
    const KvHead k{k_codes.data(), k_scales.data()};
    const KvHead v{v_codes.data(), v_scales.data()};
    for (std::uint32_t slot = 0; slot < capacity; ++slot) {
      kernels.kv_store[kv](unit_values(head_dim, slot).data(), head_dim, k, slot);
      kernels.kv_store[kv](unit_values(head_dim, 100 + slot).data(), head_dim, v, slot);
    }
    hash.add(std::span<const std::byte>(k_codes));
    hash.add(std::span<const float>(v_scales));
    std::vector<float> scores(capacity);
    std::vector<float> out(head_dim);
    const std::vector<float> q = unit_values(head_dim, 7);
    kernels.attend[kv]({q.data(), k, v, head_dim, capacity, 9, 12, 1.5f, scores.data(), out.data()});
    hash.add(std::span<const float>(scores).first(12));
    hash.add(std::span<const float>(out));
  }
  return hash.value();
}

std::uint64_t vector_hash(const Kernels& kernels, std::string_view which) {
  Hash hash;
  for (const std::uint32_t n : {2u, 16u, 46u, 256u}) {
    for (const Values kind : {Values::zero, Values::subnormal, Values::random}) {
      std::vector<float> x = make_values(kind, n, n);
      const std::vector<float> y = unit_values(n, n + 1);
      if (which == "rms_norm") kernels.rms_norm(x.data(), y.data(), x.data(), n, 1e-5f);
      if (which == "add") kernels.add(x.data(), y.data(), n);
      if (which == "silu_mul") kernels.silu_mul(x.data(), y.data(), n);
      if (which == "softmax") kernels.softmax(x.data(), n);
      if (which == "rope") kernels.rope(x.data(), y.data(), y.data() + n / 2, n);
      if (which == "argmax") x[0] = static_cast<float>(kernels.argmax(x.data(), n));
      hash.add(std::span<const float>(x));
    }
  }
  return hash.value();
}

struct Golden {
  std::string_view kernel;
  std::uint64_t hash;
};

constexpr Golden kGolden[] = {
    {"f32", 0xeded65b63f6c54e7u},         {"f16", 0xb5f2be890d27d91cu},
    {"bf16", 0x879a3334e2767506u},        {"8bit", 0x1efa168dfbcfdc5fu},
    {"4bit", 0x43eb3089a3a62d6cu},        {"q4_0", 0xb82918a76363c5ceu},
    {"q8_0", 0x8a1563914e6319a8u},        {"quantize", 0xd8582da77988648bu},
    {"attend f16", 0x691c618b6dd4fe4du},  {"attend 8bit", 0x8ee644639bf441efu},
    {"attend f32", 0x3b4702fc6ec82fcfu},  {"rms_norm", 0xbf69b5a4518ca98du},
    {"add", 0x7dbe98fc46417b16u},         {"silu_mul", 0x5aa343aaecb9e63bu},
    {"softmax", 0x3ed28031d1c0a745u},     {"rope", 0xc19f1e5ec656504du},
    {"argmax", 0x995c0905f1029b26u},      {"3bit", 0x59f75cba57c7481bu},
    {"2bit", 0x21a63e5858fab032u},        {"2bit-symmetric", 0x21a63e5858fab032u},
    {"ternary", 0x684cd5b0b6c4d320u},     {"ternary-32", 0x5c5d2019f76916ceu},
    {"ternary-128", 0xd8f38bf588e2cc45u}, {"ternary-256", 0x6e7f7c049bccf345u},
    {"q4_1", 0x86b81552b48c7596u},        {"q5_0", 0x57aed518ae4faaefu},
    {"q5_1", 0x8df744adfda77eadu},        {"q2_k", 0x783cffe41b1a0080u},
    {"q3_k", 0x61585ba1e65ef3eu},         {"q4_k", 0x802ec68a9e21e125u},
    {"q5_k", 0xcb13a81fec7d48dcu},        {"q6_k", 0xd6a1632bf54307adu},
    {"iq4_nl", 0x5559c97b463a3eb5u},      {"tq1_0", 0x622259781bf1c58cu},
    {"tq2_0", 0xe4ac068396bf5838u},       {"q1_0", 0x4c0929b0ccab8e41u},
    {"q2_0", 0x292cfab53896bacdu},        {"q2_0-128", 0x2401cdf362272d5du},
    {"q8_f32", 0xcbd81af6ee2cdb67u},      {"i2_s", 0xf0a6cc9a0bfd563du},
    {"bitnet-32", 0xc65d2a0e1233b9a2u},   {"qk256", 0xc0084969373f9a5u},
};

std::uint64_t hash_of_kernel(const Kernels& kernels, std::string_view which) {
  if (const Format* const f = find_format(which)) return matmul_hash(kernels, *f);
  if (which == "quantize") return quantize_hash(kernels);
  if (which == "attend f16") return attend_hash(kernels, KvType::f16);
  if (which == "attend 8bit") return attend_hash(kernels, KvType::q8);
  if (which == "attend f32") return attend_hash(kernels, KvType::f32);
  return vector_hash(kernels, which);
}

TEST(GoldenTest, EveryInstructionSetGivesTheCommittedHashes) {
  for (const Kernels* const kernels : available_kernels()) {
    for (const Golden& golden : kGolden) {
      EXPECT_EQ(hash_of_kernel(*kernels, golden.kernel), golden.hash)
          << kernels->isa << " " << golden.kernel << ": 0x" << std::hex << hash_of_kernel(*kernels, golden.kernel);
    }
  }
}

TEST(GoldenTest, CoversEveryFormatAndCache) {
  for (const std::string_view kv : kKvNames) {
    EXPECT_NE(std::ranges::find(kGolden, "attend " + std::string(kv), &Golden::kernel), std::end(kGolden)) << kv;
  }
  for (const Format& f : kFormats) {
    EXPECT_NE(std::ranges::find(kGolden, f.name, &Golden::kernel), std::end(kGolden)) << f.name;
  }
}

TEST(DispatchTest, ScalarIsFirstAndEveryTableIsComplete) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_EQ(available_kernels().front()->isa, "scalar");
  EXPECT_EQ(available_kernels().back(), &best_kernels());
  for (const Kernels* const kernels : available_kernels()) {
    EXPECT_EQ(find_kernels(kernels->isa), kernels);
    for (const auto matmul : kernels->matmul) EXPECT_NE(matmul, nullptr);
    RecordProperty(std::string(kernels->isa), "available");
  }
  EXPECT_EQ(find_kernels("none such"), nullptr);
}

}  // namespace
}  // namespace qsf::test
