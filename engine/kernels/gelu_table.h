// The difference between GELU (its tanh form) and max(x, 0) as a table over |x|, for gelu_fast.
#pragma once

#include <array>

namespace qsf {

inline constexpr int kGeluSteps = 64;  // per unit
inline constexpr int kGeluEnd = 6;     // beyond it the table is 0
extern const std::array<float, kGeluSteps * kGeluEnd + 2> kGeluTable;

}  // namespace qsf
