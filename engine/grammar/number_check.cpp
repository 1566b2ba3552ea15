#include "grammar/number_check.h"

#include <algorithm>

namespace qsf::grammar {
namespace {

constexpr std::uint64_t kMaxMultiple = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxScale = 18;

/// The places of a number's syntax.
enum Place : std::uint8_t { kStart, kMinus, kZero, kDigits, kPoint, kFraction, kE, kSign, kExponent, kWrong };

Place advance(Place at, std::uint8_t byte) {
  const bool digit = byte >= '0' && byte <= '9';
  switch (at) {
    case kStart:
      if (byte == '-') return kMinus;
      [[fallthrough]];
    case kMinus:
      return byte == '0' ? kZero : digit ? kDigits : kWrong;
    case kZero:
    case kDigits:
      if (digit && at == kDigits) return kDigits;
      if (byte == '.') return kPoint;
      return byte == 'e' || byte == 'E' ? kE : kWrong;
    case kPoint:
      return digit ? kFraction : kWrong;
    case kFraction:
      if (digit) return kFraction;
      return byte == 'e' || byte == 'E' ? kE : kWrong;
    case kE:
      if (byte == '+' || byte == '-') return kSign;
      [[fallthrough]];
    case kSign:
    case kExponent:
      return digit ? kExponent : kWrong;
    default:
      return kWrong;
  }
}
bool complete(Place at) { return at == kZero || at == kDigits || at == kFraction || at == kExponent; }

/// The state of a comparison with a bound's magnitude.
struct Comparison {
  Place place = kStart;
  bool negative = false, nonzero = false;
  std::uint8_t relation = 1;  // of the digits so far to as many of the bound's: 0 less, 1 equal, 2 more
  std::uint32_t digits = 0;   // before the point or after it; no more are counted than matter

  static Comparison of(std::uint64_t s) {
    return {static_cast<Place>(s & 15), (s & 16) != 0, (s & 32) != 0, static_cast<std::uint8_t>(s >> 6 & 3),
            static_cast<std::uint32_t>(s >> 8)};
  }
  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(place) | (negative ? 16u : 0u) | (nonzero ? 32u : 0u) |
           std::uint64_t{relation} << 6 | std::uint64_t{digits} << 8;
  }
};

constexpr std::uint64_t kFailed = ~std::uint64_t{0};
constexpr std::uint32_t kLess = 1, kEqual = 2, kMore = 4;  // bits of possible relations

std::uint32_t whole_digits(const json::Number& n) { return n.point > 0 ? static_cast<std::uint32_t>(n.point) : 0; }
/// Returns digit i before the point, from the first on, or i after it.
char digit_of(const json::Number& n, bool fraction, std::uint32_t i) {
  const std::int64_t at = fraction ? std::int64_t{n.point} + i : std::int64_t{i};
  return at >= 0 && at < n.count ? n.digits[at] : '0';
}
std::uint32_t fraction_digits(const json::Number& n) {
  const std::int64_t digits = std::int64_t{n.count} - n.point;
  return digits > 0 ? static_cast<std::uint32_t>(digits) : 0;
}

/// Returns the relation of the digits before a point to the bound's, once they are over.
std::uint8_t at_point(const Comparison& c, const json::Number& bound) {
  const std::uint32_t own = c.nonzero ? c.digits : 0;  // "0" has no digits
  const std::uint32_t others = whole_digits(bound);
  return own < others ? 0 : own > others ? 2 : own == 0 ? 1 : c.relation;
}

/// Returns the possible relations of the magnitude to the bound's; `over`: the number ends here.
std::uint32_t relations(const Comparison& c, const json::Number& bound, bool over) {
  const auto after_point = [&](std::uint8_t relation, std::uint32_t digits, bool may_go_on) {
    if (relation != 1) return relation == 0 ? kLess : kMore;
    const bool more_of_bound = digits < fraction_digits(bound);
    if (!may_go_on) return more_of_bound ? kLess : kEqual;
    return kEqual | kMore | (more_of_bound ? kLess : 0);
  };
  const bool fraction = c.place == kPoint || c.place == kFraction;
  if (c.place >= kE) return after_point(c.relation, c.digits, false);
  if (fraction) return after_point(c.relation, c.digits, !over);
  if (c.place == kStart || c.place == kMinus) return kLess | kEqual | kMore;
  std::uint32_t here = after_point(at_point(c, bound), 0, !over);
  if (over || c.place == kZero) return here;
  const std::uint32_t n = whole_digits(bound);
  here |= kMore;  // by more digits
  if (c.digits < n && c.relation == 1) here |= kEqual;
  return here;
}

std::uint64_t step_comparison(const json::Number& bound, std::uint64_t state, std::uint8_t byte) {
  Comparison c = Comparison::of(state == 0 ? Comparison().packed() : state);
  const Place before = c.place;
  c.place = advance(before, byte);
  if (c.place == kWrong) return kFailed;
  const auto compare = [&](char other) {
    if (c.relation == 1 && byte != static_cast<std::uint8_t>(other)) c.relation = byte < other ? 0 : 2;
  };
  if (c.place == kMinus) {
    c.negative = true;
  } else if (c.place == kDigits) {
    c.nonzero = true;
    const std::uint32_t n = whole_digits(bound);
    if (c.digits < n) compare(digit_of(bound, false, c.digits));
    c.digits = std::min(c.digits + 1, n + 1);
  } else if (c.place == kPoint) {
    c.relation = at_point(c, bound);
    c.digits = 0;
  } else if (c.place == kFraction) {
    c.nonzero = c.nonzero || byte != '0';
    compare(digit_of(bound, true, c.digits));
    c.digits = std::min(c.digits + 1, fraction_digits(bound));
  } else if (c.place == kE) {
    if (bound.count != 0) return kFailed;  // the sign alone decides only if the bound is 0
    if (before != kFraction) {
      c.relation = at_point(c, bound);
      c.digits = 0;
    }
  }
  return c.packed();
}

Verdict compare(const NumberCheck& check, std::uint64_t state) {
  const Comparison c = Comparison::of(state == 0 ? Comparison().packed() : state);
  const auto signed_relations = [&](bool over) {
    std::uint32_t r = relations(c, check.bound, over);
    if (c.place == kStart) return r;
    const bool zero_bound = check.bound.count == 0;
    if (!c.negative) return check.bound.negative ? kMore : r;
    if (zero_bound) return (r & kEqual) | ((r & kMore) != 0 ? kLess : 0);  // nothing is less than 0 in magnitude
    if (!check.bound.negative) return kLess;
    return (r & kEqual) | ((r & kMore) != 0 ? kLess : 0) | ((r & kLess) != 0 ? kMore : 0);
  };
  const std::uint32_t good = check.op == NumberOp::less      ? kLess
                             : check.op == NumberOp::at_most ? kLess | kEqual
                             : check.op == NumberOp::more    ? kMore
                                                             : kMore | kEqual;
  const std::uint32_t possible = signed_relations(false);
  Verdict v;
  v.no = (possible & good) == 0;
  // An exponent may follow, at which every comparison but one with 0 fails.
  v.yes = (possible & ~good) == 0 && (check.bound.count == 0 || c.place >= kE);
  v.now = complete(c.place) && (signed_relations(true) & ~good) == 0;
  return v;
}

/// The state of `integer` and `multiple`: the place, whether a fraction's digit forbids it, digits of the fraction, and
/// the rest.
std::uint64_t step_rest(const NumberCheck& check, std::uint64_t state, std::uint8_t byte) {
  const Place before = static_cast<Place>(state & 15);
  const Place place = advance(before, byte);
  if (place == kWrong || place == kE || (place == kPoint && check.whole)) return kFailed;
  std::uint64_t digits = state >> 4 & 31, rest = state >> 16;
  if (place == kFraction || place == kDigits || place == kZero) {
    const std::uint64_t digit = static_cast<std::uint64_t>(byte - '0');
    if (place == kFraction && digits == check.scale) {
      if (digit != 0) return kFailed;
    } else {
      if (check.op == NumberOp::multiple) rest = (rest * 10 + digit) % check.multiple;
      if (place == kFraction) ++digits;
    }
  }
  return static_cast<std::uint64_t>(place) | digits << 4 | rest << 16;
}

}  // namespace

