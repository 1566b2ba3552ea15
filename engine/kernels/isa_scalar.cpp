#include "kernels/vec/scalar.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kScalarKernels;
constinit const Kernels kScalarKernels = make_table("scalar");

}  // namespace qsf
