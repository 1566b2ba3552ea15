#include "model/program.h"

#include <algorithm>

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

TEST(Program, StreamsArePredictedBeforeALayerAndCorrectedAfterIt) {
  SmallOptions options;
  options.optional = {Role::stream_scale};
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    kind.streams = 3;
    kind.layer_input = 8;
    kind.norm_place = NormPosition::both;
    kind.laurel_rank = layer == 0 ? 4 : 0;
    kind.gate_cut = layer == 0 ? 1.0f : 0;
  };
  const Opened o(options);
  EXPECT_EQ(o.ops(0), (Names{"embed", "matmul", "layer_inputs", "matmul", "level_streams"}));
  EXPECT_EQ(
      o.ops(1),
      (Names{"rms_norm", "route_streams", "predict", "rms_norm", "matmul",        "matmul",  "rms_norm", "add",
             "matmul",   "matmul",        "matmul",  "rope",     "rope",          "attend",  "matmul",   "rms_norm",
             "add",      "add",           "scale",   "rms_norm", "matmul",        "matmul",  "cut",      "silu",
             "matmul",   "rms_norm",      "add",     "rms_norm", "route_streams", "correct", "copy",     "scale",
             "matmul",   "layer_input",   "silu",    "matmul",   "rms_norm",      "add"}));
  EXPECT_EQ(
      o.ops(2),
      (Names{"rms_norm", "route_streams", "predict",     "rms_norm", "matmul",   "matmul",        "matmul",  "rope",
             "rope",     "attend",        "matmul",      "rms_norm", "add",      "rms_norm",      "matmul",  "matmul",
             "silu",     "matmul",        "rms_norm",    "add",      "rms_norm", "route_streams", "correct", "copy",
             "scale",    "matmul",        "layer_input", "silu",     "matmul",   "rms_norm",      "add"}));
  EXPECT_EQ(o.ops(3), (Names{"matmul", "level_streams", "join_streams", "rms_norm", "hidden", "matmul"}));
}

TEST(Program, LightningAttentionAndNormsOnTheStream) {
  SmallOptions options;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    kind.norm_place = NormPosition::stream;
    kind.network_stream_scale = 2;
    if (layer != 0) return;
    kind.mixer = Mixer::lightning;
    kind.stream_scale = 3;
    kind.state_heads = kind.state_key_heads = 4;
    kind.state_key_dim = kind.state_value_dim = 8;
  };
  const Opened o(options);
  EXPECT_EQ(o.ops(1), (Names{"rms_norm", "matmul", "matmul",   "matmul",       "matmul", "silu",  "silu", "silu",
                             "decay",    "recur",  "rms_norm", "sigmoid_gate", "matmul", "scale", "add",  "rms_norm",
                             "matmul",   "matmul", "silu",     "matmul",       "scale",  "add"}));
  EXPECT_EQ(o.ops(2), (Names{"rms_norm", "matmul", "matmul", "matmul", "rope", "rope", "attend", "matmul", "add",
                             "rms_norm", "matmul", "matmul", "silu", "matmul", "scale", "add"}));
}

TEST(Program, LayersWithOtherOptionalTensorsHaveOtherOps) {
  SmallOptions options;
  options.biases = true;
  const Opened with(options);
  EXPECT_TRUE(with.program.of_stage(1).ops[1].has_bias);
  EXPECT_FALSE(Opened().program.of_stage(1).ops[1].has_bias);
}

TEST(Program, PlainExperts) {
  SmallOptions options;
  options.shape = [](std::uint32_t, LayerKind& kind) {
    kind.mixer = Mixer::none;
    kind.ffn = Ffn::mixture;
    kind.plain_experts = 1;
    kind.n_experts = 4;
    kind.experts_used = 2;
    kind.expert_dim = kind.shared_dim = 32;
  };
  const Opened o(options);
  EXPECT_EQ(o.ops(1), (Names{"rms_norm", "matmul", "route", "experts", "matmul", "silu", "matmul", "add", "add"}));
  std::vector<Role> roles;
  for (const std::uint32_t segment : o.program.schedule()) {
    const TensorEntry& t = *matrix_of(o.tables, segment);
    if (t.stage == 1 && (roles.empty() || roles.back() != t.role)) roles.push_back(t.role);
  }
  EXPECT_EQ(std::ranges::count(roles, Role::expert_up), 4);
  EXPECT_EQ(std::ranges::count(roles, Role::expert_down), 4);
  EXPECT_EQ(std::ranges::count(roles, Role::expert_gate), 0);
}

/// Where transformers' MPNetEncoder.relative_position_bucket goes over to another bucket.
TEST(Program, BucketsOfDistancesAreTransformers) {
  struct Start {
    int distance, bucket;
  };
  const std::vector<Start> of_32{{-128, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8},
                                 {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
                                 {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
                                 {12, 25},   {16, 26},  {23, 27},  {32, 28},  {46, 29},  {64, 30},  {91, 31}};
  const std::vector<Start> of_16{{-128, 7}, {-53, 6}, {-22, 5}, {-9, 4}, {-3, 3},  {-2, 2},  {-1, 1}, {0, 0},
                                 {1, 9},    {2, 10},  {3, 11},  {4, 12}, {10, 13}, {23, 14}, {54, 15}};
  for (const auto& [n, starts] : {std::pair(32u, of_32), std::pair(16u, of_16)}) {
    SmallOptions options;
    options.shape = [n = n](std::uint32_t, LayerKind& kind) {
      kind.bidirectional = 1;
      kind.distance_buckets = n;
      kind.bucket_reach = 128;
    };
    const Opened o(options);
    const std::span<const std::uint8_t> buckets = o.program.of_stage(1).buckets;
    ASSERT_EQ(buckets.size(), 257u);
    std::size_t at = 0;
    for (int distance = -128; distance <= 128; ++distance) {
      while (at + 1 < starts.size() && starts[at + 1].distance <= distance) ++at;
      EXPECT_EQ(buckets[static_cast<std::size_t>(128 + distance)], starts[at].bucket) << n << " " << distance;
    }
  }
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
