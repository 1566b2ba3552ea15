// Sums over the inputs of products and over the effects of layers, for calibration. They do not change a pass, except
// that a layer can be skipped.
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
  /// Takes memory for every layer and product of the program. Without this call, an observer sums nothing. Fails with
  /// bad_argument without `room` for products, or out_of_memory.
  Status init(Arena& arena, Observe what, const Program& program, const Weights& weights, const Sizes& sizes,
              const ObservedRoom& room);
  /// Adds the first values of `n` columns, [n, stride], that enter the product with a tensor. Every sum adds columns in
  /// their order, so that neither chunks nor workers change its bits.
  void add(std::uint32_t stage, Role role, const float* x, std::size_t stride, std::uint32_t n, const Workers& workers);
  std::span<const Observed> seen() const { return {seen_.data(), seen_.size()}; }

  /// Take the `n` columns, [n, dim], before and after a stage, and the model's other streams. leave() restores the
  /// columns and the streams of a layer that is skipped.
  void enter(std::uint32_t stage, const float* x, const float* streams, std::uint32_t n);
  void leave(std::uint32_t stage, float* x, float* streams, std::uint32_t n);
  std::span<const ObservedLayer> layers() const { return layers_; }
  void skip(std::optional<std::uint32_t> layer) { skipped_ = layer; }

 private:
  Status init_products(Arena& arena, const Program& program, const Weights& weights, const ObservedRoom& room);
  bool sees(std::uint32_t stage) const { return stage > 0 && stage <= layers_.size(); }

  struct Input {
    static constexpr std::size_t kArenaBytes = 24;
    std::span<float> sums;
    std::uint32_t first = 0;  // index in seen_ of the tensor whose product is computed first
  };
  std::span<Observed> seen_;
  std::span<Input> inputs_;      // each is shared by some of seen_
  std::span<std::uint32_t> of_;  // index in inputs_ for each of seen_
  std::span<ObservedLayer> layers_;
  std::span<float> before_;          // [chunk, dim]: the stage's input
  std::span<float> before_streams_;  // [chunk, width of the other streams]
  std::uint32_t dim_ = 0, streams_width_ = 0;
  std::optional<std::uint32_t> skipped_;
};

}  // namespace qsf
