// A model's tensors by section and role, and where their rows lie in segments.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/config.h"
#include "qsf/file/roles.h"
#include "qsf/file/tables.h"

namespace qsf {

/// The matrices of an expert, in order of use.
inline constexpr std::array kExpertMatrices{Role::expert_gate, Role::expert_up, Role::expert_down};

class Weights {
 public:
  Status init(Arena& arena, const FileTables& tables);

  /// nullptr when the section has no such tensor.
  const TensorEntry* find(std::uint32_t section, Role role) const {
    const std::uint16_t at = index_[section * kRoles + role_index(role)];
    return at == 0 ? nullptr : &tables_.tensors[at - 1u];
  }
  bool has(std::uint32_t section, Role role) const { return find(section, role) != nullptr; }
  const FileTables& tables() const { return tables_; }
  const TensorEntry& embedding() const { return *find(0, Role::token_embd); }
  /// The resident segments that hold a section's small tensors.
  struct Segments {
    std::uint32_t first, n;
  };
  Segments vectors_of(std::uint32_t section) const { return vectors_[section]; }

  /// Rows [begin, begin + count) of `tensor` that lie in `segment`, and where they begin in its decompressed bytes.
  struct Rows {
    std::uint32_t begin, count;
    std::uint64_t offset;
  };
  Rows rows_in(const TensorEntry& tensor, std::uint32_t segment) const;
  /// Of a matrix of n_experts experts: the segments that hold the rows of one, and nothing else.
  Segments segments_of_expert(const TensorEntry& tensor, std::uint32_t n_experts, std::uint32_t expert) const;
  /// The segment of a matrix that holds `row`.
  std::uint32_t segment_of_row(const TensorEntry& tensor, std::uint32_t row) const;

 private:
  FileTables tables_;
  std::span<std::uint16_t> index_;  // [n_layers + 2, kRoles]: 1 + position in the tensor table, 0 for none
  std::span<Segments> vectors_;     // [n_layers + 2]
};

}  // namespace qsf
