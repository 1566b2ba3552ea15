// Temporary names of files that are not whole yet.
#pragma once

#include <string>

namespace qsf::sys {

/// Returns a name that cannot be predicted and fits in any folder with a final name; empty if the system has no random
/// numbers.
std::string temporary_name();

/// Removes the files of such names in a folder that nobody has written to for an hour: those of killed processes.
void remove_abandoned(const std::string& folder);

}  // namespace qsf::sys
