// Search for the scales and codes whose errors cost least, one search for all formats. Every sub-block, or the block,
// is fitted by itself; then the fits are packed; then codes carry their errors to the earlier columns.
#include "qsf/formats/search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "formats/blocks.h"
#include "formats/numbers.h"
#include "formats/sub_scales.h"
#include "formats/trellis.h"

namespace qsf {
namespace {

using Weights = std::span<const float>;

constexpr int kRefits = 2;           // of a block's scale to all of its codes
constexpr int kTrellisRefits = 1;    // further refits gain little and take long
constexpr float kRound = 0x1.8p23f;  // adding and subtracting it rounds to whole numbers

/// Numbers that could be stored, with their errors.
struct Candidate : Numbers {
  Floats away{};  // errors plus the errors carried to them
  double cost = -1;
};

class BlockSearch {
 public:
  BlockSearch(const Format& f, const BlockCost& cost)
      : f_(f), given_(cost), table_(level_table(f)), rules_{&table_, f.has_min(), only_positive(f)} {
    for (std::uint32_t i = 0; i < f.block; ++i) cost_[i] = cost.cost.empty() ? 1.0f : cost.cost[i];
    for (std::uint32_t i = 0; f.packing == Packing::trellis && i < f.block; i += chain_columns(f)) {
      const float* const carry = cost.carry == nullptr ? nullptr : cost.carry + i * cost.stride + i;
      chains_.push_back(chain_cost(f.code_bits, this->cost().subspan(i, chain_columns(f)), carry, cost.stride));
    }
  }

  double run(Weights weights, std::byte* out, std::span<float> away = {}) {
    weights_ = weights;
    Candidate found;
    if (f_.packing == Packing::trellis) {
      begin_trellis(found);
    } else if (f_.sub.kind != Sub::none) {
      begin_subs(found);
    } else if (f_.scale.type == Scale::exponent) {
      begin_power(found);
    } else {
      const Line line = f_.scale.type == Scale::none ? Line{1, 0} : best_line(rules_, weights_, cost());
      found.scale = stored_scale(f_, line.scale);
      found.minimum = f_.has_min() ? f16_to_f32(saturated_f16(line.minimum)) : 0.0f;
    }
    assign(found, f_.sub.kind != Sub::none);
    refine(found);
    write_numbers(f_, found, out);
    std::copy_n(found.away.begin(), away.size(), away.begin());
    return found.cost;
  }

  /// Returns the cost of a block's errors.
  double cost_of(std::span<const std::byte> block) const {
    Floats errors, away;
    dequantize_row(f_, block, std::span(errors).first(f_.block));
    for (std::uint32_t i = 0; i < f_.block; ++i) errors[i] = weights_[i] - errors[i];
    carry_all(errors, away);
    FitLanes sum{};
    for (std::uint32_t i = 0; i < f_.block; i += kFitLanes) {
      sum += lanes_at(&away[i]) * lanes_at(&away[i]) * lanes_at(&cost_[i]);
    }
    return sum_of(sum);
  }

 private:
  std::uint32_t sub() const { return sub_block(f_); }
  std::uint32_t count() const { return f_.block / sub(); }
  Weights cost() const { return std::span(cost_).first(f_.block); }

  void begin_power(Candidate& c) {
    const Line line = best_line(rules_, weights_, cost());
    constexpr std::array kBy{0.5f, 1.0f, 2.0f, 2.0f};
    Lines lines{};
    for (std::uint32_t k = 0; k < kFitLanes; ++k) lines.scale[k] = stored_scale(f_, line.scale * kBy[k]);
    const FitLanes errors = errors_of(table_, weights_, cost(), lines);
    std::uint32_t least = 0;
    for (std::uint32_t k = 1; k < kFitLanes; ++k) least = errors[k] < errors[least] ? k : least;
    c.scale = lines.scale[least];
  }

  void begin_trellis(Candidate& c) const {
    FitLanes squares{}, all{};
    for (std::uint32_t i = 0; i < f_.block; i += kFitLanes) {
      squares += lanes_at(&cost_[i]) * lanes_at(&weights_[i]) * lanes_at(&weights_[i]);
      all += lanes_at(&cost_[i]);
    }
    const double of = sum_of(all);
    c.scale = stored_scale(f_, of > 0 ? static_cast<float>(std::sqrt(sum_of(squares) / of)) / kTrellisSpread : 0.0f);
  }

