#include "formats/trellis.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "formats/numbers.h"

namespace qsf {
namespace {

constexpr std::uint32_t kMaxWindow = 8;  // bits of codes that determine a level, at most
constexpr std::uint32_t kReach = 4;      // codes that contain these bits
constexpr float kNoPath = 1e30f;

/// The steps of a chain, which are walked from its end. A window is a step's code and, in higher bits, the state: the
/// bits that the step shares with later windows.
struct Trellis {
  struct Bit {
    std::uint32_t code, bit;
  };
  std::array<Bit, kMaxWindow> bits;  // of a window; the lowest are those of the state
  std::uint32_t windows;
  std::uint32_t states;                                          // a window's lowest bits are the next state
  std::uint32_t chain;                                           // places
  std::array<std::uint8_t, 1u << kMaxWindow> from;               // the state before a window
  alignas(FitLanes) std::array<float, 1u << kMaxWindow> levels;  // without the offset
};

/// The selection of a table entry: four bits of a plane, of the codes from `later` on.
struct Chooser {
  TilePlane plane;
  std::uint32_t later;

  constexpr std::uint32_t codes() const { return 4 / plane.width; }
  constexpr bool takes(std::uint32_t code, std::uint32_t bit) const {
    return code >= later && code < later + codes() && bit >= plane.shift && bit < plane.shift + plane.width;
  }
  /// Moves from a place to the previous one, whose code `later` on is given.
  constexpr std::uint32_t push(std::uint32_t at, std::uint32_t code) const {
    return (at << plane.width | (code >> plane.shift & ((1u << plane.width) - 1))) & 15;
  }
};

struct Rule {
  const TrellisTables& tables;
  std::array<Chooser, 2> choosers;

  explicit constexpr Rule(std::uint32_t bits)
      : tables(trellis_tables(bits)),
        choosers{Chooser{tile_planes(bits, kGroup)[0], 0},
                 Chooser{tile_planes(bits, kGroup)[tables.plane], tables.later}} {}

  constexpr std::uint8_t level(std::uint32_t first, std::uint32_t second) const {
    const std::uint8_t entry = tables.entries[0][first];
    return tables.two ? entry ^ tables.entries[1][second] : entry;
  }
  constexpr bool takes(std::uint32_t code, std::uint32_t bit) const {
    return code < kReach && (choosers[0].takes(code, bit) || (tables.two && choosers[1].takes(code, bit)));
  }
};

constexpr Trellis make_trellis(std::uint32_t bits) {
  const Rule rule(bits);
  Trellis out{};
  // Bits that the next window shares are lowest, in the order of that window's state.
  auto& window = out.bits;
  std::uint32_t n = 0, kept = 0;
  for (const bool stays : {true, false}) {
    for (std::uint32_t code = 0; code < kReach; ++code) {
      for (std::uint32_t bit = 0; bit < bits; ++bit) {
        if (rule.takes(code, bit) && rule.takes(code + 1, bit) == stays) window[n++] = {code, bit};
      }
    }
    if (stays) kept = n;
  }
  out.windows = 1u << n;
  out.states = 1u << kept;
  out.chain = rule.tables.chain;
  for (std::uint32_t w = 0; w < out.windows; ++w) {
    std::array<std::uint32_t, 2 * kReach> codes{};
    for (std::uint32_t k = 0; k < n; ++k) codes[window[k].code] |= (w >> k & 1u) << window[k].bit;
    std::uint32_t from = 0;
    for (std::uint32_t k = 0; k < kept; ++k) from |= (codes[window[k].code + 1] >> window[k].bit & 1u) << k;
    out.from[w] = static_cast<std::uint8_t>(from);
    std::uint32_t first = 0, second = 0;
    for (std::uint32_t code = kReach; code-- > 0;) {
      first = rule.choosers[0].push(first, codes[code]);
      second = rule.choosers[1].push(second, codes[code + rule.choosers[1].later]);
    }
    out.levels[w] = static_cast<float>(rule.level(first, second)) - kTrellisOffset;
  }
  return out;
}

constexpr std::array kTrellises{make_trellis(2), make_trellis(3), make_trellis(4)};
static_assert(kTrellises.size() == kTrellisTables.size());
static_assert(std::ranges::all_of(kTrellises, [](const Trellis& trellis) {
  for (std::uint32_t w = 0; w < trellis.windows; ++w) {
    if (trellis.from[w] != trellis.from[w / kFitLanes * kFitLanes]) return false;
  }
  return true;
}));

using ByPlace = std::array<float, kGroup>;
typedef std::int32_t FitBits __attribute__((vector_size(sizeof(FitLanes))));

/// Calls call<0>(), call<1>() and so on.
template <std::uint32_t kN, class Call>
[[gnu::always_inline]] inline void unrolled(Call call) {
  [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    (call.template operator()<kI>(), ...);
  }(std::make_index_sequence<kN>{});
}

/// Returns the first of kN whose cost equals `least`. It has no branches, because processors could not predict them.
template <std::uint32_t kN, class CostOf>
std::uint32_t first_where(float least, CostOf cost_of) {
  static_assert(kN <= 32);
  std::uint32_t found = 1u << (kN - 1);
  for (std::uint32_t n = 0; n < kN; ++n) {
    found |= std::uint32_t{std::bit_cast<std::uint32_t>(cost_of(n)) == std::bit_cast<std::uint32_t>(least)} << n;
  }
  return static_cast<std::uint32_t>(std::countr_zero(found));
}

/// Steps through the trellis of codes of kBits.
template <std::uint32_t kBits>
struct Steps {
  static constexpr const Trellis& kTrellis = kTrellises[kBits - kLeastTrellis];
  static constexpr std::uint32_t kStates = kTrellis.states, kChoices = kTrellis.windows / kStates;
  static constexpr std::uint32_t kChain = kTrellis.chain;
  struct alignas(FitLanes) Costs : std::array<float, kStates> {};  // of the best path to each state

