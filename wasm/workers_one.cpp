#include "wasm/workers.h"

namespace qsf {

Workers lend_workers(std::uint32_t) { return {}; }
void end_workers() {}

}  // namespace qsf
