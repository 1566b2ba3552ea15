// Sums of what enters products, for calibration. Nothing of a pass depends on them.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/program.h"
#include "qsf/base/workers.h"
#include "qsf/model/observed.h"

namespace qsf {

class Observer {
 public:
  /// Room for every product of the program. Not called, an observer sees nothing.
  Status init(Arena& arena, const Program& program, const Weights& weights);
  bool on() const { return !seen_.empty(); }
  /// Adds `n` columns of `stride` floats that enter the product with a tensor. Every sum takes columns in their order,
  /// so that neither chunks nor workers change a bit of it.
  void add(std::uint32_t section, Role role, const float* x, std::size_t stride, std::uint32_t n,
           const Workers& workers);
  std::span<const Observed> seen() const { return {seen_.data(), seen_.size()}; }

 private:
  struct Input {
    static constexpr std::size_t kArenaBytes = 24;
    std::span<double> sums;
    std::uint32_t first = 0;  // into seen_: the tensor whose product is computed first
  };
  std::span<Observed> seen_;
  std::span<Input> inputs_;      // each shared by some of seen_
  std::span<std::uint32_t> of_;  // the input of each of seen_
};

}  // namespace qsf
