// Memory from the system, and its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

/// Returns zeroed pages, which use no memory until they are written, or an empty span if the system refuses. Only
/// give_pages() frees them.
std::span<std::byte> take_pages(std::size_t size);
void give_pages(std::span<std::byte> pages);
/// Requests pages of 2 MiB for the whole ones in `pages`. The memory used is then rounded up to such pages, but never
/// exceeds `pages`.
void prefer_huge_pages(std::span<std::byte> pages);

/// Returns the bytes that this process may still use, including cached bytes that it can displace. The result is the
/// least of the machine's limit and the limits of the process's control groups. A limit that is not reported does not
/// count.
std::uint64_t memory_room();

/// Returns the largest resident memory of this process so far, in bytes; 0 if the system does not report it.
std::uint64_t peak_resident_bytes();

/// Returns memory that was allocated and freed to the system, as far as whole pages are free.
void give_back_heap();

/// Releases the pages of code and constants of every loaded library. They are unchanged pages of files and are loaded
/// again when used, so that code which ran only at start stays out of memory.
void drop_code_pages();

}  // namespace qsf
