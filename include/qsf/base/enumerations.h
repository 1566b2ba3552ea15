// The enumerations of enumerations.def, with their names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// Before the arrays below in every source: GCC for Windows places an array by the definitions before it.
#include "qsf/base/kv_type.h"

namespace qsf {

/// The result of step(), or its need.
enum class Step : std::uint8_t {
#define QSF_STEP(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kStepNames{
#define QSF_STEP(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};

/// The reason why a generation ended.
enum class End : std::uint8_t {
#define QSF_END(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kEndNames{
#define QSF_END(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};
constexpr std::string_view end_name(End end) { return kEndNames[static_cast<std::size_t>(end)]; }

/// The way in which the last hidden states become an embedding.
enum class Pooling : std::uint8_t {
#define QSF_POOLING(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kPoolingNames{
#define QSF_POOLING(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};

/// The language of a grammar.
enum class GrammarKind : std::uint8_t {
#define QSF_GRAMMAR(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kGrammarNames{
#define QSF_GRAMMAR(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};

/// A step from logits to the tokens that one is drawn from.
enum class SamplerKind : std::uint8_t {
#define QSF_SAMPLER(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kSamplerNames{
#define QSF_SAMPLER(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};

/// The kind of a part of an answer.
enum class AnswerPart : std::uint8_t {
#define QSF_PART(name, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kPartNames{
#define QSF_PART(name, meaning) std::string_view(#name),
#include "qsf/base/enumerations.def"
};

/// The purpose of memory.
enum class Region : std::uint8_t {
#define QSF_REGION(name, shown, meaning) name,
#include "qsf/base/enumerations.def"
};
inline constexpr std::array kRegionNames{
#define QSF_REGION(name, shown, meaning) std::string_view(shown),
#include "qsf/base/enumerations.def"
};
constexpr std::string_view region_name(Region region) { return kRegionNames[static_cast<std::size_t>(region)]; }

}  // namespace qsf
