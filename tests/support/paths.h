// Paths of the checkout and of the build that a test program belongs to.
#pragma once

#include <string>

namespace qsf {

/// Returns the path of the checkout's root, without a slash at its end.
std::string source_dir();

/// Returns the path of the folder of the build's programs, without a slash at its end.
std::string program_dir();

}  // namespace qsf