std::optional<NumberCheck> NumberCheck::multiple_of(const json::Number& number) {
  if (number.count == 0 || number.negative || number.count > 12) return std::nullopt;
  const std::int32_t after = static_cast<std::int32_t>(number.count) - number.point;  // digits after the point
  if (after > static_cast<std::int32_t>(kMaxScale) || number.point > 12) return std::nullopt;
  NumberCheck made;
  made.op = NumberOp::multiple;
  for (std::uint32_t i = 0; i < number.count; ++i) {
    made.multiple = made.multiple * 10 + static_cast<std::uint64_t>(number.digits[i] - '0');
  }
  for (std::int32_t i = after; i < 0; ++i) made.multiple *= 10;
  made.scale = after > 0 ? static_cast<std::uint32_t>(after) : 0;
  if (made.multiple > kMaxMultiple) return std::nullopt;
  return made;
}

std::uint64_t NumberCheck::step(std::uint64_t state, std::uint8_t byte) const {
  if (state == kFailed) return kFailed;
  if (op == NumberOp::syntax) {
    const Place place = advance(static_cast<Place>(state), byte);
    return place == kWrong ? kFailed : static_cast<std::uint64_t>(place);
  }
  if (op == NumberOp::integer || op == NumberOp::multiple) return step_rest(*this, state, byte);
  return step_comparison(bound, state, byte);
}

Verdict NumberCheck::verdict(std::uint64_t state) const {
  if (state == kFailed) return {false, true, false};
  const Place place = static_cast<Place>(state & 15);
  if (op == NumberOp::syntax) return {false, false, complete(place)};
  if (op == NumberOp::integer) return {false, false, complete(place)};
  if (op == NumberOp::multiple) {
    std::uint64_t rest = state >> 16;
    for (std::uint64_t i = state >> 4 & 31; i < scale; ++i) rest = rest * 10 % multiple;
    return {false, false, complete(place) && rest == 0};
  }
  return compare(*this, state);
}

}  // namespace qsf::grammar
