#include "kernels/vec/neon.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kNeonKernels;
constinit const Kernels kNeonKernels = make_table("neon");

}  // namespace qsf
