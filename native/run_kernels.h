// The file in which qsf-run keeps what it measured of this machine's kernels.
#pragma once

#include <string>
#include <string_view>

#include "native/kernel_speeds.h"
#include "qsf/base/result.h"

namespace qsf::run {

inline constexpr std::string_view kUsualKernelFile = "~/.cache/qsf/kernels.json", kNoKernelFile = "none";

/// What --kernel-speeds stands for: without it kUsualKernelFile, below $XDG_CACHE_HOME where that is set. Empty where
/// nothing is to be kept or the user has no folder.
std::string kernel_file_of(const std::string& given);

/// What the file says of this processor: nothing where there is none, or one of another processor, or a damaged one.
KernelSpeeds read_kernel_speeds(const std::string& path);
/// Makes it anew, with its folders.
Status write_kernel_speeds(const std::string& path, const KernelSpeeds& speeds);

}  // namespace qsf::run
