// A block's numbers changed one by one to where a row's errors cost less: cyclic descent on e H e^T from where the
// search, which takes every column once, has ended.
#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/numbers.h"
#include "formats/sub_scales.h"
#include "formats/trellis.h"
#include "qsf/formats/search.h"

namespace qsf {
namespace {

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
    for (std::size_t j = chains_.size(); j-- > 0;) take_path(chains_[j], static_cast<std::uint32_t>(j));
    for (std::uint32_t j = chains_.empty() ? f_.block / sub_block(f_) : 0; j-- > 0;) {
      if (f_.sub.kind != Sub::none) fit_sub(j);
      table_.whole ? take_codes<true>(j) : take_codes<false>(j);
    }
    if (!changed_) return false;
    write_numbers(f_, numbers_, block);
    return true;
  }

 private:
  const float* row(std::uint32_t i) const { return moments_.h + i * moments_.stride; }

  /// Adds to weight i.
  void move(std::uint32_t i, float by) {
    const float* const h = row(i);
    for (std::uint32_t k = 0; k < f_.block; k += kFitLanes) {
      put_lanes(&pull_[k], lanes_at(&pull_[k]) - by * lanes_at(h + k));
    }
    moved_[i] += by;
    changed_ = true;
  }

  /// x H y^T of columns [begin, end).
  double product(const Floats& x, const Floats& y, std::uint32_t begin, std::uint32_t end) const {
    double sum = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (x[i] == 0) continue;
      FitLanes of{};
      for (std::uint32_t k = begin; k < end; k += kFitLanes) of += lanes_at(row(i) + k) * lanes_at(&y[k]);
      sum += double{x[i]} * sum_of(of);
    }
    return sum;
  }
  /// Of what multiplies a scale (a) and a minimum (b) in columns [begin, end).
  ScaleSums sums_of(const Floats& a, const Floats& b, std::uint32_t begin, std::uint32_t end) const {
    ScaleSums out{product(a, a, begin, end), 0, 0, 0, 0};
    if (f_.has_min()) {
      out.ab = product(b, a, begin, end);
      out.bb = product(b, b, begin, end);
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      out.ae += double{a[i]} * double{pull_[i]};
      out.be += double{b[i]} * double{pull_[i]};
    }
    return out;
  }
  /// What a step along a and b takes from the cost.
  static double gain(const ScaleSums& s, double a, double b) {
    return 2 * (a * s.ae + b * s.be) - (a * a * s.aa + 2 * a * b * s.ab + b * b * s.bb);
  }

  /// The weights of columns [begin, end) to what the numbers now say.
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

  /// Packed numbers beside those of a sub-block, with its codes.
  void fit_sub(std::uint32_t j) {
    const std::uint32_t begin = j * sub_block(f_), end = begin + sub_block(f_);
    Floats a, b;
    for (std::uint32_t i = begin; i < end; ++i) {
      a[i] = numbers_.scale * numbers_.levels[i];
      b[i] = f_.has_min() ? -numbers_.minimum : 0.0f;
    }
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

  /// Every code to the level that is nearest to where its weight's cost is least.
  template <bool kWhole>
  void take_codes(std::uint32_t j) {
    const Line line = numbers_.line(f_, j);
    const float inverse = inverse_of(line.scale);
    if (inverse == 0) return;
    for (std::uint32_t i = (j + 1) * sub_block(f_); i-- > j * sub_block(f_);) {
      const float by = row(i)[i];
      if (!(by > 0)) continue;
      const float to = numbers_.levels[i] + pull_[i] / by * inverse;
      const float level = nearest_levels<kWhole>(table_, FitLanes{} + to)[0];
      if (level == numbers_.levels[i]) continue;
      move(i, line.scale * (level - numbers_.levels[i]));
      numbers_.levels[i] = level;
    }
  }

  /// A chain's codes to those that cost less together.
  void take_path(const ChainCost& cost, std::uint32_t chain) {
    const std::uint32_t n = chain_columns(f_), begin = chain * n;
    const float inverse = inverse_of(numbers_.scale);
    if (inverse == 0) return;
    std::array<float, kGroup> pull;
    for (std::uint32_t k = 0; k < n; ++k) pull[k] = pull_[begin + k] * inverse;
    const std::span codes = std::span(numbers_.codes).subspan(begin, n);
    if (!improve_path(f_.code_bits, std::span(pull).first(n), cost, codes)) return;
    std::array<std::uint8_t, kGroup> levels;
    std::ranges::copy(codes, levels.begin());
    trellis_levels(f_.code_bits, std::span(levels).first(n));
    for (std::uint32_t k = 0; k < n; ++k) {
      const auto level = static_cast<float>(levels[k] - f_.offset);
      if (level == numbers_.levels[begin + k]) continue;
      move(begin + k, numbers_.scale * (level - numbers_.levels[begin + k]));
      numbers_.levels[begin + k] = level;
    }
  }

  const Format& f_;
  BlockMoments moments_;
  std::span<const ChainCost> chains_;  // of a trellis
  const LevelTable& table_;
  Numbers numbers_;
  std::span<float> pull_, moved_;
  bool changed_ = false;
};

}  // namespace

void improve_blocks(const Format& f, const BlockMoments& moments, std::span<ImprovedBlock> blocks) {
  std::vector<ChainCost> chains;
  for (std::uint32_t i = 0; f.packing == Packing::trellis && i < f.block; i += chain_columns(f)) {
    chains.push_back(chain_cost(f.code_bits, moments.h + i * moments.stride + i, moments.stride));
  }
  for (ImprovedBlock& block : blocks) block.changed = BlockDescent(f, moments, chains, block).run(block.block);
}

bool improve_block(const Format& f, const BlockMoments& moments, std::span<float> pull, std::byte* block,
                   std::span<float> moved) {
  ImprovedBlock one{pull, block, moved};
  improve_blocks(f, moments, {&one, 1});
  return one.changed;
}

}  // namespace qsf
