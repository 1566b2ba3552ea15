// A model's tensors by stage and role, and the place of their rows in segments.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/config.h"
#include "qsf/file/roles.h"
#include "qsf/file/tables.h"

namespace qsf {

/// The matrices of an expert in order of use: [expert_dim, dim] twice, then [dim, expert_dim]. A plain one has no gate.
inline constexpr std::array kExpertMatrices{Role::expert_gate, Role::expert_up, Role::expert_down};
inline std::span<const Role> expert_matrices(const LayerKind& kind) {
  return std::span(kExpertMatrices).subspan(kind.plain_experts != 0 ? 1 : 0);
}

class Weights {
 public:
  Status init(Arena& arena, const FileTables& tables);

  /// Returns null if the stage has no tensor of this role.
  const TensorEntry* find(std::uint32_t stage, Role role) const {
    const std::uint16_t at = index_[stage * kRoles + role_index(role)];
    return at == 0 ? nullptr : &tables_.tensors[at - 1u];
  }
  bool has(std::uint32_t stage, Role role) const { return find(stage, role) != nullptr; }
  const FileTables& tables() const { return tables_; }
  const TensorEntry& embedding() const { return *find(0, Role::token_embd); }
  /// The resident segments with a stage's vectors.
  struct Segments {
    std::uint32_t first, n;
  };
  Segments vectors_of(std::uint32_t stage) const { return vectors_[stage]; }

  /// The rows [begin, begin + count) of a tensor in one segment, and the offset of the first in its decompressed bytes.
  struct Rows {
    std::uint32_t begin, count;
    std::uint64_t offset;
  };
  Rows rows_in(const TensorEntry& tensor, std::uint32_t segment) const;
  /// Returns the segments with the rows of one expert, in a matrix of n_experts experts. They have no other rows.
  Segments segments_of_expert(const TensorEntry& tensor, std::uint32_t n_experts, std::uint32_t expert) const;
  /// Returns the segment of a matrix that has row `row`.
  std::uint32_t segment_of_row(const TensorEntry& tensor, std::uint32_t row) const;

 private:
  FileTables tables_;
  std::span<std::uint16_t> index_;  // [n_layers + 2, kRoles]: 1 + index in the tensor table, or 0
  std::span<Segments> vectors_;     // [n_layers + 2]
};

}  // namespace qsf
