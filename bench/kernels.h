// The measurements of qsf-bench, as benchmarks that are filtered by name.
#pragma once

namespace qsf::bench {

/// Registers read/memory/threads:N, matmul/FORMAT/ISA/ROWSxCOLS/PLACE/columns:N/threads:N, quantize_columns/ISA/COLS
/// and attend/KV/ISA/head_dim:N/positions:N, for every format, instruction set and cache type of this build.
void register_kernels();

/// Registers h1-h2/... and h4/...: measurements of the claims about fused products.
void register_hypotheses();

}  // namespace qsf::bench
