// Zip archives whose entries are stored as they are (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), with
// the 64-bit extensions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "converter/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Bounds on an archive's directory.
inline constexpr std::uint64_t kMaxZipDirectory = 8 << 20;
inline constexpr std::uint64_t kMaxZipEntries = 1 << 16;

/// Where an entry's bytes lie in the file.
struct ZipEntry {
  std::uint64_t begin = 0, size = 0;
};
using ZipEntries = std::map<std::string, ZipEntry, std::less<>>;

/// By the first bytes of a file.
bool is_zip(std::span<const std::byte> head);
/// Entries by name. unsupported for compressed, encrypted or divided archives, bad_input or truncated when the
/// directory contradicts itself or the file, when entries overlap or share a name; all name the file.
Result<ZipEntries> read_zip(const Input& file);

}  // namespace qsf::convert
