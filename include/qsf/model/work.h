// What a session computes, as hosts that measure it see it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qsf {

/// What a piece of a pass does.
enum class Work : std::uint8_t { embed, norm, matmul, rope, attention, activate, add, scale, sample, route };
inline constexpr std::array<std::string_view, 10> kWorkNames{"embed",    "norm", "matmul", "rope",   "attention",
                                                             "activate", "add",  "scale",  "sample", "route"};

/// Products of one activation column, as when tokens are made; of many, as in a prompt.
enum class Batch : std::uint8_t { one, many };
inline constexpr std::array<std::string_view, 2> kBatchNames{"one", "many"};

struct KernelCount {
  std::string_view op;    // such as "matmul"
  std::string_view type;  // such as "8bit"; empty where there is one kernel only
  std::uint64_t calls;
};

}  // namespace qsf
