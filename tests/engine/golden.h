// Golden data by Hugging Face transformers, and models converted in memory.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/conversion/conversion.h"
#include "converter/readers/inputs.h"
#include "engine/host.h"
#include "file/small_file.h"
#include "qsf/base/half.h"
#include "tests/support/farthest.h"
#include "tests/support/paths.h"

namespace qsf::test {

inline const std::string kSource = source_dir();

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
  const Result<convert::LoadedModel> model = convert::open_model(path, true, recipe);
  EXPECT_TRUE(model) << path << ": " << model.error().sentence;
  if (!model) return bytes;
  convert::Options options;
  options.matrices = format;
  Result<FileSpec> source = convert::plan_file(*model, options);
  EXPECT_TRUE(source) << path << ": " << source.error().sentence;
  if (!source) return bytes;
  const Result<std::uint64_t> size = write_file(*source, memory_sink(bytes), {});
  EXPECT_TRUE(size) << path << ": " << size.error().sentence;
  return bytes;
}

}  // namespace qsf::test
