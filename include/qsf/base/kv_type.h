// The stored forms of keys and values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qsf {

/// The stored forms of keys and values.
enum class KvType : std::uint8_t {
#define QSF_KV_TYPE(name, shown, meaning) name,
#include "qsf/base/kv_types.def"
};
inline constexpr std::array kKvNames{
#define QSF_KV_TYPE(name, shown, meaning) std::string_view(shown),
#include "qsf/base/kv_types.def"
};

constexpr std::string_view kv_name(KvType type) { return kKvNames[static_cast<std::size_t>(type)]; }

}  // namespace qsf
