// Fronts of made files, cached in a folder, so that later processes open the same models without reading their
// tokenizers again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "native/sources/regular_file.h"
#include "qsf/base/result.h"
#include "system/file.h"

namespace qsf {

/// A file or folder that a front was made from. It counts as unchanged while these are.
struct FrontInput {
  std::string path;
  std::uint64_t size = 0, volume = 0, number = 0;
  std::int64_t modified = 0;

  static FrontInput of(const std::string& path, const sys::FileInfo& info);
  /// Whether the path still leads to the same file or folder.
  bool unchanged() const;
  bool operator==(const FrontInput&) const = default;
};

/// A file on a server, and the text that says which content it has.
struct FrontAddress {
  std::string url, identity;
};

struct Front {
  std::vector<FrontInput> inputs;
  std::vector<FrontAddress> addresses;
  std::vector<std::string> warnings;
  std::vector<std::uint8_t> checked;  // as in KeptFront
  std::uint64_t size = 0;             // of the made file
  std::vector<std::byte> bytes;
  OpenFile file;         // of the cache, if the front comes from there
  std::uint64_t at = 0;  // of `bytes` in the file
};

class FrontCache {
 public:
  /// Bytes of all fronts, and their number. The ones that were used longest ago are removed above these limits.
  static constexpr std::uint64_t kMostBytes = 256u << 20;
  static constexpr std::size_t kMostFronts = 64;

  /// `folder` need not exist. Empty: nothing is stored or found.
  explicit FrontCache(std::string folder) : folder_(std::move(folder)) {}
  bool empty() const { return folder_.empty(); }

  /// Returns the front with this key if it is whole and none of its inputs has changed. The caller compares the
  /// addresses.
  std::optional<Front> find(const std::string& key) const;
  /// Keeps a front in place of an earlier one with the key. Errors are io_error.
  Status keep(const std::string& key, const Front& front) const;

 private:
  std::string path_of(const std::string& key) const;
  void limit() const;

  std::string folder_;
};

}  // namespace qsf
