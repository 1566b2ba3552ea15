// What qsf-bench measures, as benchmarks to be filtered by name.
#pragma once

namespace qsf::bench {

/// matmul/FORMAT/ISA/ROWSxCOLS/PLACE/columns:N/threads:N, quantize_columns/ISA/COLS and
/// attend/KV/ISA/head_dim:N/positions:N, for every format, instruction set and cache type that this build has.
void register_kernels();

/// h1/..., h2/... and h4/...: the claims about fused products, measured.
void register_hypotheses();

}  // namespace qsf::bench
