#include "kernels/vec/neondot.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kNeonDotKernels;
constinit const Kernels kNeonDotKernels = make_table("neondot");

}  // namespace qsf
