#include "formats/trellis.h"

#include <algorithm>
#include <utility>

#include "formats/numbers.h"

namespace qsf {
namespace {

constexpr std::uint32_t kMaxWindow = 8;  // bits of codes that a level comes from, at most
constexpr std::uint32_t kReach = 4;      // codes that these are of
constexpr std::uint32_t kMaxStates = 64;
constexpr std::uint32_t kAround = 24;  // places on each side of a chain's end, by which the state there is chosen
constexpr float kNoPath = 1e30f;

/// The steps of a chain, which is walked from its end: a window is a step's code and, above it, the state, the bits
/// that it shares with the windows behind it.
struct Trellis {
  std::uint32_t windows;
  std::uint32_t states;                             // a window's lowest bits are the state after it
  std::uint32_t chain;                              // places
  std::array<std::uint8_t, 1u << kMaxWindow> from;  // the state before a window
  std::array<float, 1u << kMaxWindow> levels;       // less the offset
};

/// What chooses an entry: four bits of a plane, of the codes from `later` on.
struct Chooser {
  TilePlane plane;
  std::uint32_t later;

  constexpr std::uint32_t codes() const { return 4 / plane.width; }
  constexpr bool takes(std::uint32_t code, std::uint32_t bit) const {
    return code >= later && code < later + codes() && bit >= plane.shift && bit < plane.shift + plane.width;
  }
  /// code_at(k): the code k behind.
  template <class CodeAt>
  constexpr std::uint32_t operator()(CodeAt code_at) const {
    std::uint32_t at = 0;
    for (std::uint32_t k = 0; k < codes(); ++k) {
      at |= (code_at(later + k) >> plane.shift & ((1u << plane.width) - 1)) << (plane.width * k);
    }
    return at;
  }
};

struct Rule {
  const TrellisTables& tables;
  std::array<Chooser, 2> choosers;

  explicit constexpr Rule(std::uint32_t bits)
      : tables(trellis_tables(bits)),
        choosers{Chooser{tile_planes(bits, kGroup)[0], 0},
                 Chooser{tile_planes(bits, kGroup)[tables.plane], tables.later}} {}