  static constexpr std::uint32_t window(std::uint32_t state, std::uint32_t choice) { return state + choice * kStates; }
  static constexpr std::uint32_t from(std::uint32_t state, std::uint32_t choice) {
    return std::uint32_t{kTrellis.from[state]} + kTrellis.from[window(0, choice)];
  }

  /// Moves to the previous place. share(state, window) returns the costs of four windows from a state. With kMarked,
  /// the low bits of a cost are the number of the choice.
  template <bool kMarked, class Share>
  static void take(const Costs& before, Share share, Costs& after) {
    std::array<FitLanes, kStates / kFitLanes> least;
    unrolled<kChoices>([&]<std::uint32_t kChoice>() {
      unrolled<kStates / kFitLanes>([&]<std::uint32_t kAt>() {
        constexpr std::uint32_t kFirst = kAt * kFitLanes,
                                kFrom = from(kFirst, kChoice);  // the same for the three windows that follow
        FitLanes sum = before[kFrom] + share(kFrom, window(kFirst, kChoice));
        if constexpr (kMarked) {
          const FitBits unmarked = std::bit_cast<FitBits>(sum) & ~static_cast<std::int32_t>(kChoices - 1);
          sum = std::bit_cast<FitLanes>(unmarked | static_cast<std::int32_t>(kChoice));
        }
        least[kAt] = kChoice == 0 ? sum : sum < least[kAt] ? sum : least[kAt];
      });
    });
    for (std::uint32_t n = 0; n < kStates; n += kFitLanes) put_lanes(&after[n], least[n / kFitLanes]);
  }
  /// Returns the costs of four windows for a target level.
  static FitLanes share(float target, std::uint32_t window, float cost) {
    const FitLanes away = target - lanes_at(&kTrellis.levels[window]);
    return cost * (away * away);
  }
  static std::uint32_t cheapest(const Costs& costs) {
    FitLanes least = lanes_at(&costs[0]);
    for (std::uint32_t n = kFitLanes; n < kStates; n += kFitLanes) {
      const FitLanes four = lanes_at(&costs[n]);
      least = four < least ? four : least;
    }
    const float of_all = std::min(std::min(least[0], least[2]), std::min(least[1], least[3]));
    return first_where<kStates>(of_all, [&](std::uint32_t n) { return costs[n]; });
  }
  static std::uint32_t marked_choice(float cost) { return std::bit_cast<std::uint32_t>(cost) & (kChoices - 1); }
};

/// The costs of every window at the first and last places of a chain, whose errors are not carried. Several walks share
/// them.
template <std::uint32_t kBits, std::uint32_t kEach>
class Shares {
  using By = Steps<kBits>;

 public:
  Shares(const ByPlace& weights, const ByPlace& cost) {
    for (std::uint32_t place = 0; place < By::kChain; ++place) {
      if (place >= kEach && place + kEach < By::kChain) continue;
      for (std::uint32_t window = 0; window < kWindows; window += kFitLanes) {
        put_lanes(&of_[place][window], By::share(weights[place], window, cost[place]));
      }
    }
  }
  const float* operator[](std::uint32_t place) const { return of_[place].data(); }

