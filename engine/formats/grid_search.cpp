// The search for scales and points. With a scale s, a point g costs sum w (x - s g)^2 = sum w x^2 - 2 s A + s^2 B. A =
// sum w x g and B = sum w g^2 do not depend on s, and are computed once for every point of the codebook. So a trial
// scale takes two products for each point, and the best scale of given points is A / B.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/grid_points.h"
#include "formats/searches.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

namespace qsf {
namespace {

using namespace grids;

constexpr std::uint32_t kBlock = 256, kGroups = 32;  // of 8 weights
constexpr std::uint32_t kForms = 2;                  // of a point
constexpr std::size_t kFour = 4;

typedef float Four __attribute__((vector_size(16)));
typedef std::int32_t FourInts __attribute__((vector_size(16)));

Four four(const float* at) {
  Four out;
  __builtin_memcpy(&out, at, sizeof out);
  return out;
}
void put(Four x, float* at) { __builtin_memcpy(at, &x, sizeof x); }

/// A codebook: one coordinate of all points after the other.
struct Book {
  std::uint32_t n = 0, width = 0;
  std::vector<float> levels;  // [width, n]
  float top = 0;              // the largest level

  const float* at(std::uint32_t coordinate) const { return &levels[std::size_t{coordinate} * n]; }
};

template <std::size_t kN, std::size_t kLevels>
Book book_of(const std::array<std::uint16_t, kN>& points, const std::array<float, kLevels>& levels) {
  static_assert(kN % kFour == 0);
  constexpr std::uint32_t kBits = kLevels > 4 ? 3 : 2;
  Book out{kN, kBits == 3 ? 4u : 8u, {}};
  for (std::uint32_t i = 0; i < out.width; ++i) {
    for (const unsigned point : points) out.levels.push_back(levels[point >> kBits * i & ((1u << kBits) - 1)]);
  }
  out.top = *std::ranges::max_element(levels);
  return out;
}

/// The second form of a point. `together` weights choose it together.
enum class Second : std::uint8_t {
  none,      // signs are free
  one_sign,  // one sign is inverted: of 8 weights an even number is negative
  moved,     // moved down instead of up
};

struct Kind {
  Book book;
  std::uint32_t sub;     // weights that share a sub-scale
  std::uint32_t n_subs;  // sub-scale k is first + step * k
  float first, step;
  Second second = Second::none;
  std::uint32_t together = 8;  // weights that choose forms together

  float value(std::uint32_t k) const { return first + step * static_cast<float>(k); }
  std::uint32_t subs() const { return kBlock / sub; }
  std::uint32_t units() const { return sub / book.width; }  // points for each sub-scale
};

struct Pick {
  std::uint32_t point = 0, form = 0;
};

/// A block before it is packed.
struct Coded {
  f16 scale = 0;
  std::array<std::uint8_t, kBlock / 16> subs{};
  std::array<Pick, kBlock / 4> picks{};
  std::array<std::uint8_t, kGroups> signs{};

  std::uint32_t point(std::size_t i) const { return picks[i].point; }
};

/// The best result at one scale.
struct Found {
  double cost = 0;  // without sum w x^2
  double a = 0, b = 0;
};

/// The search for a block's codes.
class Search {
 public:
  explicit Search(const Kind& kind)
      : kind_(kind), book_(kind.book), a_(std::size_t{kBlock} / book_.width * kForms * book_.n), b_(a_) {}

  Coded operator()(std::span<const float> weights, const BlockCost& cost) {
    fill(weights, cost.cost);
    std::array<double, kBlock / 16> scales{}, stiff{};
    double most = 0;
    for (std::uint32_t i = 0; i < kind_.subs(); ++i) {
      const Found found = free_scale(i);
      scales[i] = found.b > 0 ? std::max(0.0, found.a / found.b) : 0;
      stiff[i] = found.b;
      most = std::max(most, scales[i]);
    }
    Coded out;
    float scale = most > 0 ? shared_scale(scales, stiff, most) : 0;
    for (int round = 0; round < kRounds; ++round) {
      out.scale = f32_to_f16(std::min(scale, 65504.0f));
      double a = 0, b = 0;
      for (std::uint32_t i = 0; i < kind_.subs(); ++i) {
        const Found found = take(i, f16_to_f32(out.scale), scales[i], out);
        const double by = kind_.value(out.subs[i]);
        a += by * found.a;
        b += by * by * found.b;
      }
      if (!(b > 0) || !(a > 0)) break;
      scale = static_cast<float>(a / b);
    }
    if (cost.carry != nullptr) carry(weights, cost, out);
    put_signs(out);
    return out;
  }

