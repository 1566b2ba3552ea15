// Sums of what enters products and of what layers do, for calibration. Nothing of a pass depends on them, but where a
// layer is to be skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "model/program.h"
#include "qsf/base/workers.h"
#include "qsf/model/observed.h"

namespace qsf {

class Observer {
 public:
  struct Sizes {
    std::uint32_t layers, dim, chunk;
  };
  /// Room for every layer and product of the program. Not called, an observer sees nothing.
  Status init(Arena& arena, Observe what, const Program& program, const Weights& weights, const Sizes& sizes,
              const ObservedRoom& room);
  /// Adds `n` columns of `stride` floats that enter the product with a tensor. Every sum takes columns in their order,
  /// so that neither chunks nor workers change a bit of it.
  void add(std::uint32_t section, Role role, const float* x, std::size_t stride, std::uint32_t n,
           const Workers& workers);
  std::span<const Observed> seen() const { return {seen_.data(), seen_.size()}; }

  /// `n` columns of `dim` floats before and after a section; those of a layer to be skipped become again what they
  /// were.
  void enter(std::uint32_t section, const float* x, std::uint32_t n);
  void leave(std::uint32_t section, float* x, std::uint32_t n);
  std::span<const ObservedLayer> layers() const { return layers_; }
  void skip(std::optional<std::uint32_t> layer) { skipped_ = layer; }

 private:
  Status init_products(Arena& arena, const Program& program, const Weights& weights, const ObservedRoom& room);
  bool sees(std::uint32_t section) const { return section > 0 && section <= layers_.size(); }

  struct Input {
    static constexpr std::size_t kArenaBytes = 24;
    std::span<float> sums;
    std::uint32_t first = 0;  // into seen_: the tensor whose product is computed first
  };
  std::span<Observed> seen_;
  std::span<Input> inputs_;      // each shared by some of seen_
  std::span<std::uint32_t> of_;  // the input of each of seen_
  std::span<ObservedLayer> layers_;
  std::span<float> before_;  // [chunk, dim]: what the section got
  std::uint32_t dim_ = 0;
  std::optional<std::uint32_t> skipped_;
};

}  // namespace qsf
