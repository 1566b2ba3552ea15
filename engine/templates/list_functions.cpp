// Filters of lists, dicts and numbers.
#include <algorithm>
#include <cmath>

#include "templates/machine.h"
#include "templates/number.h"

namespace qsf::templates {
namespace {

constexpr Text kCommaText{
    .bytes = ",", .origins = nullptr, .size = 1, .points = 1, .origin = Origin::own, .safe = false};
const Value kComma(&kCommaText);

bool given(const Value& value) { return value && !value.is(Kind::none); }

Value lazy(Value made) {
  if (made) made.list->form = Form::lazy;
  return made;
}

/// Returns the value by which a filter compares an item: an attribute if there is a path, a list of several if there
/// are commas in it; texts in lower case if asked.
Value key_of(Machine& m, const Value& item, const Value& path, bool with_case) {
  if (path.is_text() && path.text->view().find(',') != std::string_view::npos) {
    const Arguments comma{.values = &kComma, .n = 1};
    const Value paths = m.call_row(*find_row(text_methods(), "split"), path, comma);
    const Value keys = paths ? m.make_list(Form::list, nullptr, paths.list->size) : paths;
    for (std::uint32_t i = 0; keys && i < keys.list->size; ++i) {
      keys.list->items[i] = key_of(m, item, paths.list->items[i], with_case);
      if (!keys.list->items[i]) return {};
    }
    return keys;
  }
  const Value value = given(path) ? m.path(item, path) : item;
  return !with_case && value.is_text() ? m.call_row(*find_filter("lower"), value, {}) : value;
}

/// Returns the keys of all items, or null after a failure.
Value* keys_of(Machine& m, const Items& items, const Value& path, bool with_case) {
  Value* const keys = m.work.make<Value>(items.n);
  for (std::uint32_t i = 0; i < items.n && keys != nullptr; ++i) {
    keys[i] = key_of(m, items.at[i], path, with_case);
    if (!keys[i]) return nullptr;
  }
  return keys;
}

Value first_item(Machine& m, const Call& call) {
  if (call.self.is_text() && call.self.text->size > 0) return m.item(call.self, integer(0));
  const Items items = m.items(call.self);
  return items.n == 0 ? undefined(nullptr) : items.at[0];
}

Value last_item(Machine& m, const Call& call) {
  if (call.self.is_text() && call.self.text->size > 0) return m.item(call.self, integer(-1));
  const Items items = m.items(call.self);
  return items.n == 0 ? undefined(nullptr) : items.at[items.n - 1];
}

Value length_of(Machine& m, const Call& call) { return integer(m.length(call.self)); }

Value list_of(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  return m.make_list(Form::list, items.at, items.n);
}

Value reverse_items(Machine& m, const Call& call) {
  if (call.self.is_text()) {
    Value step = integer(-1);
    return m.slice(call.self, Value(Kind::none), Value(Kind::none), step);
  }
  const Items items = m.items(call.self);
  const Value made = m.make_list(Form::lazy, items.at, items.n);
  if (made) std::reverse(made.list->items, made.list->items + items.n);
  return made;
}

Value sort_items(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  const Value* const keys = keys_of(m, items, call[2], m.is_true(call[1]));
  const std::uint32_t* const order = keys == nullptr ? nullptr : m.sorted(keys, items.n, m.is_true(call[0]));
  const Value made = m.make_list(Form::list, nullptr, items.n);
  for (std::uint32_t i = 0; i < items.n && made && order != nullptr; ++i) made.list->items[i] = items.at[order[i]];
  return made;
}

Value sort_dict(Machine& m, const Call& call) {
  if (!call.self.is(Kind::dict)) return m.work.fail("'dictsort' needs a dict");
  const Dict& dict = *call.self.dict;
  const bool by_value = call[1].is_text() && call[1].text->view() == "value";
  Value* const keys = m.work.make<Value>(dict.size);
  for (std::uint32_t i = 0; i < dict.size && keys != nullptr; ++i) {
    keys[i] = key_of(m, by_value ? dict.pairs[i].value : dict.pairs[i].key, {}, m.is_true(call[0]));
  }
  const std::uint32_t* const order = m.work.failed() ? nullptr : m.sorted(keys, dict.size, m.is_true(call[2]));
  const Value made = m.make_list(Form::list, nullptr, dict.size);
  for (std::uint32_t i = 0; i < dict.size && made && order != nullptr; ++i) {
    made.list->items[i] = m.make_list(Form::tuple, &dict.pairs[order[i]].key, 2);
  }
  return made;
}

Value unique_items(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  const Value* const keys = keys_of(m, items, call[1], m.is_true(call[0]));
  const Value made = m.make_list(Form::lazy, nullptr, items.n);
  if (!made || keys == nullptr) return {};
  made.list->size = 0;
  for (std::uint32_t i = 0; i < items.n && !m.work.failed(); ++i) {
    std::uint32_t j = 0;
    while (j < i && !m.equal(keys[i], keys[j])) ++j;
    if (j == i) made.list->items[made.list->size++] = items.at[i];
  }
  return made;
}

/// Whether a value passes the test of the first argument, or is true if there is none.
bool passes(Machine& m, const Value& value, const Arguments& test) {
  if (test.n == 0) return m.is_true(value);
  const Row* const row = test.values[0].is_text() ? find_row(tests(), test.values[0].text->view()) : nullptr;
  if (row == nullptr) {
    m.work.fail("there is no test '{:.40}'", m.text_of(test.values[0])->view());
    return false;
  }
  return m.is_true(m.call_row(*row, value, test.rest()));
}

/// Returns the items, and none for any value that is not true, such as None.
Items items_if_true(Machine& m, const Value& value) { return Machine::is_true(value) ? m.items(value) : Items{}; }

/// select and reject, and the same by an attribute.
template <bool kKeeps, bool kAttribute>
Value select_items(Machine& m, const Call& call) {
  if (kAttribute && call.all.n == 0) return m.work.fail("'{:.40}' needs an attribute", call.row.name);
  const Items items = items_if_true(m, call.self);
  const Value made = m.make_list(Form::lazy, nullptr, items.n);
  if (!made) return {};
  made.list->size = 0;
  for (const Value& one : items) {
    const Value value = kAttribute ? m.path(one, call.all.values[0]) : one;
    if (!value) return {};
    const bool passed = passes(m, value, kAttribute ? call.all.rest() : call.all);
    if (m.work.failed()) return {};
    if (passed == kKeeps) made.list->items[made.list->size++] = one;
  }
  return made;
}

Value map_items(Machine& m, const Call& call) {
  const auto named = [&](std::string_view name) {
    const Pair* const found = m.named(call.all, name);
    return found == nullptr ? Value() : found->value;
  };
  const Value attribute = call.all.n == 0 ? named("attribute") : Value();
  const Value otherwise = named("default");
  const Row* row = nullptr;
  if (!attribute) {
    row = call.all[0].is_text() ? find_filter(call.all[0].text->view()) : nullptr;
    if (row == nullptr) return m.work.fail("'map' needs the name of a filter, or an attribute");
  }
  const Items items = items_if_true(m, call.self);
  const Value made = m.make_list(Form::lazy, nullptr, items.n);
  for (std::uint32_t i = 0; i < items.n && made; ++i) {
    Value value = row != nullptr ? m.call_row(*row, items.at[i], call.all.rest()) : m.path(items.at[i], attribute);
    if (!value) return {};
    if (row == nullptr && value.is(Kind::undefined) && otherwise) value = otherwise;
    made.list->items[i] = value;
  }
  return made;
}

Value sum_items(Machine& m, const Call& call) {
  Value sum = call[1] ? call[1] : integer(0);
  for (const Value& one : m.items(call.self)) {
    const Value value = given(call[0]) ? m.path(one, call[0]) : one;
    if (!value) return {};
    sum = m.binary(Op::add, sum, value);
    if (!sum) return {};
  }
  return sum;
}

/// min and max.
Value extreme_item(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  const Value* const keys = keys_of(m, items, call[1], m.is_true(call[0]));
  if (items.n == 0 || keys == nullptr) return undefined(nullptr);
  std::uint32_t found = 0;
  for (std::uint32_t i = 1; i < items.n; ++i) {
    const int order = m.order(keys[i], keys[found]);
    if (call.row.name == "min" ? order < 0 : order > 0) found = i;
  }
  return items.at[found];
}

Value group_items(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  Value* const values = keys_of(m, items, call[0], true);
  if (values == nullptr) return {};
  Value* const keys = m.work.make<Value>(items.n);
  for (std::uint32_t i = 0; i < items.n && keys != nullptr; ++i) {
    if (values[i].is(Kind::undefined) && call[1]) values[i] = call[1];
    keys[i] = key_of(m, values[i], {}, m.is_true(call[2]));
  }
  const std::uint32_t* const order = m.work.failed() ? nullptr : m.sorted(keys, items.n, false);
  const Value made = m.make_list(Form::list, nullptr, items.n);
  if (order == nullptr || !made) return {};
  made.list->size = 0;
  for (std::uint32_t i = 0; i < items.n && !m.work.failed();) {
    std::uint32_t n = 1;
    while (i + n < items.n && m.equal(keys[order[i]], keys[order[i + n]])) ++n;
    const Value members = m.make_list(Form::list, nullptr, n);
    if (!members) return {};
    for (std::uint32_t j = 0; j < n; ++j) members.list->items[j] = items.at[order[i + j]];
    const Value pair[]{values[order[i]], members};
    made.list->items[made.list->size++] = m.make_list(Form::group, pair, 2);
    i += n;
  }
  return made;
}

/// Runs of a number of items, the last one filled up if asked.
Value batch_items(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  const std::int64_t size = m.whole(call[0]);
  if (size <= 0) return m.work.fail("a batch needs at least one item");
  const auto most = static_cast<std::uint32_t>(std::min<std::int64_t>(size, given(call[1]) ? 100'000 : items.n));
  if (items.n == 0) return m.make_list(Form::lazy, nullptr, 0);
  const std::uint32_t n = (items.n + most - 1) / most;
  const Value made = m.make_list(Form::lazy, nullptr, n);
  for (std::uint32_t i = 0; i < n && made; ++i) {
    const std::uint32_t has = std::min(most, items.n - i * most);
    const Value one = m.make_list(Form::list, nullptr, given(call[1]) ? most : has);
    if (!one) return {};
    std::fill(std::copy_n(items.at + i * most, has, one.list->items), one.list->items + one.list->size, call[1]);
    made.list->items[i] = one;
  }
  return made;
}

/// A number of lists of nearly the same length.
Value slice_items(Machine& m, const Call& call) {
  const Items items = m.items(call.self);
  const std::int64_t asked = m.whole(call[0]);
  if (asked <= 0 || asked > 100'000) return m.work.fail("items are divided into {} lists", asked);
  const auto n = static_cast<std::uint32_t>(asked);
  const Value made = m.make_list(Form::lazy, nullptr, n);
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < n && made; ++i) {
    const std::uint32_t has = items.n / n + (i < items.n % n ? 1 : 0);
    const bool filled = given(call[1]) && i >= items.n % n;
    const Value one = m.make_list(Form::list, nullptr, has + (filled ? 1 : 0));
    if (!one) return {};
    std::copy_n(items.at + begin, has, one.list->items);
    if (filled) one.list->items[has] = call[1];
    made.list->items[i] = one;
    begin += has;
  }
  return made;
}

Value pairs_of(Machine& m, const Call& call) {
  if (call.self.is(Kind::undefined)) return m.make_list(Form::lazy, nullptr, 0);
  if (!call.self.is(Kind::dict)) return m.work.fail("a value of type {} has no pairs", m.type_name(call.self));
  return lazy(m.call_row(*find_row(dict_methods(), "items"), call.self, {}));
}

Value default_of(Machine&, const Call& call) {
  const bool replaced = call.self.is(Kind::undefined) || (Machine::is_true(call[1]) && !Machine::is_true(call.self));
  return !replaced ? call.self : call[0];
}

Value default_text(Machine& m, const Call& call) {
  const Value value = default_of(m, call);
  return value ? value : m.work.text_value("");
}

/// The filter attr: an attribute, and no item.
Value attribute_of(Machine& m, const Call& call) {
  const Text* const name = m.text_of(call[0]);
  if (!call.self.is(Kind::dict)) return m.attribute(call.self, name);
  const Row* const row = find_row(dict_methods(), name->view());
  return row == nullptr ? undefined(name) : m.attribute(call.self, name);
}

Value whole_of(Machine& m, const Call& call) {
  const Value& v = call.self;
  if (v.is_whole()) return integer(v.whole());
  if (v.is(Kind::undefined)) return m.attribute(v, m.work.text("int"));
  Value number = v;
  if (v.is_text()) {
    const std::int64_t base = call[1] ? m.whole(call[1]) : 10;
    number =
        base == 0 || (base >= 2 && base <= 36) ? read_whole(m.work, v.text->view(), static_cast<int>(base)) : Value();
    if (number.is(Kind::integer)) return number;
    if (!number) {
      number = read_real(m.work, v.text->view());
      if (number && std::isinf(number.real)) number = {};
    }
  }
  if (number.is(Kind::real) && !std::isnan(number.real)) {
    if (std::abs(number.real) >= 0x1p63) return m.work.fail("a whole number does not fit in 64 bits");
    return integer(static_cast<std::int64_t>(number.real));
  }
  return call[0] ? call[0] : integer(0);
}

Value real_of(Machine& m, const Call& call) {
  const Value& v = call.self;
  if (v.is_number()) return real(v.number());
  if (v.is(Kind::undefined)) return m.attribute(v, m.work.text("float"));
  const Value number = v.is_text() ? read_real(m.work, v.text->view()) : Value();
  return number ? number : call[0] ? call[0] : real(0);
}

Value absolute(Machine& m, const Call& call) {
  if (!call.self.is_number()) return m.work.fail("a value of type {} is no number", m.type_name(call.self));
  if (call.self.is(Kind::real)) return real(std::abs(call.self.real));
  return m.binary(call.self.whole() < 0 ? Op::negative : Op::positive, call.self, call.self);
}

Value rounded(Machine& m, const Call& call) {
  const Value& v = call.self;
  if (!v.is_number()) return m.work.fail("a value of type {} is no number", m.type_name(v));
  const std::int64_t digits = call[0] ? m.whole(call[0]) : 0;
  if (digits < 0 || digits > static_cast<std::int64_t>(kMostDigits))
    return m.work.fail("a number is rounded to {} digits", digits);
  const std::string_view method = call[1] ? m.text_of(call[1])->view() : "common";
  if (method == "common") {
    if (v.is_whole()) return integer(v.whole());
    if (!std::isfinite(v.real) || std::abs(v.real) > 1e300) return v;
    char text[kNumberBytes];
    m.work.spend(5 * kQuickSteps);
    return read_real(m.work, {text, write_fixed(v.real, static_cast<std::uint32_t>(digits), text)});
  }
  if (method != "ceil" && method != "floor") return m.work.fail("there is no way to round '{:.40}'", method);
  double power = 1;
  for (std::int64_t i = 0; i < digits; ++i) power *= 10;
  const double scaled = v.number() * power;
  return real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power);
}

Value as_json(Machine& m, const Call& call) {
  Style style{.of = Style::json, .sorted = m.is_true(call[3]), .ascii = m.is_true(call[0])};
  if (given(call[1])) {
    if (call[1].is_text()) {
      style.indent = call[1].text;
    } else {
      Writer spaces(m.work);
      spaces.add(" ", static_cast<std::size_t>(std::max<std::int64_t>(m.whole(call[1]), 0)));
      const Value made = spaces.finish();
      if (!made) return {};
      style.indent = made.text;
    }
  }
  if (given(call[2])) {
    const Items separators = m.items(call[2]);
    if (separators.n != 2 || !separators.at[0].is_text() || !separators.at[1].is_text()) {
      return m.work.fail("the separators of 'tojson' must be two texts");
    }
    style.separator = separators.at[0].text;
    style.colon = separators.at[1].text;
  }
  Writer out(m.work);
  m.write(out, call.self, style);
  return out.finish();
}

constexpr Row kFilters[]{
    {"first", "", first_item},
    {"last", "", last_item},
    {"length", "", length_of},
    {"count", "", length_of},
    {"list", "", list_of},
    {"reverse", "", reverse_items},
    {"sort", "?reverse ?case_sensitive ?attribute", sort_items},
    {"dictsort", "?case_sensitive ?by ?reverse", sort_dict},
    {"unique", "?case_sensitive ?attribute", unique_items},
    {"select", "*", select_items<true, false>},
    {"reject", "*", select_items<false, false>},
    {"selectattr", "*", select_items<true, true>},
    {"rejectattr", "*", select_items<false, true>},
    {"map", "*", map_items},
    {"sum", "?attribute ?start", sum_items},
    {"min", "?case_sensitive ?attribute", extreme_item},
    {"max", "?case_sensitive ?attribute", extreme_item},
    {"groupby", "attribute ?default ?case_sensitive", group_items},
    {"batch", "linecount ?fill_with", batch_items},
    {"slice", "slices ?fill_with", slice_items},
    {"items", "", pairs_of},
    {"default", "?default_value ?boolean", default_text},
    {"d", "?default_value ?boolean", default_text},
    {"attr", "name", attribute_of},
    {"int", "?default ?base", whole_of},
    {"float", "?default", real_of},
    {"abs", "", absolute},
    {"round", "?precision ?method", rounded},
    {"tojson", "?ensure_ascii ?indent ?separators ?sort_keys", as_json},
};

}  // namespace

std::span<const Row> list_filters() { return kFilters; }

}  // namespace qsf::templates
