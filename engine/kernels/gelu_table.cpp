#include "kernels/gelu_table.h"

#include <cstddef>

#include "qsf/base/exact.h"

namespace qsf {
namespace {

/// x / 2 (1 + tanh u) - x = -x / (1 + e^2u).
constexpr double less_than_relu(double x) {
  constexpr double kTwice = 1.5957691216057308;  // 2 sqrt(2 / pi)
  return -x / (1.0 + exact::exp(kTwice * (x + 0.044715 * x * x * x)));
}

constexpr auto make_table() {
  std::array<float, kGeluSteps * kGeluEnd + 2> table{};
  for (std::size_t i = 0; i < kGeluSteps * kGeluEnd; ++i) {
    table[i] = static_cast<float>(less_than_relu(static_cast<double>(i) / kGeluSteps));
  }
  return table;
}

}  // namespace

constinit const std::array<float, kGeluSteps * kGeluEnd + 2> kGeluTable = make_table();

}  // namespace qsf
