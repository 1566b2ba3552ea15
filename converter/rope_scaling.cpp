#include "converter/rope_scaling.h"

#include <numbers>

#include "qsf/base/exact.h"

namespace qsf::convert {
namespace {

bool sensible(double x) { return x > 1e-6 && x < 1e12; }

}  // namespace

Result<std::vector<float>> llama3_divisors(const Llama3Scaling& s, double rope_theta, std::uint32_t head_dim) {
  if (!sensible(s.factor) || !sensible(s.low_freq_factor) || !sensible(s.high_freq_factor) ||
      !sensible(s.original_max_position_embeddings) || !sensible(rope_theta) ||
      s.high_freq_factor <= s.low_freq_factor) {
    return make_error(ErrorCode::bad_input,
                      "llama3 RoPE scaling with theta {}, factor {}, low_freq_factor {}, high_freq_factor {}, "
                      "original_max_position_embeddings {} makes no sense",
                      rope_theta, s.factor, s.low_freq_factor, s.high_freq_factor, s.original_max_position_embeddings);
  }
  const double longest = s.original_max_position_embeddings / s.low_freq_factor;
  const double shortest = s.original_max_position_embeddings / s.high_freq_factor;
  std::vector<float> divisors(head_dim / 2);
  for (std::uint32_t i = 0; i < head_dim / 2; ++i) {
    const double wavelength = 2 * std::numbers::pi * exact::pow(rope_theta, 2.0 * i / head_dim);
    double divisor = 1;
    if (wavelength > longest) {
      divisor = s.factor;
    } else if (wavelength >= shortest) {
      const double smooth = (s.original_max_position_embeddings / wavelength - s.low_freq_factor) /
                            (s.high_freq_factor - s.low_freq_factor);
      divisor = 1 / ((1 - smooth) / s.factor + smooth);
    }
    divisors[i] = static_cast<float>(divisor);
  }
  return divisors;
}

Result<std::vector<float>> linear_divisors(double factor, std::uint32_t head_dim) {
  if (!sensible(factor)) return make_error(ErrorCode::bad_input, "a RoPE scaling factor of {} makes no sense", factor);
  return std::vector<float>(head_dim / 2, static_cast<float>(factor));
}

}  // namespace qsf::convert
