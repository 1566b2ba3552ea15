// Zip archives with uncompressed entries (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT) and the 64-bit
// extensions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "converter/files/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Limits on an archive's directory: bytes and entries.
inline constexpr std::uint64_t kMaxZipDirectory = 8 << 20;
inline constexpr std::uint64_t kMaxZipEntries = 1 << 16;

/// The position of an entry's bytes in the file.
struct ZipEntry {
  std::uint64_t begin = 0, size = 0;
};
using ZipEntries = std::map<std::string, ZipEntry, std::less<>>;

/// Returns whether a file starts with the bytes of a zip archive.
bool is_zip(std::span<const std::byte> head);
/// Returns the entries by name; unsupported for compressed, encrypted or divided archives; bad_input or truncated if
/// the directory contradicts itself or the file, or if entries overlap or share a name. All errors name the file.
Result<ZipEntries> read_zip(const Input& file);

}  // namespace qsf::convert
