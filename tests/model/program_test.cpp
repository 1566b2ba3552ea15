#include "model/program.h"

#include "tests/model/opened.h"

namespace qsf::test {
namespace {

using Names = std::vector<std::string_view>;

TEST(Program, ALayerOfTheUsualKind) {
  const Opened o;
  EXPECT_EQ(o.ops(0), Names{"embed"});
  EXPECT_EQ(o.ops(1), (Names{"rms_norm", "matmul", "matmul", "matmul", "rope", "rope", "attend", "matmul", "add",
                             "rms_norm", "matmul", "matmul", "silu", "matmul", "add"}));
  EXPECT_EQ(o.ops(3), (Names{"rms_norm", "hidden", "matmul"}));
  EXPECT_EQ(&o.program.of_stage(1), &o.program.of_stage(2)) << "layers of one kind share their ops";
}

TEST(Program, FollowsTheKindsOfItsLayers) {
  SmallOptions options;
  options.n_layers = 3;
  options.model.embedding_scale = 2;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    if (layer == 0) kind.mixer = Mixer::none;
    if (layer == 1) kind.norm_place = NormPosition::after;
    if (layer == 2) {
      kind.residual = Residual::parallel;
      kind.ffn = Ffn::plain;
      kind.residual_scale = 0.5f;
    }
  };
  const Opened o(options);
  EXPECT_EQ(o.ops(0), (Names{"embed", "scale"}));
  EXPECT_EQ(o.ops(1), (Names{"rms_norm", "matmul", "matmul", "silu", "matmul", "add"}));
  EXPECT_EQ(o.ops(2), (Names{"matmul", "matmul", "matmul", "rope", "rope", "attend", "matmul", "rms_norm", "add",
                             "matmul", "matmul", "silu", "matmul", "rms_norm", "add"}));
  EXPECT_EQ(o.ops(3), (Names{"rms_norm", "matmul", "matmul", "matmul", "rope", "rope", "attend", "matmul", "matmul",
                             "silu", "matmul", "scale", "add", "scale", "add"}));
}

TEST(Program, MixersWithStates) {
  const Names network{"add", "rms_norm", "matmul", "matmul", "silu", "matmul", "add"};
  const auto ops = [](Mixer mixer, std::vector<Role> optional = {}) {
    SmallOptions options;
    options.optional = std::move(optional);
    options.shape = [mixer](std::uint32_t, LayerKind& kind) {
      kind.mixer = mixer;
      kind.attention_gate = mixer == Mixer::attention;
      kind.conv_taps = 4;
      kind.state_heads = 4;
      kind.state_key_heads = 2;
      kind.state_key_dim = 8;
      kind.state_value_dim = 16;
    };
    return Opened(options).ops(1);
  };
  const auto with_network = [&](Names names) {
    names.insert(names.end(), network.begin(), network.end());
    return names;
  };
  EXPECT_EQ(ops(Mixer::short_conv),
            with_network({"rms_norm", "matmul", "matmul", "matmul", "mul", "convolve", "mul", "matmul"}));
  EXPECT_EQ(ops(Mixer::delta_net), with_network({"rms_norm", "matmul", "matmul", "matmul", "matmul", "matmul", "matmul",
                                                 "convolve", "silu", "silu", "silu", "decay", "unit_heads",
                                                 "unit_heads", "recur", "head_norm", "silu", "matmul"}));
  EXPECT_EQ(ops(Mixer::mamba2, {Role::conv_bias}),
            with_network({"rms_norm", "matmul", "matmul", "matmul", "matmul", "matmul", "convolve", "silu", "silu",
                          "silu", "decay", "recur", "silu", "rms_norm", "matmul"}));
  EXPECT_EQ(ops(Mixer::attention), with_network({"rms_norm", "matmul", "matmul", "matmul", "matmul", "rope", "rope",
                                                 "attend", "sigmoid_gate", "matmul"}));
}

TEST(Program, LatentAttentionAndMamba) {
  SmallOptions options;
  options.n_layers = 3;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    kind.ffn = Ffn::none;
    kind.mixer = layer == 0 ? Mixer::latent : layer == 1 ? Mixer::mamba : Mixer::attention_and_mamba2;
    if (layer == 0) {
      kind.n_kv_heads = 1;
      kind.latent_dim = 16;
      kind.head_dim = 24;
      kind.latent_head_dim = 20;
      kind.latent_value_dim = 16;
      kind.query_rank = 12;
      return;
    }
    kind.conv_taps = 4;
    kind.state_heads = 8;
    kind.state_key_heads = 1;
    kind.state_key_dim = 8;
    kind.state_value_dim = layer == 1 ? 1 : 16;
    kind.state_rank = 4;
  };
  const Opened o(options);
  EXPECT_EQ(o.ops(1), (Names{"rms_norm", "matmul", "rms_norm", "matmul", "matmul", "matmul", "matmul", "rms_norm",
                             "matmul", "rope", "attend", "matmul", "matmul", "add"}));
  EXPECT_EQ(o.ops(2), (Names{"rms_norm", "matmul", "matmul", "convolve", "silu", "matmul", "matmul", "matmul", "matmul",
                             "steps", "scan", "silu", "matmul", "add"}));
  EXPECT_EQ(o.ops(3), (Names{"rms_norm", "matmul", "matmul", "matmul", "matmul", "matmul", "convolve", "silu",
                             "silu",     "silu",   "decay",  "recur",  "silu",   "matmul", "matmul",   "matmul",
                             "matmul",   "rope",   "rope",   "attend", "matmul", "add",    "add"}));
}

TEST(Program, LayersWithOtherOptionalTensorsHaveOtherOps) {
  SmallOptions options;
  options.biases = true;
  const Opened with(options);
  EXPECT_TRUE(with.program.of_stage(1).ops[1].has_bias);
  EXPECT_FALSE(Opened().program.of_stage(1).ops[1].has_bias);
}

TEST(Program, TheScheduleIsEverySegmentInOrderOfUse) {
  for (const bool tied : {true, false}) {
    SmallOptions options;
    options.tied = tied;
    const Opened o(options);
    std::vector<Role> roles;
    std::uint32_t last = ~0u;
    for (const std::uint32_t segment : o.program.schedule()) {
      const TensorEntry& t = *matrix_of(o.tables, segment);
      if (roles.empty() || roles.back() != t.role || segment != last + 1) roles.push_back(t.role);
      last = segment;
    }
    const std::vector<Role> layer{Role::attn_q,   Role::attn_k, Role::attn_v,  Role::attn_o,
                                  Role::ffn_gate, Role::ffn_up, Role::ffn_down};
    std::vector<Role> want = layer;
    want.insert(want.end(), layer.begin(), layer.end());
    want.push_back(tied ? Role::token_embd : Role::head);
    EXPECT_EQ(roles, want);
    // A pass may take a part of it.
    const ScheduleRange first = o.program.range(1, 2), second = o.program.range(2, 3), head = o.program.range(3, 4);
    EXPECT_EQ(first.begin, 0u);
    EXPECT_EQ(first.end, second.begin);
    EXPECT_EQ(second.end, head.begin);
    EXPECT_EQ(head.end, o.program.schedule().size());
    EXPECT_EQ(matrix_of(o.tables, o.program.schedule()[second.begin])->stage, 2u);
  }
}

}  // namespace
}  // namespace qsf::test
