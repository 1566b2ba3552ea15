// A model's tensors by role, and the order in which a pass uses their segments.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/config.h"
#include "qsf/base/half.h"
#include "stream/streamer.h"

namespace qsf {

class Weights {
 public:
  Status init(Arena& arena, const FileTables& tables, const Config& config);

  /// nullptr when the section has no such tensor.
  const TensorEntry* find(std::uint32_t section, Role role) const {
    const std::uint16_t at = index_[section * kRoleNames.size() + static_cast<std::size_t>(role)];
    return at == 0 ? nullptr : &tables_.tensors[at - 1u];
  }
  const FileTables& tables() const { return tables_; }
  /// The tensor whose rows give logits: the head, or the embedding of a tied model.
  const TensorEntry& head() const { return *head_; }
  const TensorEntry& embedding() const { return *find(0, Role::token_embd); }
  std::uint32_t final_section() const { return tables_.header.n_layers + 1; }

  /// Segments in order of use; the last n_head() are used only where logits are wanted.
  std::span<const std::uint32_t> order() const { return order_; }
  std::uint32_t n_head() const { return n_head_; }

  /// Rows [begin, begin + count) of `tensor` that lie in `segment`, and where they begin in its decompressed bytes.
  struct Rows {
    std::uint32_t begin, count;
    std::uint64_t offset;
  };
  Rows rows_in(const TensorEntry& tensor, std::uint32_t segment) const;
  /// The segment of a matrix that holds `row`.
  std::uint32_t segment_of_row(const TensorEntry& tensor, std::uint32_t row) const;

 private:
  FileTables tables_;
  const TensorEntry* head_ = nullptr;
  std::span<std::uint16_t> index_;  // [n_layers + 2, n roles]: 1 + position in the tensor table, 0 for none
  std::span<std::uint32_t> order_;
  std::uint32_t n_head_ = 0;
};

}  // namespace qsf
