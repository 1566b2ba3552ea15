// Improvement of a block's numbers, one at a time, to reduce a row's error e H e^T: cyclic descent that starts from the
// result of the search, which visits every column once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/numbers.h"
#include "formats/sub_scales.h"
#include "formats/trellis.h"
#include "qsf/formats/search.h"

namespace qsf {
namespace {

constexpr int kDescents = 2;         // over a row; trellises have their own number
constexpr std::uint32_t kNear = 32;  // columns

FitLanes sums_of_four(const std::array<FitLanes, kFitLanes>& v) {
  FitLanes out;
  for (std::uint32_t r = 0; r < kFitLanes; ++r) out[r] = (v[r][0] + v[r][2]) + (v[r][1] + v[r][3]);
  return out;
}

class BlockDescent {
 public:
  BlockDescent(const Format& f, const BlockMoments& moments, std::span<const ChainCost> chains,
               const ImprovedBlock& block)
      : f_(f),
        moments_(moments),
        chains_(chains),
        table_(level_table(f)),
        numbers_(read_numbers(f, block.block)),
        pull_(block.pull),
        moved_(block.moved) {
    std::ranges::fill(moved_, 0.0f);
  }

  bool run(std::byte* block) {
    fit_all();
    for (std::size_t j = chains_.size(); j-- > 0;) {
      settle();
      take_path(chains_[j], static_cast<std::uint32_t>(j));
    }
    for (std::uint32_t j = chains_.empty() ? f_.block / sub_block(f_) : 0; j-- > 0;) {
      if (f_.sub.kind != Sub::none) fit_sub(j);
      table_.whole ? take_codes<true>(j) : take_codes<false>(j);
    }
    settle();
    if (!changed_) return false;
    write_numbers(f_, numbers_, block);
    return true;
  }

 private:
  struct Move {
    const float* h;
    float by;
  };

  const float* row(std::uint32_t i) const { return moments_.h + i * moments_.stride; }

  /// Adds to weight i. The effect on nearby columns is computed at once, and on others when the moves are settled.
  void move(std::uint32_t i, float by) {
    const float* const h = row(i);
    for (std::uint32_t k = near_begin_; k < near_end_; k += kFitLanes) {
      put_lanes(&pull_[k], lanes_at(&pull_[k]) - by * lanes_at(h + k));
    }
    moved_[i] += by;
    moves_[n_moves_++] = {h, by};
    changed_ = true;
    if (n_moves_ == moves_.size()) settle();
  }
  void settle() {
    while (n_moves_ % kFitLanes != 0) moves_[n_moves_++] = {moments_.h, 0.0f};
    for (std::uint32_t at = 0; at < n_moves_; at += kFitLanes) {
      settle_four(&moves_[at], 0, near_begin_);
      settle_four(&moves_[at], near_end_, f_.block);
    }
    n_moves_ = 0;
  }
  void settle_four(const Move* moves, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t k = begin; k < end; k += kFitLanes) {
      FitLanes pull = lanes_at(&pull_[k]);
      for (std::uint32_t m = 0; m < kFitLanes; ++m) pull -= moves[m].by * lanes_at(moves[m].h + k);
      put_lanes(&pull_[k], pull);
    }
  }
  /// Settles all moves, then sets the near columns, whose pull each move keeps current.
  void go_to(std::uint32_t begin, std::uint32_t end) {
    settle();
    near_begin_ = begin;
    near_end_ = end;
  }