  /// Fits every sub-block's line, then the block's numbers to the largest of them, with slightly larger and smaller
  /// variants. For each packed number, the nearest value and its neighbours are tried.
  void begin_subs(Candidate& best) {
    const std::uint32_t n = sub();
    const int bias = sub_bias(f_.sub.kind), top = sub_top(f_.sub.kind);
    std::array<Line, kMaxSubBlocks> lines;
    float peak = 0, below = 0;
    for (std::uint32_t j = 0; j < count(); ++j) {
      lines[j] = best_line(rules_, weights_.subspan(j * n, n), cost().subspan(j * n, n));
      if (std::fabs(lines[j].scale) > std::fabs(peak)) peak = lines[j].scale;
      below = std::max(below, -lines[j].minimum);
    }
    const float end = bias != 0 ? static_cast<float>(-bias) : static_cast<float>(top);
    double least = -1;
    Candidate c;
    for (const float by : {1.0f, 0.96f, 1.04f, 0.9f, 0.93f, 1.08f}) {
      c.scale = stored_scale(f_, peak / end * by);
      c.minimum = f_.has_min() ? f16_to_f32(saturated_f16(below / static_cast<float>(top) * (by < 1 ? 1 : by))) : 0.0f;
      double error = 0;
      for (std::uint32_t j = 0; j < count(); ++j) error += pack_line(c, j, lines[j], weights_.subspan(j * n, n));
      if (least >= 0 && error >= least) continue;
      least = error;
      best = c;
    }
  }

  double pack_line(Candidate& c, std::uint32_t j, Line line, Weights weights) const {
    const std::uint32_t n = sub();
    const int bias = sub_bias(f_.sub.kind), top = sub_top(f_.sub.kind);
    const auto whole = [](float a, float b, int low, int high) {
      const float v = b == 0 ? 0 : std::clamp(a / b, static_cast<float>(low), static_cast<float>(high));
      return static_cast<int>((v + kRound) - kRound);
    };
    const int scale = whole(line.scale, c.scale, -bias, top - bias), minimum = whole(-line.minimum, c.minimum, 0, top);
    // Nine pairs fill three vectors, or three scales fill one; a repeated entry fills the last lane.
    double least = -1;
    for (int away = f_.has_min() ? -1 : 0; away <= (f_.has_min() ? 1 : 0); ++away) {
      const int m = std::clamp(minimum + away, 0, top);
      Lines tried{};
      std::array<int, kFitLanes> packed;
      for (std::uint32_t k = 0; k < kFitLanes; ++k) {
        packed[k] = std::clamp(scale - 1 + static_cast<int>(std::min(k, 2u)), -bias, top - bias);
        tried.scale[k] = c.scale * static_cast<float>(packed[k]);
        tried.minimum[k] = -(c.minimum * static_cast<float>(m));
      }
      const FitLanes errors = errors_of(table_, weights, cost().subspan(j * n, n), tried);
      for (std::uint32_t k = 0; k < kFitLanes; ++k) {
        if (least >= 0 && double{errors[k]} >= least) continue;
        least = double{errors[k]};
        c.subs[j] = packed[k];
        c.sub_minima[j] = m;
      }
    }
    return least;
  }

  /// Returns the errors that columns [begin, end), a multiple of four, carry to the four columns from `i` on.
  std::array<float, kFitLanes> carried(std::uint32_t i, const Floats& x, std::uint32_t begin, std::uint32_t end) const {
    const float* const row = given_.carry + i * given_.stride;
    std::array<FitLanes, kFitLanes> sums{};
    for (std::uint32_t j = begin; j < end; j += kFitLanes) {
      const FitLanes of = lanes_at(&x[j]);
      for (std::uint32_t k = 0; k < kFitLanes; ++k) sums[k] += lanes_at(row + k * given_.stride + j) * of;
    }
    std::array<float, kFitLanes> out;
    for (std::uint32_t k = 0; k < kFitLanes; ++k) out[k] = (sums[k][0] + sums[k][2]) + (sums[k][1] + sums[k][3]);
    return out;
  }
  /// Returns the error carried to column i + k of four, including errors of the later columns among the four.
  float carried_in(std::uint32_t i, std::uint32_t k, float sum, const Floats& x) const {
    const float* const row = given_.carry + (i + k) * given_.stride;
    for (std::uint32_t j = kFitLanes; --j > k;) sum += row[i + j] * x[i + j];
    return sum;
  }

