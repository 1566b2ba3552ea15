// Scaled RoPE as a list of divisors: the inverse frequency theta^(-2i / head_dim) of pair i is divided by divisor i.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::convert {

/// Llama 3.1's scaling. Long wavelengths are stretched by `factor`, short ones do not change, and those between are
/// blended (Hugging Face transformers, modeling_rope_utils.py, rope_type "llama3").
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position_embeddings = 8192;
};

struct RopeForm {
  std::vector<float> divisors;  // [dims / 2]; with long_from [dims], the last half for long contexts
  float scale = 1;              // factor of cosines and sines
  std::uint32_t long_from = 0;
  double scores = 1;  // factor of scores, for recipes with yarn_scores
  bool operator==(const RopeForm&) const = default;
};

/// Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", as in transformers.
struct YarnScaling {
  double factor = 1;
  double original_max_position_embeddings = 0;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0;  // 0: 0.1 ln(factor) + 1
  bool truncate = true;
};
/// Returns 0.1 m ln(factor) + 1, or 1 if the factor is at most 1.
double yarn_attention(double factor, double m);
/// Returns the form for `dims` rotated values, or bad_input if a parameter makes no sense.
Result<RopeForm> yarn_form(const YarnScaling& scaling, double rope_theta, std::uint32_t dims);

/// Ding et al., "LongRoPE", as in Phi-3 and Phi-4: a divisor for each pair, with separate divisors for long contexts.
struct LongScaling {
  std::span<const double> short_factors, long_factors;
  double factor = 1;  // longest context divided by the original one
  double original_max_position_embeddings = 0;
  double attention_factor = 0;  // 0: sqrt(1 + ln(factor) / ln(original))
};
Result<RopeForm> long_form(const LongScaling& scaling, std::uint32_t dims);

/// Rotates the first `partial` of `dims` values with the frequencies of all of them, at positions divided by `factor`.
Result<RopeForm> proportional_form(double partial, double factor, std::uint32_t dims);

/// Returns [head_dim / 2] divisors, or bad_input if a parameter makes no sense.
Result<std::vector<float>> llama3_divisors(const Llama3Scaling& scaling, double rope_theta, std::uint32_t head_dim);
/// Returns the same divisor for every pair: positions are divided by `factor`.
Result<std::vector<float>> linear_divisors(double factor, std::uint32_t head_dim);

}  // namespace qsf::convert
