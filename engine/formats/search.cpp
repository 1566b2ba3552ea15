// Scales and codes sought by what their errors cost: one search in the shape of a format's declaration. Every sub-block
// (or the block) is fitted by itself, then the fits are packed, then codes carry their errors to the columns before.
#include "qsf/formats/search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "formats/blocks.h"
#include "formats/sub_scales.h"

namespace qsf {
namespace {

using Weights = std::span<const float>;
using Floats = std::array<float, kMaxBlock>;

constexpr int kFits = 3;             // of a line to its codes, from each beginning
constexpr int kRefits = 2;           // of a block's scale to all of its codes
constexpr float kRound = 0x1.8p23f;  // added and taken, rounds to whole numbers

/// Levels in ascending order, less the format's offset.
struct LevelTable {
  bool whole = false;  // every integer from low to high
  float low = 0, high = 0;
  std::uint32_t n = 0;
  std::array<float, 16> value{};
  std::array<std::uint8_t, 16> code{};
};

/// Codes that may be written: the most negative of 8 bits and, of ternary weights, the fourth are left out.
struct CodeRange {
  int first, last;
};
CodeRange codes_of(const Format& f) {
  constexpr FormatId kScaledTernary = own_type(21);
  const bool ternary = f.packing == Packing::sign_and_zero || f.packing == Packing::trits || f.id == kScaledTernary;
  return {f.code_bits == 8 ? 1 : 0, ternary ? 2 : (1 << f.code_bits) - 1};
}

LevelTable level_table(const Format& f) {
  LevelTable out;
  const CodeRange codes = codes_of(f);
  if (f.levels == Levels::codes) {
    out.whole = true;
    out.low = static_cast<float>(codes.first - f.offset);
    out.high = static_cast<float>(codes.last - f.offset);
    return out;
  }
  for (int code = codes.first; code <= codes.last; ++code) {
    const auto value = static_cast<float>(level(f, static_cast<std::uint8_t>(code)) - f.offset);
    std::uint32_t at = 0;
    while (at < out.n && out.value[at] < value) ++at;
    if (at < out.n && out.value[at] == value) continue;
    for (std::uint32_t i = out.n; i > at; --i) {
      out.value[i] = out.value[i - 1];
      out.code[i] = out.code[i - 1];
    }
    out.value[at] = value;
    out.code[at] = static_cast<std::uint8_t>(code);
    ++out.n;
  }
  out.low = out.value[0];
  out.high = out.value[out.n - 1];
  return out;
}

void nearest_levels(const LevelTable& table, std::span<float> v) {
  if (table.whole) {
    for (float& x : v) {
      const float inside = x > table.low ? (x < table.high ? x : table.high) : table.low;
      x = (inside + kRound) - kRound;
    }
    return;
  }
  Floats at;
  for (std::size_t i = 0; i < v.size(); ++i) at[i] = table.low;
  for (std::uint32_t k = 1; k < table.n; ++k) {
    const float middle = 0.5f * (table.value[k - 1] + table.value[k]), step = table.value[k] - table.value[k - 1];
    for (std::size_t i = 0; i < v.size(); ++i) at[i] += v[i] > middle ? step : 0.0f;
  }
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = at[i];
}

float nearest_level(const LevelTable& table, float v) {
  nearest_levels(table, {&v, 1});
  return v;
}

std::uint8_t code_of(const Format& f, const LevelTable& table, float l) {
  if (table.whole) return static_cast<std::uint8_t>(static_cast<int>(l) + f.offset);
  std::uint32_t k = 0;
  while (k + 1 < table.n && table.value[k] < l) ++k;
  return table.code[k];
}

/// Weights are scale * level + minimum.
struct Line {
  float scale = 0, minimum = 0;
};

/// How lines of a format may lie.
struct LineRules {
  const LevelTable* table;
  bool minimum;   // it has one
  bool positive;  // scales are at least 0, minima at most 0
};

bool has_minima(const Format& f) { return f.has_min(); }

struct Sums {
  double n = 0, l = 0, ll = 0, w = 0, wl = 0, error = 0;
};

/// Levels of weights against a line, and what is needed to fit the next.
Sums levels_against(const LineRules& rules, Weights weights, Weights cost, Line line, std::span<float> levels) {
  const float inverse = line.scale == 0.0f ? 0.0f : 1.0f / line.scale;
  for (std::size_t i = 0; i < weights.size(); ++i) levels[i] = (weights[i] - line.minimum) * inverse;
  nearest_levels(*rules.table, levels.first(weights.size()));
  Sums out;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float e = weights[i] - (line.scale * levels[i] + line.minimum);
    const float cl = cost[i] * levels[i], cw = cost[i] * weights[i];
    out.n += double{cost[i]};
    out.l += double{cl};
    out.ll += double{cl * levels[i]};
    out.w += double{cw};
    out.wl += double{cw * levels[i]};
    out.error += double{cost[i] * e * e};
  }
  return out;
}

Line fitted(const LineRules& rules, const Sums& s) {
  if (rules.minimum) {
    const double determinant = s.n * s.ll - s.l * s.l;
    if (determinant > 0) {
      const double scale = (s.n * s.wl - s.l * s.w) / determinant;
      const double minimum = (s.w - scale * s.l) / s.n;
      if (!rules.positive || (scale >= 0 && minimum <= 0)) {
        return {static_cast<float>(scale), static_cast<float>(minimum)};
      }
    }
  }
  if (s.ll <= 0 || (rules.positive && s.wl <= 0)) return {};
  return {static_cast<float>(s.wl / s.ll), 0.0f};
}

struct Fit {
  Line line;
  double error = -1;
};

void fit_from(const LineRules& rules, Weights weights, Weights cost, Line line, Fit& best) {
  Floats levels;
  for (int fit = 0; fit <= kFits; ++fit) {
    const Sums sums = levels_against(rules, weights, cost, line, levels);
    if (best.error < 0 || sums.error < best.error) best = {line, sums.error};
    const Line next = fitted(rules, sums);
    if (next.scale == line.scale && next.minimum == line.minimum) return;
    line = next;
  }
}

// Where fits begin: how much of the range, or of the peak, the levels span. Few levels are drawn in further.
constexpr std::array kWide{1.0f, 0.92f, 1.06f, 0.85f};
constexpr std::array kDrawnIn{1.0f, 0.88f, 0.76f, 0.64f, 0.52f, 0.42f, 1.15f};
std::span<const float> beginnings(const LevelTable& table) {
  const bool few = table.high - table.low <= 8.0f;
  return few ? std::span<const float>(kDrawnIn) : std::span<const float>(kWide);
}

Line best_line(const LineRules& rules, Weights weights, Weights cost) {
  const LevelTable& table = *rules.table;
  auto [low, high] = std::ranges::minmax(weights);
  Fit best;
  if (rules.minimum) {
    if (rules.positive) low = std::min(low, 0.0f);
    for (const float below : beginnings(table)) {
      for (const float above : beginnings(table)) {
        const float middle = 0.5f * (low + high), half = 0.5f * (high - low);
        float minimum = middle - half * below;
        if (rules.positive) minimum = std::min(minimum, 0.0f);
        const float scale = (middle + half * above - minimum) / (table.high - table.low);
        fit_from(rules, weights, cost, {scale, minimum - scale * table.low}, best);
      }
    }
    return best.line;
  }
  const float peak = std::fabs(low) > high ? low : high;
  for (const float by : beginnings(table)) {
    fit_from(rules, weights, cost, {peak * by / table.low, 0.0f}, best);
    fit_from(rules, weights, cost, {peak * by / table.high, 0.0f}, best);
  }
  return best.line;
}

float stored(const Format& f, float scale) {
  switch (f.scale.type) {
    case Scale::none:
      return 1.0f;
    case Scale::f16:
      return f16_to_f32(saturated_f16(scale));
    case Scale::f32:
      return std::clamp(scale, -0x1p120f, 0x1p120f);
    case Scale::exponent:
      return power_of_two(std::clamp<std::uint32_t>(exponent_of(std::max(std::fabs(scale), 0x1p-120f)), 2, 252));
  }
  return scale;
}

/// A block's numbers as they are stored, and the levels of its weights.
struct Candidate {
  float scale = 0, minimum = 0;  // the block's; with sub-scales what is taken away
  std::array<int, kMaxSubBlocks> subs{};
  std::array<int, kMaxSubBlocks> sub_minima{};
  Floats levels{};
  double cost = -1;
};

class BlockSearch {
 public:
  BlockSearch(const Format& f, Weights weights, const BlockCost& cost)
      : f_(f), weights_(weights), given_(cost), table_(level_table(f)), rules_{&table_, has_minima(f), false} {
    rules_.positive = f.sub.kind == Sub::k2 || f.sub.kind == Sub::k4;
    for (std::size_t i = 0; i < weights.size(); ++i) cost_[i] = cost.cost.empty() ? 1.0f : cost.cost[i];
  }

