#include "kernels/vec/simd.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kSimdKernels;
constinit const Kernels kSimdKernels = make_table("simd");

}  // namespace qsf
