// Models as the tests see them: read and written by code that shares nothing with the converter's.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "converter/cli/inspect.h"
#include "converter/conversion/conversion.h"
#include "native/temp.h"
#include "qsf/file/layout.h"
#include "support/gguf.h"
#include "tests/support/paths.h"

namespace qsf::test {

inline const std::string kSource = source_dir();
inline const std::string kData = kSource + "/tests/data/";
inline const std::string kLlama = kData + "llama";
inline const std::string kShared = kSource + "/../shared/data";
inline const std::array<std::string, 6> kFixtures{"tests/data/llama", "tests/data/llama3-rope", "tests/data/mistral",
                                                  "tests/data/qwen2", "tests/data/qwen3",       "models/stories"};

/// A directory that is removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_bytes(const std::string& path, const void* data, std::size_t size);
inline void write_text(const std::string& path, const std::string& text) {
  write_bytes(path, text.data(), text.size());
}
void copy_folder(const std::string& from, const std::string& to);

struct Weights {
  std::uint32_t rows = 0, cols = 0;
  std::vector<float> values;
};

/// Every tensor of a Hugging Face directory by its name there, as floats.
std::map<std::string, Weights> hugging_face_weights(const std::string& directory);
nlohmann::json read_config(const std::string& directory);

/// The name a Hugging Face model has for a role.
std::string hugging_face_name(Role role, std::uint32_t layer);

/// What a written file holds: its tables, and every tensor as floats by section and role.
struct Written {
  qsf::convert::Tables tables;
  Bytes file;
  std::map<std::pair<std::uint32_t, Role>, Weights> weights;

  std::vector<float> section_floats(std::uint32_t tag) const;
  LayerTableBuilder layers() const;
};
Written read_written(const std::string& path);

/// All steps of a conversion to `path`.
Result<convert::Summary> convert_file(const convert::LoadedModel& model, const convert::Options& options,
                                      const std::string& path);

/// Opens and converts, expecting both to work.
Written convert(const std::string& from, const convert::Options& options);
/// The error that opening or converting gives; fails the test when there is none.
Error convert_error(const std::string& from, const convert::Options& options = {});

}  // namespace qsf::test
