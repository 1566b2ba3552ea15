// The file in which qsf-run keeps its measurements of this machine's kernels.
#pragma once

#include <string>
#include <string_view>

#include "native/host/kernel_speeds.h"
#include "qsf/base/result.h"

namespace qsf::run {

inline constexpr std::string_view kUsualKernelFile = "~/.cache/qsf/kernels.json", kNoKernelFile = "none";

/// Returns the path that --kernel-speeds means: without the option kUsualKernelFile, or its place in $XDG_CACHE_HOME if
/// that is set. Empty if nothing should be kept or the user has no folder.
std::string kernel_file_of(const std::string& given);

/// Returns the file's measurements of this processor; none if there is no file, or a damaged one, or one of another
/// processor.
KernelSpeeds read_kernel_speeds(const std::string& path);
/// Writes the file anew. Creates its folders.
Status write_kernel_speeds(const std::string& path, const KernelSpeeds& speeds);

}  // namespace qsf::run