 private:
  static constexpr int kRounds = 2;                     // the shared scale, then its points' own
  static constexpr float kMost = 1.05f, kStep = 0.84f;  // first trial scale over the largest weight's; their ratio
  static constexpr int kTried = 6;

  std::uint32_t unit_of(std::uint32_t sub, std::uint32_t u) const { return sub * kind_.units() + u; }
  float* a(std::uint32_t unit, std::uint32_t form) { return &a_[(std::size_t{unit} * kForms + form) * book_.n]; }
  float* b(std::uint32_t unit, std::uint32_t form) { return &b_[(std::size_t{unit} * kForms + form) * book_.n]; }

  /// Computes A and B of every point, unit by unit.
  void fill(std::span<const float> weights, std::span<const float> cost) {
    for (std::uint32_t i = 0; i < kBlock; ++i) cost_[i] = cost.empty() ? 1.0f : cost[i];
    for (std::uint32_t i = 0; i < kBlock; ++i) aim(i, weights[i]);
    for (std::uint32_t unit = 0; unit < kBlock / book_.width; ++unit) fill(unit);
  }

  /// Sets the target of column i to x.
  void aim(std::uint32_t i, float x) {
    const auto bit = static_cast<std::uint8_t>(1u << i % 8);
    signs_[i / 8] = static_cast<std::uint8_t>(std::signbit(x) ? signs_[i / 8] | bit : signs_[i / 8] & ~bit);
    x_[i] = kind_.second == Second::moved ? x : std::abs(x);
  }

  void fill(std::uint32_t unit) {
    const float *const x = &x_[unit * book_.width], *const w = &cost_[unit * book_.width];
    float *const a0 = a(unit, 0), *const b0 = b(unit, 0), *const a1 = a(unit, 1), *const b1 = b(unit, 1);
    float all_x = 0, all = 0;
    for (std::uint32_t i = 0; i < book_.width; ++i) {
      all_x += w[i] * x[i];
      all += w[i];
    }
    for (std::uint32_t n = 0; n < book_.n; n += kFour) {
      Four sum_a{}, sum_b{}, sum{}, least{};
      for (std::uint32_t i = 0; i < book_.width; ++i) {
        const Four level = four(book_.at(i) + n), by = w[i] * level, product = x[i] * by;
        sum_a += product;
        sum_b += by * level;
        sum += by;
        least = i == 0 || kind_.second != Second::one_sign ? product : (product < least ? product : least);
      }
      if (kind_.second == Second::moved) {
        const float up = kMoved * all_x, square = kMoved * kMoved * all;
        put(sum_a + up, a0 + n);
        put(sum_b + 2 * kMoved * sum + square, b0 + n);
        put(sum_a - up, a1 + n);
        put(sum_b - 2 * kMoved * sum + square, b1 + n);
      } else {
        put(sum_a, a0 + n);
        put(sum_b, b0 + n);
        if (kind_.second == Second::none) continue;
        put(sum_a - 2 * least, a1 + n);
        put(sum_b, b1 + n);
      }
    }
  }

  /// The best point of a unit at a scale; the first of equals.
  struct Best {
    float cost = 0;
    std::uint32_t point = 0;
  };
  Best best(std::uint32_t unit, std::uint32_t form, float scale) {
    const float *const of_a = a(unit, form), *const of_b = b(unit, form);
    const float square = scale * scale, twice = 2 * scale;
    Four least = Four{} + std::numeric_limits<float>::infinity();
    FourInts at{}, here{0, 1, 2, 3};
    for (std::uint32_t n = 0; n < book_.n; n += kFour, here += static_cast<std::int32_t>(kFour)) {
      const Four cost = square * four(of_b + n) - twice * four(of_a + n);
      const FourInts less = cost < least;
      least = less ? cost : least;
      at = less ? here : at;
    }
    std::size_t lane = 0;
    for (std::size_t i = 1; i < kFour; ++i) {
      if (least[i] < least[lane] || (least[i] == least[lane] && at[i] < at[lane])) lane = i;
    }
    return {least[lane], static_cast<std::uint32_t>(at[lane])};
  }

