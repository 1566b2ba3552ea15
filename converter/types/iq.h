// Decoders of GGML's types with codebooks (IQ1, IQ2, IQ3): a block of 256 weights to floats. All return true, because
// floats can represent every weight.
#pragma once

#include <cstddef>

namespace qsf::convert {

bool iq1_s(const std::byte* block, float* out);
bool iq1_m(const std::byte* block, float* out);
bool iq2_xxs(const std::byte* block, float* out);
bool iq2_xs(const std::byte* block, float* out);
bool iq2_s(const std::byte* block, float* out);
bool iq3_xxs(const std::byte* block, float* out);
bool iq3_s(const std::byte* block, float* out);

}  // namespace qsf::convert
