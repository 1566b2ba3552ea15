// The work of a session, for hosts that measure it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qsf {

/// The kind of a piece of a pass.
enum class Work : std::uint8_t { embed, norm, matmul, rope, attention, activate, add, scale, sample, route };
inline constexpr std::array<std::string_view, 10> kWorkNames{"embed",    "norm", "matmul", "rope",   "attention",
                                                             "activate", "add",  "scale",  "sample", "route"};

/// Products of one activation column, as in decode, or of many, as in prefill.
enum class Batch : std::uint8_t { one, many };
inline constexpr std::array<std::string_view, 2> kBatchNames{"one", "many"};

struct KernelCount {
  std::string_view op;    // such as "matmul"
  std::string_view type;  // such as "8bit"; empty if there is only one kernel
  std::uint64_t calls;
};

}  // namespace qsf
