// Several files as one source of bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// A file, and the offset of its first byte in the source.
struct FilePart {
  std::string path;
  std::uint64_t begin = 0;
};

/// Opens files, ascending by their offsets, to be read through the page cache. A request must be within one file.
/// Errors are those of Source::open.
Result<Source> open_files(std::span<const FilePart> parts, const SourceOptions& options);

}  // namespace qsf