 private:
  static constexpr std::uint32_t kWindows = By::kTrellis.windows;
  alignas(FitLanes) std::array<std::array<float, kWindows>, By::kChain> of_;
};

/// A walk from place `first` towards the chain's beginning. costs[0] is given.
template <std::uint32_t kBits, std::uint32_t kLength, class OfPlaces>
struct Walk {
  using By = Steps<kBits>;
  const OfPlaces& shares;
  std::uint32_t first;
  std::array<typename By::Costs, kLength + 1> costs;

  Walk(const OfPlaces& shares, std::uint32_t first, float begin) : shares(shares), first(first) {
    costs[0].fill(begin);
  }

  void run() {
    for (std::uint32_t step = 0; step < kLength; ++step) {
      const float* const here = shares[place(step)];
      By::template take<false>(
          costs[step], [=](std::uint32_t, std::uint32_t window) { return lanes_at(here + window); }, costs[step + 1]);
    }
  }
  std::uint32_t place(std::uint32_t step) const {
    return (first + kLength / By::kChain * By::kChain + By::kChain - step) % By::kChain;
  }

  /// Returns the window by which a step reaches a state.
  std::uint32_t window(std::uint32_t step, std::uint32_t state) const {
    const float* const here = shares[place(step)];
    const std::uint32_t choice = first_where<By::kChoices>(costs[step + 1][state], [&](std::uint32_t n) {
      return costs[step][By::from(state, n)] + here[By::window(state, n)];
    });
    return By::window(state, choice);
  }
};

/// Returns the state that a chain begins and ends with. It is chosen by kAround places on both sides, each column by
/// itself.
template <std::uint32_t kBits, std::uint32_t kAround>
std::uint32_t end_of(const Shares<kBits, kAround>& shares) {
  Walk<kBits, 2 * kAround, Shares<kBits, kAround>> around(shares, kAround - 1, 0.0f);
  around.run();
  std::uint32_t state = Steps<kBits>::cheapest(around.costs.back());
  for (std::uint32_t step = 2 * kAround; step-- > kAround;) {
    state = Steps<kBits>::kTrellis.from[around.window(step, state)];
  }
  return state;
}

/// The windows of the cheapest path, by place.
using Windows = std::array<std::uint8_t, kGroup>;

template <std::uint32_t kBits, class OfPlaces>
Windows path_from(std::uint32_t state, const OfPlaces& shares) {
  constexpr std::uint32_t kChain = Steps<kBits>::kChain;
  Walk<kBits, kChain, OfPlaces> walk(shares, kChain - 1, kNoPath);
  walk.costs[0][state] = 0;
  walk.run();
  Windows out{};
  for (std::uint32_t place = 0; place < kChain; ++place) {
    out[place] = static_cast<std::uint8_t>(walk.window(kChain - 1 - place, state));
    state = Steps<kBits>::kTrellis.from[out[place]];
  }
  return out;
}

/// A walk that carries errors. Every state keeps the remaining weights with the errors that its own path carries to
/// them.
template <std::uint32_t kBits>
class CarryingWalk {
 public:
  /// `aims` are the weights plus the errors that other columns carry to them.
  CarryingWalk(const ByPlace& weights, const ByPlace& aims, const ChainCost& cost)
      : weights_(weights), aims_(aims), cost_(cost) {}

  Windows path_from(std::uint32_t state) {
    costs_.fill(kNoPath);
    costs_[state] = 0;
    for (Row& row : rows_[(By::kChain - 1) % 2 == 0]) std::ranges::copy(aims_, row.begin());
    [this]<std::size_t... kFour>(std::index_sequence<kFour...>) {
      (this->template take_four<kFours - 1 - kFour>(), ...);
    }(std::make_index_sequence<kFours>{});
    path_cost_ = costs_[state];
    Windows out{};
    for (std::uint32_t place = 0; place < By::kChain; ++place) {
      out[place] = windows_[place][state];
      state = By::kTrellis.from[out[place]];
    }
    return out;
  }

  /// Returns the cost of the last path.
  float path_cost() const { return path_cost_; }

 private:
  using By = Steps<kBits>;
  struct alignas(FitLanes) Row : ByPlace {};
  using Rows = std::array<Row, By::kStates>;
  static constexpr std::size_t kFours = By::kChain / kFitLanes;

