#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {};

LentThreads::LentThreads(std::uint32_t, bool) {}
LentThreads::~LentThreads() = default;
Workers LentThreads::workers() { return {}; }
void LentThreads::stepped(Step, double, double) {}
void LentThreads::begun() {}
void LentThreads::end() {}

}  // namespace qsf