  /// Returns the sums for a scale's factors (a) and a minimum's factors (b) in columns [begin, end): products with the
  /// symmetric H. Four rows at a time are multiplied with the later columns and with each other.
  ScaleSums sums_of(const Floats& a, const Floats& b, std::uint32_t begin, std::uint32_t end) const {
    return f_.has_min() ? sums_of<true>(a, b, begin, end) : sums_of<false>(a, b, begin, end);
  }
  template <bool kMinimum>
  ScaleSums sums_of(const Floats& a, const Floats& b, std::uint32_t begin, std::uint32_t end) const {
    ScaleSums out{};
    for (std::uint32_t i = begin; i < end; i += kFitLanes) {
      std::array<FitLanes, kFitLanes> behind_a{}, behind_b{};
      for (std::uint32_t k = i + kFitLanes; k < end; k += kFitLanes) {
        const FitLanes ak = lanes_at(&a[k]), bk = lanes_at(&b[k]);
        for (std::uint32_t r = 0; r < kFitLanes; ++r) {
          const FitLanes h = lanes_at(row(i + r) + k);
          behind_a[r] += h * ak;
          if constexpr (kMinimum) behind_b[r] += h * bk;
        }
      }
      FitLanes among_a{}, among_b{};
      for (std::uint32_t r = 0; r < kFitLanes; ++r) {
        const FitLanes h = lanes_at(row(i + r) + i);
        among_a += a[i + r] * h;
        if constexpr (kMinimum) among_b += b[i + r] * h;
      }
      const FitLanes ai = lanes_at(&a[i]), bi = lanes_at(&b[i]), pull = lanes_at(&pull_[i]);
      const FitLanes far_a = sums_of_four(behind_a);
      out.aa += sum_of(ai * (among_a + 2.0f * far_a));
      out.ae += sum_of(ai * pull);
      if constexpr (kMinimum) {
        const FitLanes far_b = sums_of_four(behind_b);
        out.ab += sum_of(bi * (among_a + far_a) + ai * far_b);
        out.bb += sum_of(bi * (among_b + 2.0f * far_b));
        out.be += sum_of(bi * pull);
      }
    }
    return out;
  }
  /// Returns the reduction of the cost by a step along a and b.
  static double gain(const ScaleSums& s, double a, double b) {
    return 2 * (a * s.ae + b * s.be) - (a * a * s.aa + 2 * a * b * s.ab + b * b * s.bb);
  }

  /// Sets the weights of columns [begin, end) to the values of `next`.
  void move_to(const Numbers& next, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t j = i / sub_block(f_);
      const Line was = numbers_.line(f_, j), is = next.line(f_, j);
      const float by = (is.scale * next.levels[i] + is.minimum) - (was.scale * numbers_.levels[i] + was.minimum);
      if (by != 0) move(i, by);
    }
    numbers_ = next;
  }

  void fit_all() {
    if (f_.scale.type != Scale::f16 && f_.scale.type != Scale::f32) return;
    const bool subs = f_.sub.kind != Sub::none;
    Floats a, b;
    for (std::uint32_t i = 0; i < f_.block; ++i) {
      const std::uint32_t j = i / sub_block(f_);
      a[i] = numbers_.levels[i] * (subs ? static_cast<float>(numbers_.subs[j]) : 1.0f);
      b[i] = !f_.has_min() ? 0.0f : subs ? -static_cast<float>(numbers_.sub_minima[j]) : 1.0f;
    }
    const ScaleSums sums = sums_of(a, b, 0, f_.block);
    Numbers next = numbers_;
    if (!fit_scale(f_, sums, next)) return;
    const double scale = double{next.scale} - double{numbers_.scale};
    const double minimum = double{next.minimum} - double{numbers_.minimum};
    if (gain(sums, scale, minimum) > 0) move_to(next, 0, f_.block);
  }

