#include "model/rotation.h"

namespace qsf {

void rotate(float* x, std::uint32_t n, std::uint32_t block, bool back) {
  const auto stages = static_cast<std::uint32_t>(std::countr_zero(block));
  const std::uint32_t halvings = back ? stages / 2 : stages - stages / 2;
  const float scale = 1.0f / static_cast<float>(1u << halvings);
  for (float* const end = x + n; x != end; x += block) {
    for (std::uint32_t apart = block / 2; apart != 0; apart /= 2) {
      for (std::uint32_t first = 0; first < block; first += 2 * apart) {
        for (std::uint32_t i = first; i < first + apart; ++i) {
          const float a = x[i], b = x[i + apart];
          x[i] = a + b;
          x[i + apart] = a - b;
        }
      }
    }
    for (std::uint32_t i = 0; i < block; ++i) x[i] *= scale;
  }
}

}  // namespace qsf
