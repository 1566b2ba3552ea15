// Copying out of a mapped file that may become shorter at any moment.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace qsf {

/// Asks for all of a mapped file's pages at once, and for their entries: page by page they take several times as long.
/// Behind the file's end it does nothing.
void populate(std::span<std::byte> mapped);

/// Copies from mapped pages as far as there still are any, and gives how many bytes; -1 where the system cannot. The
/// system copies: it stops at a page behind the file's end, where a copy by the program would be a SIGBUS.
ssize_t copy_mapped(const std::byte* from, std::span<std::byte> to);

}  // namespace qsf
