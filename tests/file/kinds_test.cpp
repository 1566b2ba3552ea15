// Kinds of layers that cannot be: latent attention, recurrent states and activations.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/file/small_file.h"

namespace qsf::test {
namespace {

using Change = std::function<void(LayerKind&)>;

std::string refusal(LayerKind kind, const Change& change) {
  change(kind);
  const Status status = check_kind(kind);
  return status ? std::string() : std::string(status.error().sentence);
}

LayerKind latent() {
  LayerKind kind = usual_kind({});
  kind.mixer = Mixer::latent;
  kind.n_kv_heads = 1;
  kind.latent_dim = 32;
  kind.rope_dims = 8;
  kind.head_dim = 40;
  kind.latent_head_dim = 24;
  kind.latent_value_dim = 16;
  return kind;
}

TEST(Kinds, OfLatentAttention) {
  const auto refused = [](const Change& change) { return refusal(latent(), change); };
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_EQ(refused([](LayerKind& k) { k.n_kv_heads = 2; }),
            "2 keys of 40 are not one of latent_dim 32 and rope_dims 8");
  EXPECT_EQ(refused([](LayerKind& k) { k.head_dim = 41; }),
            "1 keys of 41 are not one of latent_dim 32 and rope_dims 8");
  EXPECT_EQ(refused([](LayerKind& k) { k.latent_head_dim = 8; }),
            "latent heads of 8 with rope_dims 8 and values of 16");
  EXPECT_EQ(refused([](LayerKind& k) { k.latent_value_dim = 0; }),
            "latent heads of 24 with rope_dims 8 and values of 0");
  EXPECT_EQ(refused([](LayerKind& k) { k.latent_head_dim = kMaxDim; }),
            "n_heads 4 times heads of 1048576 and values of 16 is more than 1048576");
  EXPECT_EQ(refused([](LayerKind& k) { k.latent_value_dim = 20; }),
            "latent_dim 32 and latent_value_dim 20 must be multiples of 16");
  EXPECT_EQ(refused([](LayerKind& k) { k.alibi = 1; }),
            "latent attention has no alibi, no kv_from and no later positions");
  EXPECT_EQ(refused([](LayerKind& k) { k.latent_dim = kMaxDim + 1; }),
            "latent_dim is 1048577; it must be 0 to 1048576");
}

TEST(Kinds, OfStates) {
  LayerKind kind = usual_kind({});
  kind.mixer = Mixer::mamba;
  kind.conv_taps = 4;
  kind.state_heads = 64;
  kind.state_key_heads = kind.state_value_dim = 1;
  kind.state_key_dim = 8;
  kind.state_rank = 4;
  const auto refused = [&](const Change& change) { return refusal(kind, change); };
  const std::string none;
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_EQ(refused([](LayerKind& k) { k.state_rank = 0; }),
            "a mamba of 64 channels of 1, 1 key heads of 8 and a rank of 0");
  EXPECT_NE(refused([](LayerKind& k) { k.state_value_dim = 2; }), none);
  EXPECT_NE(refused([](LayerKind& k) { k.state_key_heads = 2; }), none);
  EXPECT_NE(refused([](LayerKind& k) {
              k.state_heads = 1u << 18;
              k.state_key_dim = 16;
            }),
            none);
  kind.mixer = Mixer::attention_and_mamba2;
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_NE(refused([](LayerKind& k) { k.residual = Residual::parallel; }), none);
  EXPECT_NE(refused([](LayerKind& k) { k.attention_gate = 1; }), none);
  EXPECT_NE(refused([](LayerKind& k) {
              k.activation = Activation::xielu;
              k.layer_input = 8;
            }),
            none);
}

TEST(Kinds, OfDistancesWindowsAndExperts) {
  LayerKind kind = usual_kind({});
  kind.bidirectional = 1;
  kind.distance_buckets = 32;
  kind.bucket_reach = 128;
  const auto refused = [&](const Change& change) { return refusal(kind, change); };
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_EQ(refused([](LayerKind& k) { k.distance_buckets = 30; }),
            "distance_buckets is 30 and bucket_reach 128; they must be a multiple of 4, and more than its quarter");
  EXPECT_EQ(refused([](LayerKind& k) { k.bucket_reach = 8; }),
            "distance_buckets is 32 and bucket_reach 8; they must be a multiple of 4, and more than its quarter");
  EXPECT_EQ(refused([](LayerKind& k) { k.bidirectional = 0; }),
            "distance_buckets are of attention that sees later positions");
  EXPECT_EQ(refused([](LayerKind& k) {
              k.window = 4;
              k.window_aligned = 1;
            }),
            "window_aligned is of layers with a window that see no later positions");
  LayerKind other = kind;
  other.n_heads = kind.n_heads * 2;
  const LayerKind both[] = {kind, other};
  const std::uint8_t of_layer[] = {0, 1};
  EXPECT_FALSE(check_layers({{}, both, of_layer}, 32));
  kind = usual_kind({});
  kind.window_aligned = 1;
  EXPECT_EQ(refused([](LayerKind&) {}), "window_aligned is of layers with a window that see no later positions");
  EXPECT_EQ(refused([](LayerKind& k) { k.window = 4; }), "");
  kind = usual_kind({});
  kind.ffn = Ffn::gated_and_mixture;
  kind.n_experts = kind.experts_used = kind.expert_dim = 4;
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_EQ(refused([](LayerKind& k) { k.plain_experts = 1; }), "plain experts are not next to a gated network");
}

TEST(Kinds, OfLightningAttentionAndNormsOnTheStream) {
  LayerKind kind = usual_kind({});
  kind.mixer = Mixer::lightning;
  kind.state_heads = kind.state_key_heads = 4;
  kind.state_key_dim = kind.state_value_dim = 16;
  kind.norm_place = NormPosition::stream;
  kind.stream_scale = 3;
  const auto refused = [&](const Change& change) { return refusal(kind, change); };
  EXPECT_EQ(refused([](LayerKind&) {}), "") << "there is no convolution";
  EXPECT_EQ(kind.conv_channels(64), 0u);
  EXPECT_NE(refused([](LayerKind& k) { k.state_key_heads = 3; }), "");
  EXPECT_NE(refused([](LayerKind& k) { k.mixer = Mixer::mamba2; }), "");
  const char* const sentence = "a parallel layer has neither a norm on sum or stream nor stream scales";
  EXPECT_EQ(refused([](LayerKind& k) { k.residual = Residual::parallel; }), sentence);
  kind.norm_place = NormPosition::before;
  EXPECT_EQ(refused([](LayerKind& k) { k.residual = Residual::parallel; }), sentence);
  kind.stream_scale = 1;
  EXPECT_EQ(refused([](LayerKind& k) { k.residual = Residual::parallel; }), "");
  EXPECT_EQ(refused([](LayerKind& k) {
              k.residual = Residual::parallel;
              k.norm_place = NormPosition::stream;
            }),
            sentence);
}

TEST(Kinds, OfStreamsAndTheirLayers) {
  LayerKind kind = usual_kind({});
  kind.streams = 4;
  kind.laurel_rank = 8;
  kind.gate_cut = 1.5f;
  const auto refused = [&](const Change& change) { return refusal(kind, change); };
  EXPECT_EQ(refused([](LayerKind&) {}), "");
  EXPECT_EQ(refused([](LayerKind& k) { k.streams = 1; }), "streams is 1; it must be 0, or without experts 2 to 8");
  EXPECT_EQ(refused([](LayerKind& k) { k.streams = 9; }), "streams is 9; it must be 0 to 8");
  EXPECT_EQ(refused([](LayerKind& k) {
              k.ffn = Ffn::mixture;
              k.gate_cut = 0;
              k.n_experts = k.experts_used = k.expert_dim = 1;
            }),
            "streams is 4; it must be 0, or without experts 2 to 8");
  EXPECT_EQ(refused([](LayerKind& k) { k.ffn = Ffn::plain; }), "gate_cut is of gated networks alone");
  for (const Change& change :
       {Change([](LayerKind& k) { k.residual = Residual::parallel; }),
        Change([](LayerKind& k) { k.norm_place = NormPosition::after; }),
        Change([](LayerKind& k) { k.bare_mixer = 1; }), Change([](LayerKind& k) { k.mixer = Mixer::none; })}) {
    EXPECT_EQ(refused(change), "laurel_rank is of attention alone, in sequence, with a norm before it");
  }
}

}  // namespace
}  // namespace qsf::test
