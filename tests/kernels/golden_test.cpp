// One hash per kernel over seeded inputs. The constants come from the scalar table on x86; every instruction set on
// every machine must give them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  Hash hash;
  hash.add(std::span<const T>(values));
  return hash.value();
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

std::uint64_t quantize_hash(const Kernels& kernels, ScaleOf scale_of) {
  Hash hash;
  for (const Values kind : kAllValues) {
    const Columns columns(kernels, make_values(kind, 3 * 300, 17), 300, 290, 3, scale_of);
    const auto in_order = [&](auto values, std::size_t of_group) {  // column after column, not as panels lie
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t group = 0; group < padded_cols(290) / kGroup; ++group) {
          hash.add(values.subspan(columns.place(c, group) * of_group, of_group));
        }
      }
    };
    in_order(columns.codes(), kGroup);
    in_order(columns.d(), 1);
    in_order(columns.sums(), 1);
  }
  return hash.value();
}

constexpr std::string_view kWithSinks = "attend f16 with sinks";

std::uint64_t attend_hash(const Kernels& kernels, KvType type, const float* sinks = nullptr) {
  const KvForms forms = forms_of(type);
  Hash hash;
  for (const std::uint32_t head_dim : {10u, 64u, 80u, 128u}) {
    const std::uint32_t capacity = 13, n = 3;
    const auto filled = [&](KvForm form, std::uint32_t seed) {
      const std::uint32_t bytes = kv_bytes(form, head_dim);
      std::vector<std::byte> all(capacity * bytes);
      for (std::uint32_t slot = 0; slot < capacity; ++slot) {
        const std::vector<float> x = unit_values(head_dim, seed + slot);
        kernels.kv_store[static_cast<std::size_t>(form)](x.data(), head_dim, &all[slot * bytes]);
      }
      return all;
    };
    const std::vector<std::byte> k = filled(forms.key, 0), v = filled(forms.value, 100);
    hash.add(std::span<const std::byte>(k));
    hash.add(std::span<const std::byte>(v));
    std::vector<float> scores(n * capacity), out(n * head_dim);
    const std::vector<float> q = unit_values(n * head_dim, 7);
    const AttendArgs args{.q = q.data(),
                          .stride = n * head_dim,
                          .k = k.data(),
                          .v = v.data(),
                          .n_heads = n,
                          .head_dim = head_dim,
                          .capacity = capacity,
                          .position = 20,
                          .n_positions = 1,
                          .window = 12,
                          .scale = 1.5f,
                          .sinks = sinks,
                          .scores = scores.data(),
                          .out = out.data()};
    kernels.attend[static_cast<std::size_t>(type)](args);
    // The hashes are of rows that are `capacity` apart.
    std::vector<float> rows(n * capacity);
    for (std::uint32_t head = 0; head < n; ++head) {
      std::copy_n(&scores[head * args.most_seen()], args.most_seen(), &rows[head * capacity]);
    }
    hash.add(std::span<const float>(rows));
    hash.add(std::span<const float>(out));
  }
  return hash.value();
}

/// x = the kernel's work on x and perhaps on y, both of n values.
using OnVectors = void(const Kernels& kernels, float* x, const float* y, std::uint32_t n);

