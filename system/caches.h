// The processor's caches.
#pragma once

#include <cstddef>
#include <span>

namespace qsf {

/// Leaves none of these bytes in the processor's caches; memory has them as they are. Nothing where programs may not
/// say so.
void drop_cached(std::span<const std::byte> bytes);

}  // namespace qsf
