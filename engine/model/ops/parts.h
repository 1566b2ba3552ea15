// What several ops have in common.
#pragma once

#include "model/pass.h"

namespace qsf {

/// Rows of `tensor` that lie in a segment, held at `raw`, times the columns of `args`: its x, x_stride, xq, n and
/// y_stride, and its y, where row `first_row` belongs.
void multiply_rows(Pass& pass, const TensorEntry& tensor, std::uint32_t segment, const std::byte* raw, MatmulArgs args,
                   std::uint32_t first_row);

bool is_quantized(const TensorEntry& tensor);

Activate* activation_of(const Kernels& kernels, Activation activation);

/// x = 1 + e^-x, by which a sigmoid divides.
void sigmoid_divisors(const Kernels& kernels, float* x, std::uint32_t n);

/// What LayerKind's gate_limit, gate_slope and up_offset do to `n` gates and what they multiply, before the activation.
void limit_gates(const LayerKind& kind, float* gate, float* up, std::uint32_t n);

}  // namespace qsf