  /// Tries the packed numbers next to those of sub-block j, and its codes with them.
  void fit_sub(std::uint32_t j) {
    const std::uint32_t begin = j * sub_block(f_), end = begin + sub_block(f_);
    Floats a, b;
    for (std::uint32_t i = begin; i < end; ++i) {
      a[i] = numbers_.scale * numbers_.levels[i];
      b[i] = f_.has_min() ? -numbers_.minimum : 0.0f;
    }
    go_to(begin, end);
    const ScaleSums sums = sums_of(a, b, begin, end);
    const int bias = sub_bias(f_.sub.kind), top = sub_top(f_.sub.kind), below = f_.has_min() ? 1 : 0;
    int best_scale = 0, best_minimum = 0;
    double most = 0;
    for (int scale = -1; scale <= 1; ++scale) {
      if (numbers_.subs[j] + scale < -bias || numbers_.subs[j] + scale > top - bias) continue;
      for (int minimum = -below; minimum <= below; ++minimum) {
        if (numbers_.sub_minima[j] + minimum < 0 || numbers_.sub_minima[j] + minimum > top) continue;
        const double gained = gain(sums, scale, minimum);
        if (gained <= most) continue;
        most = gained;
        best_scale = scale;
        best_minimum = minimum;
      }
    }
    if (most == 0) return;
    Numbers next = numbers_;
    next.subs[j] += best_scale;
    next.sub_minima[j] += best_minimum;
    move_to(next, begin, end);
  }

  /// Sets every code to the level nearest to the minimum of its weight's cost.
  template <bool kWhole>
  void take_codes(std::uint32_t j) {
    const Line line = numbers_.line(f_, j);
    const float inverse = inverse_of(line.scale);
    if (inverse == 0) return;
    const std::uint32_t near = std::min(kNear, sub_block(f_));
    for (std::uint32_t i = (j + 1) * sub_block(f_); i-- > j * sub_block(f_);) {
      if ((i + 1) % near == 0) go_to(i + 1 - near, i + 1);
      const float by = row(i)[i];
      if (!(by > 0)) continue;
      const float to = numbers_.levels[i] + pull_[i] / by * inverse;
      const float level = nearest_levels<kWhole>(table_, FitLanes{} + to)[0];
      if (level == numbers_.levels[i]) continue;
      move(i, line.scale * (level - numbers_.levels[i]));
      numbers_.levels[i] = level;
    }
  }

  /// Sets the codes of a chain to codes that together cost less.
  void take_path(const ChainCost& cost, std::uint32_t chain) {
    const std::uint32_t n = chain_columns(f_), begin = chain * n;
    const float inverse = inverse_of(numbers_.scale);
    if (inverse == 0) return;
    std::array<float, kGroup> pull;
    for (std::uint32_t k = 0; k < n; ++k) pull[k] = pull_[begin + k] * inverse;
    const Floats before = numbers_.levels;
    const ChainPath path{std::span(numbers_.codes).subspan(begin, n), std::span(numbers_.levels).subspan(begin, n)};
    if (!improve_path(f_.code_bits, std::span(pull).first(n), cost, path)) return;
    for (std::uint32_t i = begin; i < begin + n; ++i) {
      if (numbers_.levels[i] != before[i]) move(i, numbers_.scale * (numbers_.levels[i] - before[i]));
    }
  }

  const Format& f_;
  BlockMoments moments_;
  std::span<const ChainCost> chains_;  // of a trellis
  const LevelTable& table_;
  Numbers numbers_;
  std::span<float> pull_, moved_;
  std::array<Move, kMaxBlock> moves_;  // moves that are not settled
  std::uint32_t n_moves_ = 0, near_begin_ = 0, near_end_ = 0;
  bool changed_ = false;
};

}  // namespace

int descents(const Format& f) {
  return f.packing == Packing::trellis ? trellis_tables(f.code_bits).descents : kDescents;
}

void improve_blocks(const Format& f, const BlockMoments& moments, std::span<ImprovedBlock> blocks) {
  std::vector<ChainCost> chains;
  for (std::uint32_t i = 0; f.packing == Packing::trellis && i < f.block; i += chain_columns(f)) {
    chains.push_back(chain_cost(f.code_bits, moments.h + i * moments.stride + i, moments.stride));
  }
  for (ImprovedBlock& block : blocks) block.changed = BlockDescent(f, moments, chains, block).run(block.block);
}

}  // namespace qsf
