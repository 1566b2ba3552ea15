// Regular files, as every source of files opens and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"
#include "system/past_cache.h"

namespace qsf {

/// An open descriptor; `size` is set. Errors: io_error for what is not a regular file, truncated for an empty one.
Result<int> open_regular(const std::string& where, std::uint64_t& size);
/// io_error with what errno says: "cannot read the model file: ...".
Error system_error(const char* doing, const char* what);
/// truncated: the file was longer when it was opened.
Error ended(std::uint64_t at);
/// Reads at least one byte at `at`, blocking.
Result<std::size_t> read_some(int fd, std::uint64_t at, std::span<std::byte> into);
/// Fills `into`.
Status read_all(int fd, std::uint64_t at, std::span<std::byte> into);

/// The memory that the request's whole blocks can be read into in place: empty unless it says so, and lies in its
/// blocks as the bytes lie in the file's.
std::span<std::byte> whole_blocks(const ReadRequest& request, std::uint32_t block);

}  // namespace qsf
