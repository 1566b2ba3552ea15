// Scaled RoPE as a list of divisors: the inverse frequency theta^(-2i / head_dim) of pair i is divided by divisor i.
#pragma once

#include <cstdint>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::convert {

/// Llama 3.1's scaling: long wavelengths are stretched by `factor`, short ones left alone, those between blended
/// (Hugging Face transformers, modeling_rope_utils.py, rope_type "llama3").
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position_embeddings = 8192;
};

/// [head_dim / 2] divisors. bad_input when a parameter makes no sense.
Result<std::vector<float>> llama3_divisors(const Llama3Scaling& scaling, double rope_theta, std::uint32_t head_dim);
/// The same number for every pair: positions are divided by `factor`.
Result<std::vector<float>> linear_divisors(double factor, std::uint32_t head_dim);

}  // namespace qsf::convert
