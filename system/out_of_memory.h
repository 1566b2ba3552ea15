// The end of a program to which the system refuses memory. Only programs use it, because a library leaves the decision
// to its host.
#pragma once

namespace qsf::sys {

/// Makes the program end when the system refuses memory to `new` on any thread. The end writes `line` to standard
/// error, removes unfinished files, and exits with `code`. `line` is a literal that contains its line end. Call it
/// before anything allocates, in a constructor of priority kBeforeAll.
void end_without_memory(int code, const char* line);
inline constexpr int kBeforeAll = 101;

}  // namespace qsf::sys
