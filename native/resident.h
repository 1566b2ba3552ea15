// What this process keeps in physical memory.
#pragma once

#include <cstdint>

namespace qsf {

/// The most memory this process has had resident at one time, in bytes; 0 where the system does not tell.
std::uint64_t peak_resident_bytes();

/// Gives back the pages of code and constants of every loaded library. They are the files' own, unchanged, and come
/// back when they are used; what only ran once, at load, stays away.
void drop_code_pages();

}  // namespace qsf
