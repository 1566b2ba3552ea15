// Sizes of a configuration: one for all layers, or one for each.
#include "converter/model/sizes.h"

#include <gtest/gtest.h>

#include <string>

namespace qsf::test {
namespace {

/// What GGUF's keys, of which some are other than a usual model's, are read as.
std::string sizes_with(const std::string& key, const convert::Json& value) {
  convert::Json keys{{"block_count", 5},
                     {"embedding_length", 64},
                     {"feed_forward_length", 128},
                     {"context_length", 32},
                     {"attention.head_count", 8}};
  keys[key] = value;
  const convert::Lookup lookup = convert::lookup_in(keys);
  convert::ModelConfig config;
  std::vector<convert::LayerException> by_layer;
  const Status status =
      convert::read_sizes(*convert::find_recipe("llama"), convert::Naming::gguf, lookup, "GGUF", config, by_layer);
  if (!status) return status.error().sentence;
  std::string text = std::to_string(config.n_heads) + "/" + std::to_string(config.n_kv_heads);
  for (const convert::LayerException& exception : by_layer) {
    text += " " + std::to_string(exception.layers.front()) + ":" +
            std::to_string(static_cast<int>(*exception.settings.front().value.number));
  }
  return text;
}

TEST(SizesOfLayers, AreOnesOrOfEveryLayer) {
  const std::string kv = "attention.head_count_kv";
  EXPECT_EQ(sizes_with(kv, 2), "8/2");
  EXPECT_EQ(sizes_with(kv, {2, 2, 2, 2, 2}), "8/2");
  EXPECT_EQ(sizes_with(kv, {0, 4, 0, 4, 0}), "8/4");
  EXPECT_EQ(sizes_with(kv, {2, 4, 2, 2, 8}), "8/2 1:4 4:8");
  EXPECT_EQ(sizes_with(kv, {2, 2}), "GGUF: \"attention.head_count_kv\" lists 2 numbers for 5 layers");
  EXPECT_EQ(sizes_with(kv, {2, 0, 4, 2, 2}),
            "GGUF: \"attention.head_count_kv\" is 0 in some layers, and others have different numbers");
  EXPECT_EQ(sizes_with(kv, {0, 0, 0, 0, 0}),
            "GGUF: \"attention.head_count_kv\" is 0; it must be a whole number from 1 to 1048576");
  EXPECT_EQ(sizes_with(kv, {2, 2, 2, 2, 2.5}),
            "GGUF: \"attention.head_count_kv\" is 2.5; it must be a whole number from 1 to 1048576");
  EXPECT_EQ(sizes_with("embedding_length", {64, 64, 64, 64, 32}),
            "GGUF: \"embedding_length\" is a list; it must be a whole number from 1 to 1048576");
  EXPECT_EQ(sizes_with("block_count", {5}),
            "GGUF: \"block_count\" is a list; it must be a whole number from 1 to 1024");
  EXPECT_EQ(sizes_with("block_count", nullptr),
            "GGUF: \"block_count\" is missing; it must be a whole number from 1 to 1024");
}

}  // namespace
}  // namespace qsf::test
