// The tests that follow `is`.
#include <algorithm>

#include "templates/characters.h"
#include "templates/machine.h"

namespace qsf::templates {
namespace {

constexpr std::uint32_t bit(Kind kind) { return 1u << static_cast<unsigned>(kind); }

/// A test that is true for some kinds.
template <std::uint32_t kKinds>
Value is_one_of(Machine&, const Call& call) {
  return boolean((bit(call.self.kind) & kKinds) != 0);
}

Value is_defined(Machine&, const Call& call) { return boolean(!call.self.is(Kind::undefined)); }

Value is_sequence(Machine&, const Call& call) {
  const Value& v = call.self;
  return boolean(v.is_text() || v.is(Kind::dict) || v.is(Kind::undefined) ||
                 (v.is(Kind::list) && v.list->form <= Form::group));
}

template <bool kValue>
Value is_exactly(Machine&, const Call& call) {
  return boolean(call.self.is(Kind::boolean) && call.self.boolean == kValue);
}

/// Whether a number has this rest after a division by 2.
template <int kRest>
Value has_rest(Machine& m, const Call& call) {
  const Value rest = m.binary(Op::remainder, call.self, integer(2));
  return rest ? boolean(m.equal(rest, integer(kRest))) : rest;
}

Value is_divisible(Machine& m, const Call& call) {
  const Value rest = m.binary(Op::remainder, call.self, call[0]);
  return rest ? boolean(!m.is_true(rest)) : rest;
}

template <Op kOp>
Value compares(Machine& m, const Call& call) {
  return boolean(m.compare(kOp, call.self, call[0]));
}

/// Whether a text has letters of one case only.
template <bool kUpper>
Value has_case(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  bool has = false;
  for (std::size_t at = 0; at < text.size && m.work.spend(1);) {
    const utf8::Decoded c = utf8::decode(text.view(), at);
    if (kUpper ? is_lower(c.code) : is_upper(c.code)) return boolean(false);
    has = has || (kUpper ? is_upper(c.code) : is_lower(c.code));
    at += c.size;
  }
  return boolean(has);
}

Value is_same(Machine& m, const Call& call) {
  const Value &a = call.self, &b = call[0];
  if (a.kind != b.kind) return boolean(false);
  if (a.is(Kind::list) || a.is(Kind::dict)) return boolean(a.list == b.list);
  return boolean(m.equal(a, b));
}

template <bool kFilter>
Value is_known(Machine& m, const Call& call) {
  const std::string_view name = m.text_of(call.self)->view();
  return boolean((kFilter ? find_filter(name) : find_row(tests(), name)) != nullptr);
}

Value is_escaped(Machine&, const Call& call) { return boolean(call.self.is_text() && call.self.text->safe); }

constexpr std::uint32_t kWhole = bit(Kind::integer);
constexpr std::uint32_t kIterable = bit(Kind::text) | bit(Kind::list) | bit(Kind::dict) | bit(Kind::undefined);
constexpr std::uint32_t kCallable =
    bit(Kind::macro) | bit(Kind::function) | bit(Kind::loop) | bit(Kind::joiner) | bit(Kind::undefined);

constexpr Row kTests[]{
    {"defined", "", is_defined},
    {"undefined", "", is_one_of<bit(Kind::undefined)>},
    {"none", "", is_one_of<bit(Kind::none)>},
    {"string", "", is_one_of<bit(Kind::text)>},
    {"mapping", "", is_one_of<bit(Kind::dict)>},
    {"number", "", is_one_of<kWhole | bit(Kind::boolean) | bit(Kind::real)>},
    {"integer", "", is_one_of<kWhole>},
    {"float", "", is_one_of<bit(Kind::real)>},
    {"boolean", "", is_one_of<bit(Kind::boolean)>},
    {"iterable", "", is_one_of<kIterable>},
    {"callable", "", is_one_of<kCallable>},
    {"sequence", "", is_sequence},
    {"true", "", is_exactly<true>},
    {"false", "", is_exactly<false>},
    {"odd", "", has_rest<1>},
    {"even", "", has_rest<0>},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", compares<Op::equal>},
    {"==", "other", compares<Op::equal>},
    {"equalto", "other", compares<Op::equal>},
    {"ne", "other", compares<Op::unequal>},
    {"!=", "other", compares<Op::unequal>},
    {"lt", "other", compares<Op::less>},
    {"<", "other", compares<Op::less>},
    {"lessthan", "other", compares<Op::less>},
    {"le", "other", compares<Op::less_equal>},
    {"<=", "other", compares<Op::less_equal>},
    {"gt", "other", compares<Op::greater>},
    {">", "other", compares<Op::greater>},
    {"greaterthan", "other", compares<Op::greater>},
    {"ge", "other", compares<Op::greater_equal>},
    {">=", "other", compares<Op::greater_equal>},
    {"in", "seq", compares<Op::in>},
    {"sameas", "other", is_same},
    {"lower", "", has_case<false>},
    {"upper", "", has_case<true>},
    {"escaped", "", is_escaped},
    {"filter", "", is_known<true>},
    {"test", "", is_known<false>},
};

}  // namespace

std::span<const Row> tests() { return kTests; }

}  // namespace qsf::templates