  bool odd(std::uint32_t unit) const { return (std::popcount(signs_[unit * book_.width / 8]) & 1) != 0; }

  /// Returns the number of points that choose forms together.
  std::uint32_t set() const { return kind_.second == Second::none ? 1 : kind_.together / book_.width; }

  /// Returns the best result for the weights of a sub-scale at a scale; `picks` gets its units.
  Found evaluate(std::uint32_t sub, float scale, Pick* picks) {
    Found out;
    for (std::uint32_t u = 0; u < kind_.units(); u += set()) {
      const Found found = evaluate_set(unit_of(sub, u), scale, picks + u);
      out.cost += found.cost;
      out.a += found.a;
      out.b += found.b;
    }
    return out;
  }

  Found evaluate_set(std::uint32_t unit, float scale, Pick* picks) {
    const bool turned = kind_.second == Second::one_sign && odd(unit);
    std::array<Best, 8> first, second;
    double sum = 0, other = 0, least = std::numeric_limits<double>::infinity();
    std::uint32_t which = 0;
    for (std::uint32_t i = 0; i < set(); ++i) {
      first[i] = best(unit + i, 0, scale);
      sum += first[i].cost;
      if (!turned && kind_.second != Second::moved) continue;
      second[i] = best(unit + i, 1, scale);
      other += second[i].cost;
      const double more = double{second[i].cost} - double{first[i].cost};
      if (more < least) {
        least = more;
        which = i;
      }
    }
    const bool down = kind_.second == Second::moved && other < sum;
    Found out;
    for (std::uint32_t i = 0; i < set(); ++i) {
      const bool form = down || (turned && i == which);
      const Best& taken = form ? second[i] : first[i];
      picks[i] = {taken.point, form ? 1u : 0u};
      out.cost += taken.cost;
      out.a += a(unit + i, picks[i].form)[taken.point];
      out.b += b(unit + i, picks[i].form)[taken.point];
    }
    return out;
  }

  /// Selects the points again, from the last on. Earlier points make up for the errors that later ones carry to them.
  void carry(std::span<const float> weights, const BlockCost& cost, Coded& out) {
    std::array<float, kBlock> errors{};
    for (std::uint32_t unit = kBlock / book_.width; unit > 0;) {
      unit -= set();
      const std::uint32_t begin = unit * book_.width, end = begin + set() * book_.width;
      for (std::uint32_t i = begin; i < end; ++i) {
        float behind = 0;
        for (std::uint32_t j = end; j < kBlock; ++j) behind += cost.carry[i * cost.stride + j] * errors[j];
        aim(i, weights[i] + behind);
      }
      for (std::uint32_t u = unit; u < unit + set(); ++u) fill(u);
      const float scale = f16_to_f32(out.scale) * kind_.value(out.subs[begin / kind_.sub]);
      evaluate_set(unit, scale, &out.picks[unit]);
      for (std::uint32_t g = begin / 8; g <= (end - 1) / 8; ++g) out.signs[g] = signs_[g];
      for (std::uint32_t u = unit; u < unit + set(); ++u) turn_sign(u, out);
      for (std::uint32_t i = begin; i < end; ++i) errors[i] = weights[i] - value(i, scale, out);
    }
  }

  /// Returns the decoded value of column i.
  float value(std::uint32_t i, float scale, const Coded& block) const {
    const Pick& pick = block.picks[i / book_.width];
    const float level = book_.at(i % book_.width)[pick.point];
    if (kind_.second == Second::moved) return scale * (level + (pick.form != 0 ? -kMoved : kMoved));
    return (block.signs[i / 8] >> i % 8 & 1) != 0 ? -scale * level : scale * level;
  }

  /// Returns the result for the weights of a sub-scale at the scale that is best for them alone.
  Found free_scale(std::uint32_t sub) {
    const float* const x = &x_[sub * kind_.sub];
    float most = 0;
    for (std::uint32_t i = 0; i < kind_.sub; ++i) most = std::max(most, std::abs(x[i]));
    Found best;
    if (most == 0) return best;
    std::array<Pick, 8> picks;
    float scale = kMost * most / book_.top;
    const auto gain = [](const Found& f) { return f.a > 0 && f.b > 0 ? f.a * f.a / f.b : 0; };
    for (int i = 0; i < kTried; ++i, scale *= kStep) {
      const Found found = evaluate(sub, scale, picks.data());
      if (gain(found) > gain(best)) best = found;
    }
    if (gain(best) == 0) return best;
    const Found again = evaluate(sub, static_cast<float>(best.a / best.b), picks.data());
    return gain(again) > gain(best) ? again : best;
  }