  void run(std::byte* out) {
    Candidate found;
    if (f_.sub.kind != Sub::none) {
      begin_subs(found);
    } else if (f_.scale.type == Scale::exponent) {
      begin_power(found);
    } else {
      const Line line = f_.scale.type == Scale::none ? Line{1, 0} : best_line(rules_, weights_, cost());
      found.scale = stored(f_, line.scale);
      found.minimum = f_.has_min() ? f16_to_f32(saturated_f16(line.minimum)) : 0.0f;
    }
    assign(found);
    refine(found);
    write(found, out);
  }

 private:
  std::uint32_t sub() const { return sub_block(f_); }
  std::uint32_t count() const { return f_.block / sub(); }
  Weights cost() const { return std::span(cost_).first(f_.block); }

  Line line_of(const Candidate& c, std::uint32_t j) const {
    if (f_.sub.kind == Sub::none) return {c.scale, c.minimum};
    return {c.scale * static_cast<float>(c.subs[j]), -(c.minimum * static_cast<float>(c.sub_minima[j]))};
  }

  void begin_power(Candidate& c) {
    const Line line = best_line(rules_, weights_, cost());
    Floats levels;
    double least = -1;
    for (const float by : {0.5f, 1.0f, 2.0f}) {
      const float scale = stored(f_, line.scale * by);
      const double error = levels_against(rules_, weights_, cost(), {scale, 0}, levels).error;
      if (least >= 0 && error >= least) continue;
      least = error;
      c.scale = scale;
    }
  }

