// A folder of computed prompts: saved sequences by model, KV type and token ids. The one that was used longest ago is
// removed first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qsf/engine.h"

namespace qsf {

class PromptCache {
 public:
  /// Makes the folder if it is not there. All files together take at most `most_bytes`. Returns io_error.
  static Result<PromptCache> open(const std::string& folder, std::uint64_t most_bytes);

  /// Restores the computed prompt with the most tokens that begin `ids`, if these are more than `known`, which the
  /// sequence has without it. Returns whether it did. A file that is damaged is removed. Returns an error of the
  /// session only.
  Result<bool> restore(Session& session, std::span<const std::uint32_t> ids, std::uint32_t known) const;
  /// Saves the first n tokens of the sequence, of which `computed` were not computed before. Prompts that begin them
  /// are then removed, and before that others for room. Does nothing for a few tokens, and for more bytes than the
  /// folder may have. Errors: io_error, and those of Session::begin_save().
  Status save(Session& session, std::uint32_t n, std::uint32_t computed) const;

 private:
  struct Entry {
    std::string path;
    std::uint64_t bytes;
    std::int64_t used;  // time of the last use, in the file system's units
  };
  PromptCache(std::string folder, std::uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// Returns the files whose names begin with `prefix`.
  std::vector<Entry> entries(const std::string& prefix) const;

  std::string folder_;
  std::uint64_t most_bytes_;
};

}  // namespace qsf