  template <std::size_t kFour>
  void take_four() {
    for (std::uint32_t place = (kFour + 1) * kFitLanes; place-- > kFour * kFitLanes;) {
      const Rows& rows = rows_[place % 2 == 0];
      typename By::Costs after;
      By::template take<true>(
          costs_,
          [&](std::uint32_t state, std::uint32_t window) {
            return By::share(rows[state][place], window, cost_.cost[place]);
          },
          after);
      costs_ = after;
      extend<kFour + 1>(place, rows, rows_[place % 2]);
    }
  }

  /// Extends the rows of the first kOfFours groups of four only, because the others are finished.
  template <std::size_t kOfFours>
  void extend(std::uint32_t place, const Rows& rows, Rows& next) {
    Row carry;
    for (std::uint32_t at = 0; at < kOfFours * kFitLanes; ++at) carry[at] = cost_.carry[at][place];
    for (std::uint32_t n = 0; n < By::kStates; ++n) {
      const std::uint32_t choice = By::marked_choice(costs_[n]), window = By::window(n, choice);
      windows_[place][n] = static_cast<std::uint8_t>(window);
      const float error = weights_[place] - By::kTrellis.levels[window];
      const Row& row = rows[By::kTrellis.from[window]];
      for (std::uint32_t at = 0; at < kOfFours * kFitLanes; at += kFitLanes) {
        put_lanes(&next[n][at], lanes_at(&row[at]) + error * lanes_at(&carry[at]));
      }
    }
  }

