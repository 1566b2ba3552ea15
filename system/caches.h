// The processor's caches.
#pragma once

#include <cstddef>
#include <span>

namespace qsf {

/// Removes these bytes from the processor's caches; memory keeps them. Does nothing if programs may not do this.
void drop_cached(std::span<const std::byte> bytes);

}  // namespace qsf
