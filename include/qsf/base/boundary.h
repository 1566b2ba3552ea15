// The types of the rows of boundary.def, and the enumerations that hosts see.
#pragma once

#include <cstdint>
#include <string_view>

#include "qsf/base/enumerations.h"

namespace qsf::boundary {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using real = float;
using flag = bool;
using text = std::string_view;
using kv = KvType;
using region = Region;
using place = const void*;

/// The least value of a number that must be above 0.
inline constexpr float kAboveZero = 0x1p-126f;

}  // namespace qsf::boundary
