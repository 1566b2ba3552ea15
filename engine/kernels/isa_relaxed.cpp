#include "kernels/vec/relaxed.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kRelaxedKernels;
constinit const Kernels kRelaxedKernels = make_table("relaxed");

}  // namespace qsf
