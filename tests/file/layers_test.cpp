// What layers ask of each other: keys and values that one sees of another, inputs and streams that all have.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

class Layers : public ::testing::Test {
 protected:
  /// Four layers: the last two see what the first two keep.
  void SetUp() override {
    const SmallOptions options;
    for (std::uint32_t layer = 0; layer < 4; ++layer) {
      LayerKind kind = usual_kind(options);
      kind.window = layer % 2 == 0 ? 8 : 0;
      kind.kv_from = layer < 2 ? 0 : layer - 1;
      kind.layer_input = 16;
      kinds_.push_back(kind);
      of_layer_.push_back(static_cast<std::uint8_t>(layer));
    }
  }
  void refused(const char* part_of_sentence, const std::function<void()>& change) {
    const std::vector<LayerKind> kept = kinds_;
    ASSERT_TRUE(check_layers({{}, kinds_, of_layer_}, dim_));
    change();
    const Status status = check_layers({{}, kinds_, of_layer_}, dim_);
    kinds_ = kept;
    dim_ = 32;
    ASSERT_FALSE(status) << part_of_sentence;
    const bool possible = error_of(status).code == ErrorCode::unsupported;
    EXPECT_TRUE(possible || error_of(status).code == ErrorCode::bad_section);
    EXPECT_NE(std::string(error_of(status).sentence).find(part_of_sentence), std::string::npos)
        << status.error().sentence;
  }

  std::vector<LayerKind> kinds_;
  std::vector<std::uint8_t> of_layer_;
  std::uint32_t dim_ = 32;
};

TEST_F(Layers, KeysAreThoseOfAnEarlierLayerThatKeepsTheSame) {
  refused("layer 2: kv_from is 3", [&] { kinds_[2].kv_from = 3; });
  refused("layer 2: kv_from is 4", [&] { kinds_[2].kv_from = 4; });
  refused("layer 2 cannot see the keys and values of layer 1", [&] { kinds_[2].kv_from = 2; });
  refused("layer 3 cannot see", [&] { kinds_[3].head_dim = 4; });
  refused("layer 3 cannot see", [&] { kinds_[3].n_kv_heads = 1; });
  refused("layer 3 cannot see", [&] { kinds_[1].mixer = Mixer::none; });
  refused("layer 3 cannot see the keys and values of layer 2", [&] {
    kinds_[3].kv_from = 3;
    kinds_[3].window = 8;
  });
}

TEST_F(Layers, InputsAreAsWideInAll) {
  refused("layer 3: layer_input is 0, that of layer 0 is 16", [&] { kinds_[3].layer_input = 0; });
  refused("4 layers of layer_input 1048576", [&] {
    for (LayerKind& kind : kinds_) kind.layer_input = kMaxDim;
  });
}

TEST_F(Layers, AllHaveTheSameStreams) {
  const auto streams = [&](std::uint32_t n) {
    for (LayerKind& kind : kinds_) kind.streams = n;
  };
  refused("layer 3: streams is 4, that of layer 0 is 0", [&] { kinds_[3].streams = 4; });
  refused("8 streams of 262144: dim must be a multiple of 16, and all at most 1048576", [&] {
    streams(8);
    dim_ = 1u << 18;
  });
  refused("2 streams of 40: dim must be a multiple of 16, and all at most 1048576", [&] {
    streams(2);
    dim_ = 40;
  });
}

// The layer that guesses tokens is the last one: what it needs, and what its model must not have.
TEST(GuessLayer, IsALayerLikeTheOthers) {
  struct Case {
    const char* sentence;
    void (*change)(LayerKind& last, ModelKind& model, std::uint32_t& dim);
  };
  const Case cases[] = {
      {"", [](LayerKind&, ModelKind&, std::uint32_t&) {}},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.mixer = Mixer::none; }},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.mixer = Mixer::attention_and_mamba2; }},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.kv_from = 1; }},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.bidirectional = 1; }},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.streams = 2; }},
      {"cannot guess", [](LayerKind& last, ModelKind&, std::uint32_t&) { last.layer_input = 16; }},
      {"cannot guess", [](LayerKind&, ModelKind& model, std::uint32_t&) { model.headless = 1; }},
      {"cannot guess", [](LayerKind&, ModelKind&, std::uint32_t& dim) { dim = kMaxDim / 2 + 32; }},
  };
  for (const Case& c : cases) {
    ModelKind model;
    model.guess_layer = 1;
    std::vector<LayerKind> kinds(2, usual_kind({}));
    std::uint32_t dim = 32;
    c.change(kinds[1], model, dim);
    const std::uint8_t of_layer[] = {0, 1};
    const Status status = check_layers({model, kinds, of_layer}, dim);
    EXPECT_EQ(bool{status}, *c.sentence == 0);
    if (!status) {
      EXPECT_NE(std::string(error_of(status).sentence).find(c.sentence), std::string::npos)
          << error_of(status).sentence;
    }
  }
  ModelKind model;
  model.guess_layer = 1;
  const std::vector<LayerKind> kinds(1, usual_kind({}));
  const std::uint8_t of_layer[] = {0};
  EXPECT_STREQ(error_of(check_layers({model, kinds, of_layer}, 32)).sentence,
               "guess_layer is 1, but there is one layer");
}

}  // namespace
}  // namespace qsf::test
