// Memory from the system, and what it says of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

/// Zeroed pages, none of which counts until it is written; empty where the system refuses them. Given back by
/// give_pages() only.
std::span<std::byte> take_pages(std::size_t size);
void give_pages(std::span<std::byte> pages);
/// Asks for pages of 2 MiB where these hold whole ones. Of what is written then as much counts as is rounded up to such
/// pages, never more than `pages`.
void prefer_huge_pages(std::span<std::byte> pages);

/// Bytes that this process may still cause to be used, its own and cached ones, before others have to give way: of the
/// machine, and of each control group that the process is in. What it does not tell is no limit.
std::uint64_t memory_room();

/// The most memory this process has had resident at one time, in bytes; 0 where the system does not tell.
std::uint64_t peak_resident_bytes();

/// Gives back the pages of code and constants of every loaded library. They are the files' own, unchanged, and come
/// back when they are used; what only ran once, at load, stays away.
void drop_code_pages();

}  // namespace qsf