  /// Computes errors plus carried errors of a block, as its cost weighs them.
  void carry_all(const Floats& x, Floats& out) const {
    for (std::uint32_t i = 0; i < f_.block; i += kFitLanes) {
      if (given_.carry == nullptr) {
        put_lanes(&out[i], lanes_at(&x[i]));
        continue;
      }
      const std::array<float, kFitLanes> sums = carried(i, x, i + kFitLanes, f_.block);
      for (std::uint32_t k = 0; k < kFitLanes; ++k) out[i + k] = x[i + k] + carried_in(i, k, sums[k], x);
    }
  }

  /// Assigns levels of a candidate's lines from the last column to the first, and computes the cost. With `seek`, each
  /// sub-block's packed numbers are searched again for its weights with the carried errors.
  void assign(Candidate& c, bool seek = false) const {
    if (f_.packing == Packing::trellis) return assign_trellis(c);
    if (given_.carry != nullptr) {
      table_.whole ? assign_carrying<true>(c, seek) : assign_carrying<false>(c, seek);
      return;
    }
    FitLanes sum{};
    for (std::uint32_t j = 0; j < count(); ++j) {
      const Line line = c.line(f_, j);
      const float inverse = inverse_of(line.scale);
      for (std::uint32_t i = j * sub(); i < (j + 1) * sub(); i += kFitLanes) {
        const FitLanes above = lanes_at(&weights_[i]) - line.minimum;
        const FitLanes levels = table_.whole ? nearest_levels<true>(table_, above * inverse)
                                             : nearest_levels<false>(table_, above * inverse);
        const FitLanes away = above - line.scale * levels;
        put_lanes(&c.levels[i], levels);
        put_lanes(&c.away[i], away);
        sum += away * away * lanes_at(&cost_[i]);
      }
    }
    c.cost = sum_of(sum);
  }

  /// Computes the weights of a sub-block with the carried errors included, as if the later errors were zero.
  void move_weights(std::uint32_t begin, std::uint32_t end, const Floats& errors, Floats& moved) const {
    for (std::uint32_t i = end; i > begin;) {
      i -= kFitLanes;
      const std::array<float, kFitLanes> behind = carried(i, errors, end, f_.block);
      const std::array<float, kFitLanes> within = carried(i, moved, i + kFitLanes, end);
      for (std::uint32_t k = kFitLanes; k-- > 0;) moved[i + k] = behind[k] - carried_in(i, k, within[k], moved);
    }
  }

  template <bool kWhole>
  void assign_carrying(Candidate& c, bool seek) const {
    Floats errors, moved, weights;
    c.cost = 0;
    for (std::uint32_t j = count(); j-- > 0;) {
      const std::uint32_t begin = j * sub(), end = begin + sub();
      for (std::uint32_t i = begin; i < end; ++i) moved[i] = 0;
      if (end != f_.block) move_weights(begin, end, errors, moved);
      for (std::uint32_t i = begin; i < end; ++i) weights[i] = weights_[i] + moved[i];
      if (seek && end != f_.block) {
        const Weights here = Weights(weights).subspan(begin, sub());
        pack_line(c, j, best_line(rules_, here, cost().subspan(begin, sub())), here);
      }
      const Line line = c.line(f_, j);
      const float inverse = inverse_of(line.scale);
      for (std::uint32_t i = end; i > begin;) {
        i -= kFitLanes;
        const std::array<float, kFitLanes> sums = carried(i, errors, i + kFitLanes, end);
        for (std::uint32_t k = kFitLanes; k-- > 0;) {
          const float target = weights[i + k] + carried_in(i, k, sums[k], errors);
          const float level = nearest_levels<kWhole>(table_, FitLanes{} + (target - line.minimum) * inverse)[0];
          const float value = line.scale * level + line.minimum, away = target - value;
          c.levels[i + k] = level;
          errors[i + k] = weights[i + k] - value;
          c.away[i + k] = away;
          c.cost += double{cost_[i + k] * away * away};
        }
      }
      for (std::uint32_t i = begin; i < end; ++i) errors[i] -= moved[i];
    }
  }

