// The threads that a module lends to its session: several where its memory is shared, else the caller's alone.
#pragma once

#include <cstdint>

#include "qsf/engine.h"

namespace qsf {

/// `n` threads, the caller's among them, as the first call says; later ones give the same.
Workers lend_workers(std::uint32_t n);
/// Ends them. What is still computed, the caller's thread does.
void end_workers();

}  // namespace qsf
