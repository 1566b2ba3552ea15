#include "formats/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qsf {
namespace {

using Weights = std::span<const float>;

constexpr int kFits = 3;              // of a line to its codes, for each initial line
constexpr std::uint32_t kKept = 8;    // lines that are fitted more than once
constexpr std::uint32_t kTried = 64;  // initial lines at most
constexpr float kNothing = 1e-37f;    // scales up to this count as zero
constexpr float kSame = 1e-4f;        // if two costs differ by less, the smaller scale is taken
constexpr float kWorst = std::numeric_limits<float>::max();

// The part of the range, or of the peak, that the levels of the initial lines span. Few levels have further, narrower
// lines.
constexpr std::array kWide{1.0f, 0.92f, 1.06f, 0.85f, 0.96f, 0.8f};
constexpr std::array kDrawnIn{1.0f, 0.88f, 0.76f, 0.64f, 0.52f, 0.42f, 1.15f};
static_assert(kDrawnIn.size() * kDrawnIn.size() <= kTried);

constexpr std::array kClose{1.0f, 0.96f, 0.92f, 0.88f, 0.84f, 0.8f, 1.06f, 1.14f};  // for lines through zero

std::span<const float> beginnings(const LevelTable& table, bool minimum) {
  const bool few = table.high - table.low <= 8.0f;
  return few ? std::span<const float>(kDrawnIn) : minimum ? std::span<const float>(kWide) : kClose;
}

/// Lines with their costs, in as many vectors as they need.
struct LineSet {
  std::uint32_t n = 0;
  alignas(FitLanes) std::array<float, kTried> scale;
  alignas(FitLanes) std::array<float, kTried> minimum;
  alignas(FitLanes) std::array<float, kTried> cost;

  void add(Line line) {
    scale[n] = line.scale;
    minimum[n++] = line.minimum;
  }
  /// Fills the last vector.
  void pad() {
    while (n % kFitLanes != 0) add({scale[n - 1], minimum[n - 1]});
  }
};

FitLanes lanes_at(const std::array<float, kTried>& of, std::uint32_t i) {
  FitLanes out;
  __builtin_memcpy(&out, of.data() + i, sizeof out);
  return out;
}
void put_lanes(std::array<float, kTried>& of, std::uint32_t i, FitLanes v) {
  __builtin_memcpy(of.data() + i, &v, sizeof v);
}

/// Sums over weights, in units of the scale, of levels (l) and of the differences of weights from them (r).
struct Sums {
  FitLanes l{}, ll{}, r{}, lr{}, rr{};
};

template <bool kWhole, bool kMinimum>
Sums sums_of(const LevelTable& table, Weights weights, Weights cost, FitLanes inverse, FitLanes shift) {
  Sums out;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const FitLanes at = weights[i] * inverse - shift, level = nearest_levels<kWhole>(table, at), left = at - level;
    const FitLanes cl = level * cost[i], cr = left * cost[i];
    out.ll += cl * level;
    out.lr += cr * level;
    out.rr += cr * left;
    if constexpr (kMinimum) {
      out.l += cl;
      out.r += cr;
    }
  }
  return out;
}

/// Fits the scale and minimum of four lines to their codes, and returns the costs with these codes. n is the sum of
/// costs.
template <bool kMinimum>
void fit_to(const Sums& s, FitLanes n, bool positive, FitLanes& scale, FitLanes& minimum, FitLanes& cost) {
  const FitLanes zero{}, one = zero + 1.0f;
  // Lines without a minimum, or whose minimum is not allowed, go through zero.
  const FitLanes whole = s.ll + s.lr + (kMinimum ? minimum / scale * s.l : zero);
  FitLanes by = s.ll > zero ? whole / s.ll - one : -one;
  if (positive) by = by > -one ? by : -one;
  FitLanes moved = kMinimum ? -minimum / scale : zero, after = zero;
  if constexpr (kMinimum) {
    const FitLanes determinant = n * s.ll - s.l * s.l, slope = (n * s.lr - s.l * s.r) / determinant;
    const FitLanes shift = (s.r - slope * s.l) / n;
    auto take = determinant > 1e-6f * n * s.ll;
    if (positive) take = take & (slope >= -one) & (minimum + shift * scale <= zero);
    by = take ? slope : by;
    moved = take ? shift : moved;
    after = take ? minimum + shift * scale : after;
  }
  const FitLanes left = s.rr - by * (2.0f * s.lr - by * s.ll) - moved * (2.0f * s.r - 2.0f * by * s.l - moved * n);
  const auto lives = (scale > kNothing) | (scale < -kNothing);
  cost = lives ? (left > zero ? left : zero) * scale * scale : zero + kWorst;
  minimum = after;
  scale = scale + by * scale;
}