  /// Assigns codes chain by chain from the last, and carries errors as those of sub-blocks.
  void assign_trellis(Candidate& c) const {
    const float inverse = inverse_of(c.scale);
    const std::uint32_t n = chain_columns(f_);
    Floats errors, moved;
    std::array<float, kGroup> by_scale;
    const std::span weights = std::span(by_scale).first(n);
    for (std::uint32_t begin = f_.block; begin > 0;) {
      const std::uint32_t end = std::exchange(begin, begin - n);
      for (std::uint32_t i = begin; i < end; ++i) moved[i] = 0;
      if (given_.carry != nullptr && end != f_.block) move_weights(begin, end, errors, moved);
      for (std::uint32_t k = 0; k < n; ++k) weights[k] = (weights_[begin + k] + moved[begin + k]) * inverse;
      const std::span codes = std::span(c.codes).subspan(begin, n);
      least_path(f_.code_bits, weights, chains_[begin / n], {codes, std::span(c.levels).subspan(begin, n)});
      for (std::uint32_t i = begin; i < end; ++i) errors[i] = weights_[i] - c.scale * c.levels[i];
    }
    carry_all(errors, c.away);
    FitLanes sum{};
    for (std::uint32_t i = 0; i < f_.block; i += kFitLanes) {
      sum += lanes_at(&c.away[i]) * lanes_at(&c.away[i]) * lanes_at(&cost_[i]);
    }
    c.cost = sum_of(sum);
  }

  /// Fits the block's scale and minimum to all codes at once, then the codes to the new numbers.
  void refine(Candidate& best) const {
    if (f_.scale.type != Scale::f16 && f_.scale.type != Scale::f32) return;
    if (f_.packing == Packing::trellis && given_.carry != nullptr) return;  // because descents over the row do the same
    Floats by_scale, by_minimum, x;
    const bool subs = f_.sub.kind != Sub::none;
    by_minimum.fill(0.0f);
    if (f_.has_min()) {
      for (std::uint32_t i = 0; i < f_.block; ++i) {
        x[i] = subs ? -static_cast<float>(best.sub_minima[i / sub()]) : 1.0f;
      }
      carry_all(x, by_minimum);
    }
    const int refits = f_.packing == Packing::trellis ? kTrellisRefits : kRefits;
    for (int refit = 0; refit < refits; ++refit) {
      for (std::uint32_t j = 0; j < count(); ++j) {
        const float by = subs ? static_cast<float>(best.subs[j]) : 1.0f;
        for (std::uint32_t i = j * sub(); i < (j + 1) * sub(); ++i) x[i] = best.levels[i] * by;
      }
      carry_all(x, by_scale);
      FitLanes aa{}, ab{}, bb{}, ae{}, be{};
      for (std::uint32_t i = 0; i < f_.block; i += kFitLanes) {
        const FitLanes a = lanes_at(&by_scale[i]), b = lanes_at(&by_minimum[i]), e = lanes_at(&best.away[i]);
        const FitLanes ca = lanes_at(&cost_[i]) * a, cb = lanes_at(&cost_[i]) * b;
        aa += ca * a;
        ab += ca * b;
        bb += cb * b;
        ae += ca * e;
        be += cb * e;
      }
      Candidate next = best;
      if (!fit_scale(f_, {sum_of(aa), sum_of(ab), sum_of(bb), sum_of(ae), sum_of(be)}, next)) return;
      if (next.scale == best.scale && next.minimum == best.minimum) return;
      assign(next);
      if (next.cost >= best.cost) return;
      best = next;
    }
  }

  const Format& f_;
  Weights weights_;
  BlockCost given_;
  const LevelTable& table_;
  LineRules rules_;
  Floats cost_{};
  std::vector<ChainCost> chains_;  // of a trellis
};

}  // namespace

void search_blocks(const Format& f, const BlockCost& cost, std::span<SearchedBlock> blocks) {
  BlockSearch search(f, cost);
  for (SearchedBlock& block : blocks) block.cost = search.run(block.weights, block.out, block.away);
}

double best_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  BlockSearch search(f, cost);
  const double found = search.run(weights, out);
  if (f.packing == Packing::trellis && cost.cost.empty() && cost.carry == nullptr)
    return found;  // the search began there
  std::array<std::byte, kMaxBlockBytes> plain;
  quantize_block(f, weights, plain.data());
  const double rounded = search.cost_of({plain.data(), f.block_bytes});
  if (!(rounded < found)) return found;
  std::copy_n(plain.data(), f.block_bytes, out);
  return rounded;
}

}  // namespace qsf
