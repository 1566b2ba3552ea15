#include "wasm/workers.h"

namespace qsf {

struct LentThreads::Pool {};

LentThreads::LentThreads(std::uint32_t, bool) {}
LentThreads::~LentThreads() = default;
void LentThreads::share(LentThreads&) {}
Workers LentThreads::workers() { return {}; }
void LentThreads::stepping() {}
void LentThreads::stepped(Step, double, double) {}
void LentThreads::begun() {}
void LentThreads::end() {}

}  // namespace qsf
