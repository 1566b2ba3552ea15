// Memory that the page cache may take.
#pragma once

#include <cstdint>

namespace qsf {

/// Bytes that this process may still cause to be used, its own and cached ones, before others have to give way: of the
/// machine, and of each control group that the process is in. What it does not tell is no limit.
std::uint64_t memory_room();

}  // namespace qsf
