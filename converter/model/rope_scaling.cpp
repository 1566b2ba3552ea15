#include "converter/model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qsf/base/exact.h"
#include "qsf/base/try.h"
#include "qsf/file/layer_table.h"

namespace qsf::convert {
namespace {

bool sensible(double x) { return x > 1e-6 && x < 1e12; }

}  // namespace

Result<std::vector<float>> llama3_divisors(const Llama3Scaling& s, double rope_theta, std::uint32_t head_dim) {
  if (!sensible(s.factor) || !sensible(s.low_freq_factor) || !sensible(s.high_freq_factor) ||
      !sensible(s.original_max_position_embeddings) || !sensible(rope_theta) ||
      s.high_freq_factor < s.low_freq_factor) {
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
    } else if (wavelength >= shortest && shortest != longest) {
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

Result<RopeForm> proportional_form(double partial, double factor, std::uint32_t dims) {
  RopeForm out;
  QSF_LET(divisors, linear_divisors(factor, dims));
  out.divisors = std::move(divisors);
  const auto turned = static_cast<std::uint32_t>(partial * dims / 2);
  std::fill(out.divisors.begin() + std::min(turned, dims / 2), out.divisors.end(), kNotTurned);
  return out;
}

double yarn_attention(double factor, double m) { return factor > 1 ? 0.1 * m * exact::log(factor) + 1 : 1; }

Result<RopeForm> long_form(const LongScaling& s, std::uint32_t dims) {
  RopeForm out;
  for (const std::span<const double> factors : {s.short_factors, s.long_factors}) {
    if (factors.size() != dims / 2 || !std::ranges::all_of(factors, sensible)) {
      return make_error(ErrorCode::bad_input,
                        "longrope has {} factors, or some that make no sense; RoPE rotates {} pairs", factors.size(),
                        dims / 2);
    }
    for (const double factor : factors) out.divisors.push_back(static_cast<float>(factor));
  }
  if (!sensible(s.factor) || !sensible(s.original_max_position_embeddings) ||
      s.original_max_position_embeddings > kMaxSeqLen || !(s.attention_factor >= 0)) {
    return make_error(ErrorCode::bad_input, "longrope by {} from {} positions makes no sense", s.factor,
                      s.original_max_position_embeddings);
  }
  const double growth =
      s.factor <= 1 ? 1 : std::sqrt(1 + exact::log(s.factor) / exact::log(s.original_max_position_embeddings));
  out.scale = static_cast<float>(s.attention_factor != 0 ? s.attention_factor : growth);
  out.long_from = static_cast<std::uint32_t>(s.original_max_position_embeddings);
  return out;
}

Result<RopeForm> yarn_form(const YarnScaling& s, double rope_theta, std::uint32_t dims) {
  if (!sensible(s.factor) || !sensible(s.original_max_position_embeddings) || !sensible(s.beta_fast) ||
      !sensible(s.beta_slow) || !sensible(rope_theta) || rope_theta <= 1 || !(s.attention_factor >= 0)) {
    return make_error(ErrorCode::bad_input,
                      "YaRN with theta {}, factor {}, original_max_position_embeddings {}, beta_fast {}, beta_slow {} "
                      "makes no sense",
                      rope_theta, s.factor, s.original_max_position_embeddings, s.beta_fast, s.beta_slow);
  }
  // Returns the pair that rotates this many times over the original length.
  const auto pair = [&](double turns) {
    return dims * exact::log(s.original_max_position_embeddings / (turns * 2 * std::numbers::pi)) /
           (2 * exact::log(rope_theta));
  };
  const double low = s.truncate ? std::floor(pair(s.beta_fast)) : pair(s.beta_fast);
  const double high = s.truncate ? std::ceil(pair(s.beta_slow)) : pair(s.beta_slow);
  const double first = std::max(low, 0.0), last = std::min(high, dims - 1.0);
  const double width = last > first ? last - first : 0.001;
  RopeForm out;
  for (std::uint32_t i = 0; i < dims / 2; ++i) {
    const double interpolated = std::clamp((i - first) / width, 0.0, 1.0);
    out.divisors.push_back(static_cast<float>(1 / (interpolated / s.factor + (1 - interpolated))));
  }
  const double growth = s.factor <= 1 ? 1 : 0.1 * exact::log(s.factor) + 1;
  out.scale = static_cast<float>(s.attention_factor != 0 ? s.attention_factor : growth);
  return out;
}

}  // namespace qsf::convert
