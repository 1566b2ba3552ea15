// Models that the tests convert once per process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "native/process.h"
#include "native/temp.h"
#include "tests/support/paths.h"

namespace qsf::test {

using Json = nlohmann::json;

/// models/stories as a .qsf of this type, made by qsf-convert.
inline std::string stories(const std::string& quant_type, const std::string& compress = "none") {
  static const TempDir dir;
  static std::map<std::string, std::string> made;
  std::string& path = made[quant_type + "-" + compress];
  if (path.empty()) {
    path = dir / (quant_type + "-" + compress + ".qsf");
    const Ran ran = run({program("qsf-convert"), source_dir() + "/models/stories", path, "--quant-type", quant_type,
                         "--compress", compress});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
  return path;
}

inline Json golden() { return Json::parse(read_text(source_dir() + "/models/stories/golden.json")); }

inline std::string joined(const std::vector<std::uint32_t>& ids) {
  std::string out;
  for (const std::uint32_t id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

struct RunResult {
  Ran ran;
  Json receipt;
};

/// qsf-run, greedy if it makes a text, with a receipt.
inline RunResult generate(const std::string& model, std::vector<std::string> arguments, bool measure = false) {
  const TempDir dir;
  std::vector<std::string> command{program("qsf-run"), model, "--receipt", dir / "receipt"};
  const bool measures = std::ranges::find(arguments, "--perplexity") != arguments.end();
  if (!measures) command.insert(command.end(), {"--temperature", "0"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  RunResult result;
  result.ran = measure ? measured(command) : run(command);
  EXPECT_EQ(result.ran.code, 0) << result.ran.err;
  if (result.ran.code == 0) result.receipt = Json::parse(read_text(dir / "receipt"), nullptr, false);
  return result;
}

}  // namespace qsf::test