  const ByPlace &weights_, &aims_;
  const ChainCost& cost_;
  float path_cost_ = 0;
  typename By::Costs costs_;
  std::array<Rows, 2> rows_;
  std::array<std::array<std::uint8_t, By::kStates>, By::kChain> windows_;
};

/// Returns the cheapest path with one of these ends, or nothing if no path costs less than `stays`.
template <std::uint32_t kBits>
std::optional<Windows> path_nearer(std::span<const std::uint32_t> ends, const ByPlace& levels, const ByPlace& aims,
                                   const ChainCost& cost, float stays) {
  std::optional<Windows> out;
  CarryingWalk<kBits> walk(levels, aims, cost);
  for (const std::uint32_t end : ends) {
    const Windows windows = walk.path_from(end);
    if (!(walk.path_cost() < stays)) continue;
    stays = walk.path_cost();
    out = windows;
  }
  return out;
}

/// Calls `call` with the number of bits as a template argument.
template <class Call>
auto with_bits(std::uint32_t code_bits, Call call) {
  static_assert(kTrellises.size() == 3);
  switch (code_bits) {
    case 2:
      return call.template operator()<2>();
    case 3:
      return call.template operator()<3>();
    default:
      return call.template operator()<4>();
  }
}

ByPlace by_place(std::uint32_t code_bits, std::span<const float> columns) {
  ByPlace out{};
  for (std::uint32_t p = 0; p < columns.size(); ++p) out[p] = columns[trellis_column(code_bits, p)];
  return out;
}

void put_path(std::uint32_t code_bits, const Windows& windows, const ChainPath& out) {
  for (std::uint32_t p = 0; p < out.codes.size(); ++p) {
    const std::uint32_t column = trellis_column(code_bits, p);
    out.codes[column] = windows[p] & ((1u << code_bits) - 1);
    out.levels[column] = kTrellises[code_bits - kLeastTrellis].levels[windows[p]];
  }
}

using Square = std::array<std::array<float, kGroup>, kGroup>;

/// Returns the sum of cost[i] * u_i^T u_i, the moments of the columns. Only the upper half is computed.
Square moments_of(std::span<const float> cost, const float* carry, std::size_t stride) {
  Square out{};
  const auto n = static_cast<std::uint32_t>(cost.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    std::array<float, kGroup> u{};
    u[i] = 1;
    for (std::uint32_t j = i + 1; j < n; ++j) u[j] = carry[i * stride + j];
    for (std::uint32_t j = i; j < n; ++j) {
      const float by = cost[i] * u[j];
      for (std::uint32_t k = 0; k < kGroup; ++k) out[j][k] += by * u[k];
    }
  }
  return out;
}

}  // namespace

void trellis_levels(std::uint32_t code_bits, std::span<std::uint8_t> codes) {
  const Rule rule(code_bits);
  const std::uint32_t n = rule.tables.chain;
  for (; !codes.empty(); codes = codes.subspan(n)) {
    std::array<std::uint8_t, kGroup + 2 * kReach>
        chain;  // the chain, then its beginning again for the codes at its end
    for (std::uint32_t p = 0; p < n; ++p) chain[p] = codes[trellis_column(code_bits, p)];
    for (std::uint32_t k = 0; k < 2 * kReach; ++k) chain[n + k] = chain[k];
    std::uint32_t first = 0, second = 0;
    for (std::uint32_t p = n + kReach; p-- > 0;) {
      first = rule.choosers[0].push(first, chain[p]);
      second = rule.choosers[1].push(second, chain[p + rule.choosers[1].later]);
      if (p < n) codes[trellis_column(code_bits, p)] = rule.level(first, second);
    }
  }
}

ChainCost chain_cost(std::uint32_t code_bits, const float* moments, std::size_t stride) {
  const std::uint32_t n = trellis_tables(code_bits).chain;
  Square h;
  for (std::uint32_t p = 0; p < n; ++p) {
    for (std::uint32_t q = p; q < n; ++q) {
      const std::uint32_t j = trellis_column(code_bits, p), k = trellis_column(code_bits, q);
      h[p][q] = moments[std::min(j, k) * stride + std::max(j, k)];
    }
  }
  ChainCost out{};
  out.carries = true;
  for (std::uint32_t p = 0; p < n; ++p) {
    const float pivot = std::max(h[p][p], 0.0f);
    out.cost[p] = pivot;
    if (pivot == 0) continue;
    for (std::uint32_t q = p + 1; q < n; ++q) {
      const float by = out.carry[p][q] = h[p][q] / pivot;
      for (std::uint32_t k = q; k < n; ++k) h[q][k] -= by * h[p][k];
    }
  }
  return out;
}

ChainCost chain_cost(std::uint32_t code_bits, std::span<const float> cost, const float* carry, std::size_t stride) {
  if (carry != nullptr) return chain_cost(code_bits, moments_of(cost, carry, stride)[0].data(), kGroup);
  return {by_place(code_bits, cost), {}, false};
}

void least_path(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost, const ChainPath& out) {
  const ByPlace chain = by_place(code_bits, weights);
  const Windows windows = with_bits(code_bits, [&]<std::uint32_t kBits>() {
    const Shares<kBits, Steps<kBits>::kChain * 3 / 4> shares(chain, cost.cost);
    const std::uint32_t end = end_of(shares);
    return cost.carries ? CarryingWalk<kBits>(chain, chain, cost).path_from(end) : path_from<kBits>(end, shares);
  });
  put_path(code_bits, windows, out);
}

bool improve_path(std::uint32_t code_bits, std::span<const float> pull, const ChainCost& cost, const ChainPath& path) {
  const Trellis& trellis = kTrellises[code_bits - kLeastTrellis];
  const ByPlace pulled = by_place(code_bits, pull);
  const ByPlace levels = by_place(code_bits, path.levels);
  ByPlace aims{}, carried{};
  float stays = 0;
  for (std::uint32_t p = 0; p < trellis.chain; ++p) {
    // The cost of a change d is the sum of cost[p] * (d[p] + away[p] + carried[p])^2, minus the cost of no change.
    const float left = pulled[p] - carried[p], away = cost.cost[p] > 0 ? left / cost.cost[p] : 0.0f;
    for (std::uint32_t q = p + 1; q < trellis.chain; ++q) carried[q] += cost.carry[p][q] * left;
    aims[p] = levels[p] + away;
    stays += left * away;
  }
  stays *= 0.99999f;  // a margin, because costs of paths are rounded
  std::uint32_t end = 0;
  for (std::uint32_t k = 0; 1u << k < trellis.states; ++k) {
    const auto [code, bit] = trellis.bits[k];
    end |= (path.codes[trellis_column(code_bits, code)] >> bit & 1u) << k;
  }
  const std::optional<Windows> windows = with_bits(code_bits, [&]<std::uint32_t kBits>() {
    // In addition to the present end, another end is tried, chosen by fewer places.
    const std::array<std::uint32_t, 2> ends{end, end_of(Shares<kBits, Steps<kBits>::kChain / 4>(aims, cost.cost))};
    const std::span tried(ends);
    return path_nearer<kBits>(tried.first(ends[0] == ends[1] ? 1 : 2), levels, aims, cost, stays);
  });
  if (!windows) return false;
  put_path(code_bits, *windows, path);
  return true;
}

}  // namespace qsf
