#include "kernels/vec/avx2.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kAvx2Kernels;
constinit const Kernels kAvx2Kernels = make_table("avx2");

}  // namespace qsf