  /// Returns the block's scale whose sub-scales come nearest to the best scale of each, weighted by importance.
  float shared_scale(std::span<const double> scales, std::span<const double> stiff, double most) const {
    constexpr int kCandidates = 48;
    constexpr double kLow = 0.7, kHigh = 1.3;
    const double top = most / kind_.value(kind_.n_subs - 1);
    double least = std::numeric_limits<double>::infinity(), best = top;
    for (int c = 0; c < kCandidates; ++c) {
      const double scale = top * (kLow + (kHigh - kLow) * c / (kCandidates - 1));
      double sum = 0;
      for (std::uint32_t i = 0; i < kind_.subs(); ++i) {
        const double away = scale * kind_.value(nearest(scales[i] / scale)) - scales[i];
        sum += stiff[i] * away * away;
      }
      if (sum < least) {
        least = sum;
        best = scale;
      }
    }
    return static_cast<float>(best);
  }

  std::uint32_t nearest(double value) const {
    const double k = std::round((value - kind_.first) / kind_.step);
    return static_cast<std::uint32_t>(std::clamp(k, 0.0, static_cast<double>(kind_.n_subs - 1)));
  }

  /// Takes the cheapest sub-scale at or next to the wanted one, and its points.
  Found take(std::uint32_t sub, float scale, double wanted, Coded& out) {
    Found best;
    best.cost = std::numeric_limits<double>::infinity();
    const std::uint32_t middle = scale > 0 ? nearest(wanted / scale) : 0;
    const std::uint32_t low = middle == 0 ? 0 : middle - 1, high = std::min(middle + 1, kind_.n_subs - 1);
    std::array<Pick, 8> picks;
    for (std::uint32_t k = low; k <= high; ++k) {
      const Found found = evaluate(sub, scale * kind_.value(k), picks.data());
      if (!(found.cost < best.cost)) continue;
      best = found;
      out.subs[sub] = static_cast<std::uint8_t>(k);
      std::copy_n(picks.begin(), kind_.units(), &out.picks[unit_of(sub, 0)]);
      if (scale == 0) break;
    }
    return best;
  }

  /// Sets the signs to those of the weights, except inverted ones.
  void put_signs(Coded& out) {
    out.signs = signs_;
    for (std::uint32_t unit = 0; unit < kBlock / book_.width; ++unit) turn_sign(unit, out);
  }

  /// Inverts the sign of a unit that costs least, if its form has an inverted sign.
  void turn_sign(std::uint32_t unit, Coded& out) const {
    if (kind_.second != Second::one_sign || out.picks[unit].form == 0) return;
    const std::uint32_t begin = unit * book_.width;
    std::uint32_t which = 0;
    float least = std::numeric_limits<float>::infinity();
    for (std::uint32_t i = 0; i < book_.width; ++i) {
      const float product = x_[begin + i] * (cost_[begin + i] * book_.at(i)[out.picks[unit].point]);
      if (product < least) {
        least = product;
        which = i;
      }
    }
    out.signs[begin / 8] ^= static_cast<std::uint8_t>(1u << (begin + which) % 8);
  }

