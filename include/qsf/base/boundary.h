// The lists of boundary.def as C++: the enumerations that hosts see, with their names, and the types of the rows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qsf/base/kv_type.h"

namespace qsf {

/// The result of step(), or its need.
enum class Step : std::uint8_t {
#define QSF_STEP(name, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kStepNames{
#define QSF_STEP(name, meaning) std::string_view(#name),
#include "qsf/base/boundary.def"
};

/// The reason why a generation ended.
enum class End : std::uint8_t {
#define QSF_END(name, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kEndNames{
#define QSF_END(name, meaning) std::string_view(#name),
#include "qsf/base/boundary.def"
};
constexpr std::string_view end_name(End end) { return kEndNames[static_cast<std::size_t>(end)]; }

/// The way in which the last hidden states become an embedding.
enum class Pooling : std::uint8_t {
#define QSF_POOLING(name, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kPoolingNames{
#define QSF_POOLING(name, meaning) std::string_view(#name),
#include "qsf/base/boundary.def"
};

/// The language of a grammar.
enum class GrammarKind : std::uint8_t {
#define QSF_GRAMMAR(name, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kGrammarNames{
#define QSF_GRAMMAR(name, meaning) std::string_view(#name),
#include "qsf/base/boundary.def"
};

/// A step from logits to the tokens that one is drawn from.
enum class SamplerKind : std::uint8_t {
#define QSF_SAMPLER(name, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kSamplerNames{
#define QSF_SAMPLER(name, meaning) std::string_view(#name),
#include "qsf/base/boundary.def"
};

/// The purpose of memory.
enum class Region : std::uint8_t {
#define QSF_REGION(name, shown, meaning) name,
#include "qsf/base/boundary.def"
};
inline constexpr std::array kRegionNames{
#define QSF_REGION(name, shown, meaning) std::string_view(shown),
#include "qsf/base/boundary.def"
};
constexpr std::string_view region_name(Region region) { return kRegionNames[static_cast<std::size_t>(region)]; }

namespace boundary {

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

}  // namespace boundary
}  // namespace qsf
