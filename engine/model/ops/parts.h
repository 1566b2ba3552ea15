// The parts that several ops share.
#pragma once

#include "model/pass.h"

namespace qsf {

/// Multiplies the rows of `tensor` in a segment, with bytes at `raw`, with columns. The caller sets x, x_stride, xq, n
/// and y_stride of `args`, and y, the output of row `first_row`.
void multiply_rows(Pass& pass, const TensorEntry& tensor, std::uint32_t segment, const std::byte* raw, MatmulArgs args,
                   std::uint32_t first_row);

/// Multiplies rows of `tensor`, as all fields of `args` state, on the workers.
void multiply(Pass& pass, const TensorEntry& tensor, const MatmulArgs& args);

bool is_quantized(const TensorEntry& tensor);

Activate* activation_of(const Kernels& kernels, Activation activation);

/// x = 1 + e^-x, the divisor of a sigmoid.
void sigmoid_divisors(const Kernels& kernels, float* x, std::uint32_t n);

/// Applies LayerKind's gate_limit, gate_slope and up_offset to `n` gates and their factors, before the activation.
void limit_gates(const LayerKind& kind, float* gate, float* up, std::uint32_t n);

}  // namespace qsf
