#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {};

LentThreads::LentThreads(std::uint32_t) {}
LentThreads::~LentThreads() = default;
Workers LentThreads::workers() { return {}; }
void LentThreads::end() {}

}  // namespace qsf
