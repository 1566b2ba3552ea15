// Golden data by Hugging Face transformers, and models converted in memory.
#pragma once

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "converter/inputs.h"
#include "engine/host.h"
#include "file/small_file.h"
#include "qsf/base/half.h"

namespace qsf::test {

inline const std::string kSource = QSF_SOURCE_DIR;

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return nlohmann::json::parse(in, nullptr, false);
}

inline std::vector<float> read_floats(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  EXPECT_TRUE(in) << path;
  std::vector<float> values(static_cast<std::size_t>(in.tellg()) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

/// The model at `path` as a QSF file; an empty format carries the source's own, an empty recipe is the compiled-in one.
inline std::vector<std::byte> converted(const std::string& path, std::optional<FormatId> format,
                                        const std::string& recipe = {}) {
  std::vector<std::byte> bytes;
  const Result<convert::ModelSource> model = convert::open_model(path, true, recipe);
  EXPECT_TRUE(model) << path << ": " << model.error().sentence;
  if (!model) return bytes;
  convert::Options options;
  options.matrices = format;
  Result<FileSource> source = convert::plan_file(*model, options);
  EXPECT_TRUE(source) << path << ": " << source.error().sentence;
  if (!source) return bytes;
  const Result<std::uint64_t> size = write_file(*source, testing::memory_sink(bytes), {});
  EXPECT_TRUE(size) << path << ": " << size.error().sentence;
  return bytes;
}

/// The largest difference of two logit tables, as a share of the largest expected logit.
inline double relative_difference(std::span<const float> logits, std::span<const float> expected) {
  EXPECT_EQ(logits.size(), expected.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(logits.size(), expected.size()); ++i) {
    worst = std::max(worst, std::abs(double{logits[i]} - double{expected[i]}));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return worst / largest;
}

}  // namespace qsf::test