  const Kind& kind_;
  const Book& book_;
  std::vector<float> a_, b_;  // [units of a block, kForms, book_.n]
  std::array<float, kBlock> x_{}, cost_{};
  std::array<std::uint8_t, kGroups> signs_{};
};

/// Adds bits to a block of zeros, from the lowest bit of a byte on.
void put_bits(std::byte* at, std::uint32_t bit, std::uint32_t value) {
  for (std::byte* to = at + bit / 8; value != 0; ++to, value >>= 8) {
    value <<= bit % 8;
    bit = 0;
    *to |= static_cast<std::byte>(value & 255);
  }
}
void put_byte(std::byte* at, std::uint32_t value) { *at = static_cast<std::byte>(value & 255); }

using Pack = void(const Coded& block, std::byte* out);

void encode(const Kind& kind, Pack* pack, std::size_t block_bytes, std::span<const float> weights,
            const BlockCost& cost, std::byte* out) {
  std::fill_n(out, block_bytes, std::byte{0});
  pack(Search(kind)(weights, cost), out);
}

}  // namespace

// The comments of the decoders in iq.cpp describe the order of the bytes.

void to_iq2_xxs(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq2Xxs, kLevels2), 32, 16, 0.125f, 0.25f, Second::one_sign};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      std::byte* const at = to + 2 + g / 4 * 8;
      put_byte(at + g % 4, block.point(g));
      put_bits(at + 4, 7 * (g % 4), block.signs[g] & 127u);
      if (g % 4 == 0) put_bits(at + 4, 28, block.subs[g / 4]);
    }
  };
  encode(kKind, pack, 66, weights, cost, out);
}

void to_iq2_xs(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq2Xs, kLevels2), 16, 16, 0.125f, 0.25f, Second::one_sign};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      store_le(to + 2 + 2 * g, static_cast<std::uint16_t>(block.point(g) | (block.signs[g] & 127u) << 9));
      if (g % 2 == 0) put_bits(to + 66, 4 * (g / 2), block.subs[g / 2]);
    }
  };
  encode(kKind, pack, 74, weights, cost, out);
}

void to_iq2_s(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq2S, kLevels2), 16, 16, 0.125f, 0.25f};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      put_byte(to + 2 + g, block.point(g));
      put_byte(to + 34 + g, block.signs[g]);
      put_bits(to + 66, 2 * g, block.point(g) >> 8);
      if (g % 2 == 0) put_bits(to + 74, 4 * (g / 2), block.subs[g / 2]);
    }
  };
  encode(kKind, pack, 82, weights, cost, out);
}

void to_iq3_xxs(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq3Xxs, kLevels3Xxs), 32, 16, 0.25f, 0.5f, Second::one_sign};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      put_byte(to + 2 + 2 * g, block.point(2 * g));
      put_byte(to + 3 + 2 * g, block.point(2 * g + 1));
      std::byte* const at = to + 66 + g / 4 * 4;
      put_bits(at, 7 * (g % 4), block.signs[g] & 127u);
      if (g % 4 == 0) put_bits(at, 28, block.subs[g / 4]);
    }
  };
  encode(kKind, pack, 98, weights, cost, out);
}

void to_iq3_s(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq3S, kLevels3S), 32, 16, 1, 2};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t i = 0; i < 2 * kGroups; ++i) {
      put_byte(to + 2 + i, block.point(i));
      put_bits(to + 66, i, block.point(i) >> 8);
    }
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      put_byte(to + 74 + g, block.signs[g]);
      if (g % 4 == 0) put_bits(to + 106, 4 * (g / 4), block.subs[g / 4]);
    }
  };
  encode(kKind, pack, 110, weights, cost, out);
}

void to_iq1_s(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq1, kLevels1), 32, 8, 1, 2, Second::moved, 32};
  const auto pack = [](const Coded& block, std::byte* to) {
    store_le(to, block.scale);
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      put_byte(to + 2 + g, block.point(g));
      std::byte* const at = to + 34 + g / 4 * 2;
      put_bits(at, 3 * (g % 4), block.point(g) >> 8);
      if (g % 4 == 0) put_bits(at, 12, block.subs[g / 4] | block.picks[g].form << 3);
    }
  };
  encode(kKind, pack, 50, weights, cost, out);
}

void to_iq1_m(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  static const Kind kKind{book_of(kIq1, kLevels1), 16, 8, 1, 2, Second::moved};
  const auto pack = [](const Coded& block, std::byte* to) {
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      put_byte(to + g, block.point(g));
      put_bits(to + 32, 4 * g, block.point(g) >> 8 | block.picks[g].form << 3);
      if (g % 2 == 0) put_bits(to + 48, g / 8 * 16 + g / 2 % 4 * 3, block.subs[g / 2]);
    }
    for (std::uint32_t i = 0; i < 4; ++i) put_bits(to + 48, 16 * i + 12, block.scale >> 4 * i & 15u);
  };
  encode(kKind, pack, 56, weights, cost, out);
}

}  // namespace qsf
