// A small file's tables and program, without a session.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "file/open_file.h"
#include "file/small_file.h"
#include "model/program.h"
#include "model/sequence_memory.h"

namespace qsf::test {

/// What it holds points into itself: it stays where it is.
struct Opened {
  explicit Opened(const SmallOptions& options = {})
      : file(small_file(options)), read(open_file(file.bytes)), memory(4 << 20), arena(memory) {
    EXPECT_TRUE(read) << read.error().sentence;
    tables = {read->header, read->layers, read->tensors, read->segments};
    const std::vector<std::byte> no_meta(4);
    const Result<Config> config_read = read_config(read->header, no_meta, read->table.view(), {});
    EXPECT_TRUE(config_read) << config_read.error().sentence;
    config = *config_read;
    EXPECT_TRUE(weights.init(arena, tables));
    const Status built = program.init(arena, config, weights);
    EXPECT_TRUE(built) << built.error().sentence;
  }
  Opened(const Opened&) = delete;

  /// The names of a stage's ops.
  std::vector<std::string_view> ops(std::uint32_t stage) const {
    std::vector<std::string_view> names;
    for (const Op& op : program.of_stage(stage).ops) names.push_back(op.row->name);
    return names;
  }

  SmallFile file;
  Result<OpenFile> read;
  std::vector<std::byte> memory;
  Arena arena;
  FileTables tables;
  Config config;
  Weights weights;
  Program program;
};

}  // namespace qsf::test