  /// Every sub-block's line, then the block's numbers from the largest, a little larger or smaller; each packed number
  /// is tried beside its nearest.
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
    for (const float by : {1.0f, 0.96f, 1.04f, 0.9f}) {
      Candidate c;
      c.scale = stored(f_, peak / end * by);
      c.minimum = f_.has_min() ? f16_to_f32(saturated_f16(below / static_cast<float>(top) * (by < 1 ? 1 : by))) : 0.0f;
      double error = 0;
      for (std::uint32_t j = 0; j < count(); ++j) error += pack_line(c, j, lines[j]);
      if (least >= 0 && error >= least) continue;
      least = error;
      best = c;
    }
  }

  double pack_line(Candidate& c, std::uint32_t j, Line line) const {
    const std::uint32_t n = sub();
    const int bias = sub_bias(f_.sub.kind), top = sub_top(f_.sub.kind);
    const auto whole = [](float a, float b, int low, int high) {
      const float v = b == 0 ? 0 : std::clamp(a / b, static_cast<float>(low), static_cast<float>(high));
      return static_cast<int>((v + kRound) - kRound);
    };
    const int scale = whole(line.scale, c.scale, -bias, top - bias), minimum = whole(-line.minimum, c.minimum, 0, top);
    const int spread = f_.has_min() ? 1 : 0;
    Floats levels;
    double least = -1;
    for (int s = std::max(scale - 1, -bias); s <= std::min(scale + 1, top - bias); ++s) {
      for (int m = std::max(minimum - spread, 0); m <= std::min(minimum + spread, top); ++m) {
        const Line tried{c.scale * static_cast<float>(s), -(c.minimum * static_cast<float>(m))};
        const double error =
            levels_against(rules_, weights_.subspan(j * n, n), cost().subspan(j * n, n), tried, levels).error;
        if (least >= 0 && error >= least) continue;
        least = error;
        c.subs[j] = s;
        c.sub_minima[j] = m;
      }
    }
    return least;
  }

  /// What the columns behind `i` carry to it.
  float carried(std::uint32_t i, const Floats& errors) const {
    const float* const row = given_.carry + i * given_.stride;
    std::array<float, 8> sums{};
    std::uint32_t j = i + 1;
    for (; j < f_.block && j % 8 != 0; ++j) sums[0] += row[j] * errors[j];
    for (; j < f_.block; j += 8) {
      for (std::uint32_t k = 0; k < 8; ++k) sums[k] += row[j + k] * errors[j + k];
    }
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  }

  /// The levels of a candidate's lines, from the last column to the first, and what they cost.
  void assign(Candidate& c) const {
    Floats errors;
    c.cost = 0;
    for (std::uint32_t j = count(); j-- > 0;) {
      const Line line = line_of(c, j);
      const std::uint32_t begin = j * sub();
      if (given_.carry == nullptr) {
        c.cost += levels_against(rules_, weights_.subspan(begin, sub()), cost().subspan(begin, sub()), line,
                                 std::span(c.levels).subspan(begin))
                      .error;
        continue;
      }
      const float inverse = line.scale == 0.0f ? 0.0f : 1.0f / line.scale;
      for (std::uint32_t i = begin + sub(); i-- > begin;) {
        const float target = weights_[i] + carried(i, errors);
        c.levels[i] = nearest_level(table_, (target - line.minimum) * inverse);
        const float value = line.scale * c.levels[i] + line.minimum;
        errors[i] = weights_[i] - value;
        const double away = double{target} - double{value};
        c.cost += double{cost_[i]} * away * away;
      }
    }
  }

