// Global functions, and the methods of lists, dicts, loops and cyclers.
#include <algorithm>

#include "templates/clock.h"
#include "templates/machine.h"

namespace qsf::templates {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // as in jinja2's sandbox

Value make_range(Machine& m, const Call& call) {
  const bool has_start = call[1] && true;
  std::int64_t at = has_start ? m.whole(call[0]) : 0;
  const std::int64_t stop = m.whole(call[has_start ? 1 : 0]);
  const std::int64_t step = call[2] ? m.whole(call[2]) : 1;
  constexpr std::int64_t kLargest = std::int64_t{1} << 60;
  if (step == 0 || std::max({std::abs(at), std::abs(stop), std::abs(step)}) > kLargest) {
    return m.work.fail("a range has a step of 0 or too large numbers");
  }
  const std::int64_t n = std::max<std::int64_t>((stop - at + step - (step > 0 ? 1 : -1)) / step, 0);
  if (n > kLongestRange) return m.work.fail("a range has {} numbers, more than {}", n, kLongestRange);
  const Value made = m.make_list(Form::range, nullptr, static_cast<std::uint32_t>(n));
  for (std::int64_t i = 0; i < n && made; ++i, at += step) made.list->items[i] = integer(at);
  return made;
}

/// dict and namespace: a dict or a list of pairs, then named arguments.
template <Kind kKind>
Value make_pairs(Machine& m, const Call& call) {
  Value made(kKind);
  made.dict = m.make_dict(call.all.n_named + 4);
  if (made.dict == nullptr) return {};
  if (call.all.n > 1) return m.work.fail("'{:.40}' has at most one argument without a name", call.row.name);
  const Value from = call.all[0];
  if (from.is(Kind::dict)) {
    for (std::uint32_t i = 0; i < from.dict->size; ++i)
      m.put(*made.dict, from.dict->pairs[i].key, from.dict->pairs[i].value);
  } else if (from) {
    for (const Value& pair : m.items(from)) {
      const Items parts = m.items(pair);
      if (parts.n != 2) return m.work.fail("'{:.40}' needs pairs", call.row.name);
      m.put(*made.dict, parts.at[0], parts.at[1]);
    }
  }
  for (std::uint32_t i = 0; i < call.all.n_named; ++i)
    m.put(*made.dict, call.all.named[i].key, call.all.named[i].value);
  return made;
}

template <Kind kKind>
Value make_cycler(Machine& m, const Call& call) {
  Value made(kKind);
  made.cycler = m.work.make<Cycler>();
  const Value comma = m.work.text_value(", ");
  const bool joins = kKind == Kind::joiner;
  const Value items = joins ? m.make_list(Form::list, call[0] ? &call.arguments[0] : &comma, 1)
                            : m.make_list(Form::list, call.all.values, call.all.n);
  if (m.work.failed()) return {};
  if (items.list->size == 0) return m.work.fail("a cycler needs at least one item");
  *made.cycler = {items.list, 0};
  return made;
}

Value raise_exception(Machine& m, const Call& call) {
  m.refusal = m.text_of(call[0])->view();
  if (m.work.failed()) return {};
  const FormatValue values[]{FormatValue(m.refusal)};
  return m.work.fail_with(ErrorCode::template_refusal, "{}", values, format_kinds<std::string_view>());
}

Value time_now(Machine& m, const Call& call) {
  if (!call[0].is_text()) return m.work.fail("'strftime_now' needs a text");
  m.work.spend(call[0].text->size);
  Writer out(m.work);
  if (!write_time(out, call[0].text->view(), m.now))
    return m.work.fail("'strftime_now' does not know a form of its text");
  return out.finish();
}

Value next_item(Machine&, const Call& call) {
  Cycler& cycler = *call.self.cycler;
  const Value value = cycler.items->items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items->size;
  return value;
}

Value reset_cycler(Machine&, const Call& call) {
  call.self.cycler->at = 0;
  return Value(Kind::none);
}

Value cycle_loop(Machine& m, const Call& call) {
  if (call.all.n == 0) return m.work.fail("'cycle' needs at least one argument");
  return call.all.values[call.self.loop->at % call.all.n];
}

Value loop_changed(Machine& m, const Call& call) {
  Loop& loop = *call.self.loop;
  const Value now = m.make_list(Form::tuple, call.all.values, call.all.n);
  if (!now) return {};
  Value before = now;
  before.list = loop.changed;
  const bool same = loop.changed != nullptr && m.equal(before, now);
  loop.changed = now.list;
  return boolean(!same);
}

/// items, keys and values.
Value dict_view(Machine& m, const Call& call) {
  const Dict& dict = *call.self.dict;
  const Value made = m.make_list(Form::view, nullptr, dict.size);
  for (std::uint32_t i = 0; i < dict.size && made; ++i) {
    const Pair& pair = dict.pairs[i];
    Value& to = made.list->items[i];
    to = call.row.name == "items"  ? m.make_list(Form::tuple, &pair.key, 2)
         : call.row.name == "keys" ? pair.key
                                   : pair.value;
  }
  return made;
}

Value dict_get(Machine& m, const Call& call) {
  if (m.contains(call.self, call[0])) return m.item(call.self, call[0]);
  return m.work.failed() ? Value() : call[1] ? call[1] : Value(Kind::none);
}

Value copy_of(Machine&, const Call& call) { return call.self; }  // nothing changes it

Value list_index(Machine& m, const Call& call) {
  std::int64_t n = 0;
  const Items items{call.self.list->items, call.self.list->size};
  for (std::uint32_t i = 0; i < items.n && !m.work.failed(); ++i) {
    if (!m.equal(items.at[i], call[0])) continue;
    if (call.row.name == "index") return integer(i);
    ++n;
  }
  return call.row.name == "count" ? integer(n) : m.work.fail("'index' finds nothing");
}

/// A method that would change its object, which jinja2's immutable sandbox does not allow.
Value changes(Machine& m, const Call& call) {
  return m.work.fail("'{:.40}' would change a {}, which templates may not", call.row.name, m.type_name(call.self));
}

constexpr Row kFunctions[]{
    {"range", "start ?stop ?step", make_range},    {"dict", "*", make_pairs<Kind::dict>},
    {"namespace", "*", make_pairs<Kind::space>},   {"cycler", "*", make_cycler<Kind::cycler>},
    {"joiner", "?sep", make_cycler<Kind::joiner>}, {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", time_now},
};
constexpr Row kListMethods[]{
    {"index", "value", list_index}, {"count", "value", list_index}, {"copy", "", copy_of},   {"append", "*", changes},
    {"extend", "*", changes},       {"insert", "*", changes},       {"pop", "*", changes},   {"remove", "*", changes},
    {"reverse", "*", changes},      {"sort", "*", changes},         {"clear", "*", changes},
};
constexpr Row kDictMethods[]{
    {"items", "", dict_view},     {"keys", "", dict_view}, {"values", "", dict_view}, {"get", "key ?default", dict_get},
    {"copy", "", copy_of},        {"pop", "*", changes},   {"popitem", "*", changes}, {"update", "*", changes},
    {"setdefault", "*", changes}, {"clear", "*", changes},
};
constexpr Row kLoopMethods[]{{"cycle", "*", cycle_loop}, {"changed", "*", loop_changed}};
constexpr Row kCyclerMethods[]{{"next", "", next_item}, {"reset", "", reset_cycler}};

}  // namespace

std::span<const Row> functions() { return kFunctions; }
std::span<const Row> list_methods() { return kListMethods; }
std::span<const Row> dict_methods() { return kDictMethods; }
std::span<const Row> loop_methods() { return kLoopMethods; }
std::span<const Row> cycler_methods() { return kCyclerMethods; }

}  // namespace qsf::templates