  template <class CodeAt>
  constexpr std::uint8_t level(CodeAt code_at) const {
    const std::uint8_t first = tables.entries[0][choosers[0](code_at)];
    return tables.two ? first ^ tables.entries[1][choosers[1](code_at)] : first;
  }
  constexpr bool takes(std::uint32_t code, std::uint32_t bit) const {
    return code < kReach && (choosers[0].takes(code, bit) || (tables.two && choosers[1].takes(code, bit)));
  }
};

constexpr Trellis make_trellis(std::uint32_t bits) {
  const Rule rule(bits);
  // Bits that the next window takes, too, are lowest, in the order of that one's state.
  struct Bit {
    std::uint32_t code, bit;
  };
  std::array<Bit, kMaxWindow> window{};
  std::uint32_t n = 0, kept = 0;
  for (const bool stays : {true, false}) {
    for (std::uint32_t code = 0; code < kReach; ++code) {
      for (std::uint32_t bit = 0; bit < bits; ++bit) {
        if (rule.takes(code, bit) && rule.takes(code + 1, bit) == stays) window[n++] = {code, bit};
      }
    }
    if (stays) kept = n;
  }
  Trellis out{};
  out.windows = 1u << n;
  out.states = 1u << kept;
  out.chain = rule.tables.chain;
  for (std::uint32_t w = 0; w < out.windows; ++w) {
    std::array<std::uint32_t, kReach> codes{};
    for (std::uint32_t k = 0; k < n; ++k) codes[window[k].code] |= (w >> k & 1u) << window[k].bit;
    std::uint32_t from = 0;
    for (std::uint32_t k = 0; k < kept; ++k) from |= (codes[window[k].code + 1] >> window[k].bit & 1u) << k;
    out.from[w] = static_cast<std::uint8_t>(from);
    out.levels[w] = static_cast<float>(rule.level([&](std::uint32_t k) { return codes[k]; })) - kTrellisOffset;
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

typedef std::int32_t ChoiceLanes __attribute__((vector_size(sizeof(FitLanes))));
using OfStates = std::array<float, kMaxStates>;

/// Paths to every state, one place of the chain after the other.
class Paths {
 public:
  using Windows = std::array<std::uint8_t, kMaxStates>;  // by which each state is reached

  Paths(const Trellis& trellis, float other) : trellis_(trellis) { cost_.fill(other); }

  void begin_at(std::uint32_t state) { cost_[state] = 0; }

  /// On to the place before. targets: of the states so far.
  void step(const OfStates& targets, float cost, Windows& windows) {
    const OfStates before = cost_;
    for (std::uint32_t n = 0; n < trellis_.states; n += kFitLanes) {
      FitLanes least{};
      ChoiceLanes choice{};
      for (std::uint32_t w = n; w < trellis_.windows; w += trellis_.states) {
        const std::uint32_t from = trellis_.from[w];  // and of the windows beside it
        const FitLanes away = targets[from] - lanes_at(&trellis_.levels[w]);
        const FitLanes sum = before[from] + cost * (away * away);
        const ChoiceLanes nearer = w == n ? ~ChoiceLanes{} : sum < least;
        least = nearer ? sum : least;
        choice = nearer ? ChoiceLanes{} + static_cast<std::int32_t>(w) : choice;
      }
      put_lanes(&cost_[n], least);
      for (std::uint32_t k = 0; k < kFitLanes; ++k) {
        windows[n + k] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(choice[k]) + k);
      }
    }
  }

  std::uint32_t best() const {
    return static_cast<std::uint32_t>(std::min_element(cost_.begin(), cost_.begin() + trellis_.states) - cost_.begin());
  }

 private:
  const Trellis& trellis_;
  alignas(FitLanes) OfStates cost_;
};

/// The errors of every state's path, by places.
class PathErrors {
 public:
  PathErrors(const Trellis& trellis, const ChainCost& cost) : trellis_(trellis), cost_(cost) {}

  /// A weight with what is carried to its place from those before `end`.
  void targets(std::uint32_t place, std::uint32_t end, float weight, OfStates& out) const {
    out.fill(weight);
    for (std::uint32_t q = place + 1; cost_.carries && q < end; ++q) {
      const float by = cost_.carry[place][q];
      for (std::uint32_t n = 0; n < trellis_.states; n += kFitLanes) {
        put_lanes(&out[n], lanes_at(&out[n]) + by * lanes_at(&errors_[q][n]));
      }
    }
  }

  void extend(std::uint32_t place, std::uint32_t end, float weight, const Paths::Windows& windows) {
    if (!cost_.carries) return;
    std::array<std::uint8_t, kMaxStates> from;
    for (std::uint32_t n = 0; n < trellis_.states; ++n) {
      from[n] = trellis_.from[windows[n]];
      errors_[place][n] = weight - trellis_.levels[windows[n]];
    }
    for (std::uint32_t q = place + 1; q < end; ++q) {
      const OfStates before = errors_[q];
      for (std::uint32_t n = 0; n < trellis_.states; ++n) errors_[q][n] = before[from[n]];
    }
  }

 private:
  const Trellis& trellis_;
  const ChainCost& cost_;
  alignas(FitLanes) std::array<OfStates, kGroup> errors_;
};

using Square = std::array<std::array<float, kGroup>, kGroup>;

/// The sum of cost[i] * u_i^T u_i: moments of the columns, by places. Upper half.
Square moments_of(std::uint32_t code_bits, std::span<const float> cost, const float* carry, std::size_t stride) {
  Square by_columns{}, out;
  for (std::uint32_t i = 0; i < kGroup; ++i) {
    std::array<float, kGroup> u{};
    u[i] = 1;
    for (std::uint32_t j = i + 1; j < kGroup; ++j) u[j] = carry[i * stride + j];
    for (std::uint32_t j = i; j < kGroup; ++j) {
      const float by = cost[i] * u[j];
      for (std::uint32_t k = 0; k < kGroup; ++k) by_columns[j][k] += by * u[k];
    }
  }
  for (std::uint32_t p = 0; p < kGroup; ++p) {
    for (std::uint32_t q = p; q < kGroup; ++q) {
      const std::uint32_t j = trellis_column(code_bits, p), k = trellis_column(code_bits, q);
      out[p][q] = by_columns[std::min(j, k)][std::max(j, k)];
    }
  }
  return out;
}

}  // namespace

void trellis_levels(std::uint32_t code_bits, std::span<std::uint8_t> codes) {
  const Rule rule(code_bits);
  for (; !codes.empty(); codes = codes.subspan(kGroup)) {
    std::array<std::uint32_t, kGroup> chain;
    for (std::uint32_t p = 0; p < kGroup; ++p) chain[p] = codes[trellis_column(code_bits, p)];
    for (std::uint32_t p = 0; p < kGroup; ++p) {
      const std::uint32_t begin = p / rule.tables.chain * rule.tables.chain;
      codes[trellis_column(code_bits, p)] =
          rule.level([&](std::uint32_t k) { return chain[begin + (p - begin + k) % rule.tables.chain]; });
    }
  }
}

ChainCost chain_cost(std::uint32_t code_bits, std::span<const float> cost, const float* carry, std::size_t stride) {
  ChainCost out{};
  out.carries = carry != nullptr;
  if (!out.carries) {
    for (std::uint32_t p = 0; p < kGroup; ++p) out.cost[p] = cost[trellis_column(code_bits, p)];
    return out;
  }
  Square h = moments_of(code_bits, cost, carry, stride);
  for (std::uint32_t p = 0; p < kGroup; ++p) {
    const float pivot = std::max(h[p][p], 0.0f);
    out.cost[p] = pivot;
    if (pivot == 0) continue;
    for (std::uint32_t q = p + 1; q < kGroup; ++q) {
      const float by = out.carry[p][q] = h[p][q] / pivot;
      for (std::uint32_t k = q; k < kGroup; ++k) h[q][k] -= by * h[p][k];
    }
  }
  return out;
}

void least_path(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost,
                std::span<std::uint8_t> codes) {
  const Trellis& trellis = kTrellises[code_bits - kLeastTrellis];
  OfStates targets;
  PathErrors errors(trellis, cost);
  std::array<Paths::Windows, 2 * kAround> windows;
  std::array<float, kGroup> ordered, moved, settled{};  // by places: weights, with what is carried to them; errors
  for (std::uint32_t p = 0; p < kGroup; ++p) ordered[p] = weights[trellis_column(code_bits, p)];
  for (std::uint32_t begin = kGroup; begin > 0;) {
    const std::uint32_t end = std::exchange(begin, begin - trellis.chain);
    for (std::uint32_t p = begin; p < end; ++p) {
      moved[p] = ordered[p];
      for (std::uint32_t q = end; cost.carries && q < kGroup; ++q) moved[p] += cost.carry[p][q] * settled[q];
    }
    // Where a chain begins and ends is chosen by what lies on both sides.
    Paths around(trellis, 0.0f);
    for (std::uint32_t step = 0; step < 2 * kAround; ++step) {
      const std::uint32_t place = end - 1 - (step + trellis.chain - kAround % trellis.chain) % trellis.chain;
      targets.fill(moved[place]);
      around.step(targets, cost.cost[place], windows[step]);
    }
    std::uint32_t state = around.best();
    for (std::uint32_t step = 2 * kAround; step-- > kAround;) state = trellis.from[windows[step][state]];
    Paths paths(trellis, kNoPath);
    paths.begin_at(state);
    for (std::uint32_t place = end; place-- > begin;) {
      errors.targets(place, end, moved[place], targets);
      paths.step(targets, cost.cost[place], windows[place - begin]);
      errors.extend(place, end, ordered[place], windows[place - begin]);
    }
    for (std::uint32_t place = begin; place < end; ++place) {
      const std::uint8_t window = windows[place - begin][state];
      codes[trellis_column(code_bits, place)] = window & ((1u << code_bits) - 1);
      settled[place] = ordered[place] - trellis.levels[window];
      state = trellis.from[window];
    }
  }
}

}  // namespace qsf