  /// A vector of the block's columns as its cost sees it.
  void carry_all(const Floats& x, Floats& out) const {
    for (std::uint32_t i = 0; i < f_.block; ++i) out[i] = x[i] + (given_.carry != nullptr ? carried(i, x) : 0.0f);
  }

  /// The block's scale and minimum fitted to all codes at once, and codes to these again.
  void refine(Candidate& best) const {
    if (f_.scale.type != Scale::f16 && f_.scale.type != Scale::f32) return;
    Floats weights, by_scale, by_minimum, x;
    for (std::uint32_t i = 0; i < f_.block; ++i) x[i] = weights_[i];
    carry_all(x, weights);
    const bool subs = f_.sub.kind != Sub::none;
    for (int refit = 0; refit < kRefits; ++refit) {
      for (std::uint32_t i = 0; i < f_.block; ++i) {
        x[i] = best.levels[i] * (subs ? static_cast<float>(best.subs[i / sub()]) : 1.0f);
      }
      carry_all(x, by_scale);
      by_minimum.fill(0.0f);
      if (f_.has_min()) {
        for (std::uint32_t i = 0; i < f_.block; ++i) {
          x[i] = subs ? -static_cast<float>(best.sub_minima[i / sub()]) : 1.0f;
        }
        carry_all(x, by_minimum);
      }
      double aa = 0, ab = 0, bb = 0, aw = 0, bw = 0;
      for (std::uint32_t i = 0; i < f_.block; ++i) {
        const double c = double{cost_[i]}, a = double{by_scale[i]}, b = double{by_minimum[i]}, w = double{weights[i]};
        aa += c * a * a;
        ab += c * a * b;
        bb += c * b * b;
        aw += c * a * w;
        bw += c * b * w;
      }
      Candidate next = best;
      const double determinant = aa * bb - ab * ab;
      if (f_.has_min() && determinant > 1e-9 * aa * bb) {
        next.scale = stored(f_, static_cast<float>((bb * aw - ab * bw) / determinant));
        next.minimum = f16_to_f32(saturated_f16(static_cast<float>((aa * bw - ab * aw) / determinant)));
      } else if (aa > 0) {
        next.scale = stored(f_, static_cast<float>((aw - ab * double{best.minimum}) / aa));
      }
      if (subs && rules_.positive && (next.scale < 0 || next.minimum < 0)) return;
      if (next.scale == best.scale && next.minimum == best.minimum) return;
      assign(next);
      if (next.cost >= best.cost) return;
      best = next;
    }
  }

  void write(const Candidate& c, std::byte* out) const {
    std::fill_n(out, f_.block_bytes, std::byte{0});
    pack_scale(f_.scale, c.scale, out);
    pack_scale(f_.minimum, c.minimum, out);
    std::array<std::uint8_t, kMaxBlock> codes{};
    for (std::uint32_t j = 0; f_.sub.kind != Sub::none && j < count(); ++j) {
      pack_sub_scale(f_, j, static_cast<std::uint32_t>(c.subs[j] + sub_bias(f_.sub.kind)),
                     static_cast<std::uint32_t>(c.sub_minima[j]), out);
    }
    for (std::uint32_t i = 0; i < f_.block; ++i) codes[i] = code_of(f_, table_, c.levels[i]);
    pack_codes(f_, codes, out);
  }

  const Format& f_;
  Weights weights_;
  BlockCost given_;
  LevelTable table_;
  LineRules rules_;
  Floats cost_{};
};

}  // namespace

double block_cost(const Format& f, std::span<const float> weights, const BlockCost& cost, const std::byte* block) {
  BlockValues values;
  unpack_block(f, block, values);
  std::array<double, kMaxBlock> errors{};
  double sum = 0;
  for (std::uint32_t i = f.block; i-- > 0;) {
    const std::size_t j = i / sub_block(f);
    const float product = values.scales[j] * static_cast<float>(level(f, values.codes[i]) - f.offset);
    errors[i] = double{weights[i]} - double{f.has_min() ? product + values.minima[j] : product};
    double away = errors[i];
    for (std::uint32_t k = i + 1; cost.carry != nullptr && k < f.block; ++k) {
      away += double{cost.carry[i * cost.stride + k]} * errors[k];
    }
    sum += (cost.cost.empty() ? 1.0 : double{cost.cost[i]}) * away * away;
  }
  return sum;
}

void search_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  std::array<std::byte, kMaxBlockBytes> plain;
  quantize_block(f, weights, plain.data());
  BlockSearch(f, weights, cost).run(out);
  if (block_cost(f, weights, cost, plain.data()) < block_cost(f, weights, cost, out)) {
    std::copy_n(plain.data(), f.block_bytes, out);
  }
}

}  // namespace qsf
