// Blocks of floats as GGML's types whose codes stand for points of a codebook (IQ1, IQ2, IQ3).
#pragma once

#include <cstddef>
#include <span>

#include "qsf/formats/search.h"

namespace qsf::convert {

/// Scale, sub-scales and points of a block of 256 weights, sought so that its errors cost little.
using EncodeBlock = void(std::span<const float> weights, const BlockCost& cost, std::byte* out);

EncodeBlock to_iq1_s, to_iq1_m, to_iq2_xxs, to_iq2_xs, to_iq2_s, to_iq3_xxs, to_iq3_s;

}  // namespace qsf::convert