struct VectorKernel {
  std::string_view name;
  OnVectors* run;
};
constexpr VectorKernel kVectorKernels[] = {
    {"rms_norm", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.rms_norm(x, y, x, n, 1e-5f); }},
    {"layer_norm",
     [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.layer_norm(x, y, y, x, n, 1e-5f); }},
    {"add", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.add(x, y, n); }},
    {"mul", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.mul(x, y, n); }},
    {"scale", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.scale(x, y[0], n); }},
    {"exp", [](const Kernels& k, float* x, const float*, std::uint32_t n) { k.exp(x, n); }},
    {"tanh", [](const Kernels& k, float* x, const float*, std::uint32_t n) { k.tanh(x, n); }},
    {"sin", [](const Kernels& k, float* x, const float*,
               std::uint32_t n) { k.sin_cos(x, x, std::vector<float>(n).data(), n); }},
    {"cos", [](const Kernels& k, float* x, const float*,
               std::uint32_t n) { k.sin_cos(x, std::vector<float>(n).data(), x, n); }},
    {"silu", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.silu(x, y, n); }},
    {"gelu", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.gelu(x, y, n); }},
    {"gelu_fast", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.gelu_fast(x, y, n); }},
    {"gelu_erf", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.gelu_erf(x, y, n); }},
    {"relu", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.relu(x, y, n); }},
    {"relu2", [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.relu2(x, y, n); }},
    {"soft_cap", [](const Kernels& k, float* x, const float*, std::uint32_t n) { k.soft_cap(x, n, 2.5f); }},
    {"softmax", [](const Kernels& k, float* x, const float*, std::uint32_t n) { k.softmax(x, n, 1.0f); }},
    {"softmax at 0.7", [](const Kernels& k, float* x, const float*, std::uint32_t n) { k.softmax(x, n, 0.7f); }},
    {"rope",
     [](const Kernels& k, float* x, const float* y, std::uint32_t n) { k.rope({x, 1, n, 1, n, n, y, y + n / 2}); }},
    {"argmax",
     [](const Kernels& k, float* x, const float*, std::uint32_t n) { x[0] = static_cast<float>(k.argmax(x, n)); }},
    {"widen_f16",
     [](const Kernels& k, float* x, const float* y, std::uint32_t n) {
       std::vector<f16> half(n);
       for (std::uint32_t i = 0; i < n; ++i) half[i] = f32_to_f16(y[i] * 0x1p-10f);  // denormals, too
       k.widen_f16(reinterpret_cast<const std::byte*>(half.data()), x, n);
     }},
};

