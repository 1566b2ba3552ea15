// llama.cpp's mixtures of types: most matrices have one type, and those whose errors cost most have one of more bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/base/format.h"
#include "qsf/file/layout.h"

namespace qsf::convert {

/// The matrices of a role that have another type than the rest. Layers are counted among those that have the role.
enum class Share : std::uint8_t {
  all,
  first_2,
  first_4,
  first_16th,
  first_8th,
  more,        // the first and the last eighth, and each third layer between them
  grouped,     // all, if at least four heads have the same keys and values
  eight_ways,  // all, if a layer has eight experts
};

struct MixtureRow {
  Role role;
  Share share;
  std::string_view type;
};

struct Mixture {
  std::string_view name;
  std::string_view type;             // of matrices without a row
  std::uint32_t file;                // llama.cpp's number of files of it (llama_ftype)
  std::span<const MixtureRow> rows;  // the first one that holds for a matrix is its type
};

std::span<const Mixture> mixtures();
/// Returns the mixture with a name in any case; null if there is none.
const Mixture* find_mixture(std::string_view name);

/// A model's facts that mixtures depend on.
struct MixedModel {
  std::uint32_t heads_per_kv = 1, n_experts = 0;
};
/// Returns the type of matrix `i` of the `n` that a model has of a role; empty for the type of the rest.
std::optional<FormatId> type_in(const Mixture& mixture, const MixedModel& model, Role role, std::uint32_t i,
                                std::uint32_t n);

}  // namespace qsf::convert
