// Encoders of GGML's types with codebooks (IQ1, IQ2, IQ3).
#pragma once

#include <cstddef>
#include <span>

#include "qsf/formats/search.h"

namespace qsf::convert {

/// Searches for the scale, sub-scales and points of a block of 256 weights whose errors cost little.
using EncodeBlock = void(std::span<const float> weights, const BlockCost& cost, std::byte* out);

EncodeBlock to_iq1_s, to_iq1_m, to_iq2_xxs, to_iq2_xs, to_iq2_s, to_iq3_xxs, to_iq3_s;

}  // namespace qsf::convert