template <bool kWhole, bool kMinimum>
void fit_lines(const LineRules& rules, Weights weights, Weights cost, float n, LineSet& lines) {
  for (std::uint32_t i = 0; i < lines.n; i += kFitLanes) {
    FitLanes scale = lanes_at(lines.scale, i), minimum = lanes_at(lines.minimum, i), costs;
    const auto lives = (scale > kNothing) | (scale < -kNothing);
    const FitLanes inverse = lives ? 1.0f / scale : FitLanes{};
    const Sums sums = sums_of<kWhole, kMinimum>(*rules.table, weights, cost, inverse, minimum * inverse);
    fit_to<kMinimum>(sums, FitLanes{} + n, rules.positive, scale, minimum, costs);
    put_lanes(lines.scale, i, scale);
    put_lanes(lines.minimum, i, minimum);
    put_lanes(lines.cost, i, costs);
  }
}

/// Returns the cheapest lines in order of cost. Lines with equal costs are the same line, so only one of them is kept.
LineSet best_of(const LineSet& lines, std::uint32_t most) {
  std::array<std::uint32_t, kKept> at;
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < lines.n; ++i) {
    const float cost = lines.cost[i];
    std::uint32_t place = n;
    while (place > 0 && cost < lines.cost[at[place - 1]]) --place;
    if (!(cost < kWorst) || place == most || (place > 0 && cost == lines.cost[at[place - 1]])) continue;
    n = std::min(n + 1, most);
    for (std::uint32_t k = n - 1; k > place; --k) at[k] = at[k - 1];
    at[place] = i;
  }
  LineSet out;
  for (std::uint32_t k = 0; k < n; ++k) out.add({lines.scale[at[k]], lines.minimum[at[k]]});
  if (n != 0) out.pad();
  return out;
}

template <bool kWhole, bool kMinimum>
Line fitted_line(const LineRules& rules, Weights weights, Weights cost, LineSet& lines) {
  float n = 0;
  for (const float c : cost) n += c;
  Line best;
  float least = kWorst;
  for (int fit = 0; fit < kFits && lines.n != 0; ++fit) {
    fit_lines<kWhole, kMinimum>(rules, weights, cost, n, lines);
    for (std::uint32_t i = 0; i < lines.n; ++i) {
      const bool finer = std::fabs(lines.scale[i]) < std::fabs(best.scale);
      if (!(lines.cost[i] < least * (finer ? 1.0f + kSame : 1.0f - kSame))) continue;
      least = std::min(least, lines.cost[i]);
      best = {lines.scale[i], lines.minimum[i]};
    }
    if (fit + 1 < kFits) lines = best_of(lines, kKept);
  }
  return best;
}

template <bool kWhole>
FitLanes errors_against(const LevelTable& table, Weights weights, Weights cost, const Lines& lines) {
  const FitLanes zero{};
  const FitLanes inverse = lines.scale != zero ? 1.0f / lines.scale : zero;
  FitLanes sum{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const FitLanes above = weights[i] - lines.minimum;
    const FitLanes away = above - lines.scale * nearest_levels<kWhole>(table, above * inverse);
    sum += away * away * cost[i];
  }
  return sum;
}

}  // namespace

Line best_line(const LineRules& rules, std::span<const float> weights, std::span<const float> cost) {
  const LevelTable& table = *rules.table;
  auto [low, high] = std::ranges::minmax(weights);
  if (low == high && rules.minimum && !rules.positive) return {0, low};
  if (low == 0 && high == 0) return {};
  LineSet lines;
  if (rules.minimum) {
    if (rules.positive) low = std::min(low, 0.0f);
    for (const float below : beginnings(table, true)) {
      for (const float above : beginnings(table, true)) {
        const float middle = 0.5f * (low + high), half = 0.5f * (high - low);
        float minimum = middle - half * below;
        if (rules.positive) minimum = std::min(minimum, 0.0f);
        const float scale = (middle + half * above - minimum) / (table.high - table.low);
        lines.add({scale, minimum - scale * table.low});
      }
    }
    lines.pad();
    return table.whole ? fitted_line<true, true>(rules, weights, cost, lines)
                       : fitted_line<false, true>(rules, weights, cost, lines);
  }
  const float peak = std::fabs(low) > high ? low : high;
  for (const float by : beginnings(table, false)) {
    lines.add({peak * by / table.low, 0.0f});
    lines.add({peak * by / table.high, 0.0f});
  }
  lines.pad();
  return table.whole ? fitted_line<true, false>(rules, weights, cost, lines)
                     : fitted_line<false, false>(rules, weights, cost, lines);
}

FitLanes errors_of(const LevelTable& table, std::span<const float> weights, std::span<const float> cost,
                   const Lines& lines) {
  return table.whole ? errors_against<true>(table, weights, cost, lines)
                     : errors_against<false>(table, weights, cost, lines);
}

}  // namespace qsf
