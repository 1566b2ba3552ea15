#include "kernels/vec/avx512vnni.h"
// The kernels over it.
#include "kernels/table.inl"

namespace qsf {

extern const Kernels kAvx512VnniKernels;
constinit const Kernels kAvx512VnniKernels = make_table("avx512vnni");

}  // namespace qsf