std::uint64_t vector_hash(const Kernels& kernels, OnVectors* run) {
  Hash hash;
  for (const std::uint32_t n : {2u, 16u, 46u, 256u}) {
    for (const Values kind : {Values::zero, Values::subnormal, Values::random}) {
      std::vector<float> x = make_values(kind, n, n);
      run(kernels, x.data(), unit_values(n, n + 1).data(), n);
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
    {"f32", 0xeded65b63f6c54e7u},
    {"f16", 0xb5f2be890d27d91cu},
    {"bf16", 0x879a3334e2767506u},
    {"8bit", 0x1efa168dfbcfdc5fu},
    {"4bit", 0x3a341b92faeeb16eu},
    {"q4_0", 0xb82918a76363c5ceu},
    {"q8_0", 0x8a1563914e6319a8u},
    {"quantize", 0xd8582da77988648bu},
    {"attend f16", 0xd9510a45478cb531u},
    {"attend 8bit", 0xead56b27bb9328ddu},
    {"attend f32", 0xb5e47f622092e864u},
    {"rms_norm", 0xbf69b5a4518ca98du},
    {"add", 0x7dbe98fc46417b16u},
    {"softmax", 0x62a84d6377b40733u},
    {"rope", 0xc19f1e5ec656504du},
    {"argmax", 0x995c0905f1029b26u},
    {"3bit", 0x5e78ae5a58769b2bu},
    {"2bit", 0x6de6d4c4982c8fecu},
    {"2bit-symmetric", 0x6de6d4c4982c8fecu},
    {"ternary", 0x684cd5b0b6c4d320u},
    {"ternary-32", 0x5c5d2019f76916ceu},
    {"ternary-128", 0xd8f38bf588e2cc45u},
    {"ternary-256", 0x6e7f7c049bccf345u},
    {"q4_1", 0x4f31af6ac78a8a43u},
    {"q5_0", 0x57aed518ae4faaefu},
    {"q5_1", 0x5817c42e12407e9fu},
    {"q2_k", 0x483adf0937c0ef04u},
    {"q3_k", 0x61585ba1e65ef3eu},
    {"q4_k", 0x8560e1bb3860dfa9u},
    {"q5_k", 0x6ffbe518da759353u},
    {"q6_k", 0xd6a1632bf54307adu},
    {"iq4_nl", 0x5559c97b463a3eb5u},
    {"iq4_xs", 0xc47067ba58ce8e0du},
    {"iq1_s", 0x2e2aaf53e255b0c6u},
    {"iq1_m", 0x8c292176f9aed7c9u},
    {"iq2_xxs", 0xd01e9d02b44219f4u},
    {"iq2_xs", 0x5a313da7a411522au},
    {"iq2_s", 0x377b79ab69e64f3u},
    {"iq3_xxs", 0x5ba2fc1eadb33a7cu},
    {"iq3_s", 0x6782f7901ab51eeu},
    {"nvfp4", 0x9e7b69cb5de62dd0u},
    {"nvfp4_f32", 0x8345243e5c6b2d87u},
    {"mxfp4", 0xe2b06cd695ad9630u},
    {"tq1_0", 0x622259781bf1c58cu},
    {"tq2_0", 0xe4ac068396bf5838u},
    {"q1_0", 0x4c0929b0ccab8e41u},
    {"q2_0", 0x292cfab53896bacdu},
    {"q2_0-128", 0x2401cdf362272d5du},
    {"trellis2", 0x1f02415613c958deu},
    {"trellis3", 0x9dbeda0b4791a6e9u},
    {"trellis4", 0x75e47642ae11ae8du},
    {"q8_f32", 0xcbd81af6ee2cdb67u},
    {"i2_s", 0xf0a6cc9a0bfd563du},
    {"bitnet-32", 0xc65d2a0e1233b9a2u},
    {"qk256", 0xc0084969373f9a5u},
    {"silu", 0x5aa343aaecb9e63bu},
    {"layer_norm", 0x63234ab7e345706au},
    {"mul", 0x08e015aab660f440u},
    {"scale", 0x5755a1bc411f117au},
    {"exp", 0xfb8b1803e11345d3u},
    {"tanh", 0x20aba57aef9fb065u},
    {"sin", 0x831fdc129354d031u},
    {"cos", 0x24a0538bc772629fu},
    {"gelu", 0xcb3d7d9d9e863809u},
    {"gelu_fast", 0x17f6067cc85dfa61u},
    {"relu", 0x1a4e1e71f912d099u},
    {"gelu_erf", 0x96829fbc47981ad2u},
    {"relu2", 0xc039c1c5182423b6u},
    {"soft_cap", 0xa03e5aa0a09780e0u},
    {"softmax at 0.7", 0xc7ce22ea2bfe1ac8u},
    {"widen_f16", 0x78c366274c779d48u},
    {"attend 4bit", 0xbdf4fddf563b5053u},
    {"attend 2bit", 0x83e24b58d1d61292u},
    {"attend k8v4", 0xfe683b34523328f3u},
    {"attend k4v4", 0xe2b0b4ce796fc31au},
    {"attend k4v3", 0x20978f702b5ef4eau},
    {"attend k4v2", 0x0e1bf42bec425159u},
    {"attend k3v3", 0x4868083635b8d225u},
    {"attend k2v2", 0x542d82fb20b6d07au},
    {kWithSinks, 0x0e5b43f91c2f6eb8u},
    {"quantize columns", 0xe31896a5820a117au},
};

std::uint64_t hash_of_kernel(const Kernels& kernels, std::string_view which) {
  if (const Format* const f = find_format(which)) return matmul_hash(kernels, *f);
  if (which == "quantize") return quantize_hash(kernels, ScaleOf::group);
  if (which == "quantize columns") return quantize_hash(kernels, ScaleOf::column);
  if (which == kWithSinks) {
    const float sinks[] = {-1.5f, 0.75f, 40};
    return attend_hash(kernels, KvType::f16, sinks);
  }
  for (std::size_t kv = 0; kv < kKvNames.size(); ++kv) {
    if (which == "attend " + std::string(kKvNames[kv])) return attend_hash(kernels, static_cast<KvType>(kv));
  }
  const auto* const kernel = std::ranges::find(kVectorKernels, which, &VectorKernel::name);
  return vector_hash(kernels, kernel->run);
}

TEST(GoldenTest, EveryInstructionSetGivesTheCommittedHashes) {
  for (const Kernels* const kernels : available_kernels()) {
    for (const Golden& golden : kGolden) {
      EXPECT_EQ(hash_of_kernel(*kernels, golden.kernel), golden.hash)
          << kernels->isa << " " << golden.kernel << ": 0x" << std::hex << hash_of_kernel(*kernels, golden.kernel);
    }
  }
}

TEST(GoldenTest, CoversEveryKernel) {
  for (const std::string_view kv : kKvNames) {
    EXPECT_NE(std::ranges::find(kGolden, "attend " + std::string(kv), &Golden::kernel), std::end(kGolden)) << kv;
  }
  for (const VectorKernel& kernel : kVectorKernels) {
    EXPECT_NE(std::ranges::find(kGolden, kernel.name, &Golden::kernel), std::end(kGolden)) << kernel.name;
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
