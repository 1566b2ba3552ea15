// Memory from the system, and its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qsf {

/// Returns zeroed pages, which use no memory until they are written, or an empty span if the system refuses. Only
/// give_pages() frees them.
std::span<std::byte> take_pages(std::size_t size);
void give_pages(std::span<std::byte> pages);
/// Gives the memory of all whole pages in `memory` back to the system. Their bytes may become anything.
void release_pages(std::span<std::byte> memory);
/// Requests pages of 2 MiB for the whole ones in `pages`. The memory used is then rounded up to such pages, but never
/// exceeds `pages`.
void prefer_huge_pages(std::span<std::byte> pages);

/// Returns the bytes that this process may still use, including cached bytes that it can displace. The result is the
/// least of the machine's limit and the limits of the process's control groups. A limit that is not reported does not
/// count. On Linux the files of the system are read below `root`.
std::uint64_t memory_room(const std::string& root = {});
/// Returns the percentage of the last ten seconds in which all tasks that had work waited for memory: tasks of the
/// process's control group, or of the machine if the group does not state it. Empty on systems that do not state it.
std::optional<double> memory_pressure(const std::string& root = {});
/// Reads that number from the text of a file of Linux's pressure stall information. Empty for any other text.
std::optional<double> read_pressure(std::string_view text);

/// Returns the largest resident memory of this process so far, in bytes; 0 if the system does not report it.
std::uint64_t peak_resident_bytes();

/// Returns memory that was allocated and freed to the system, as far as whole pages are free.
void give_back_heap();

/// Releases the pages of code and constants of every loaded library. They are unchanged pages of files and are loaded
/// again when used, so that code which ran only at start stays out of memory.
void drop_code_pages();

}  // namespace qsf
