// The parts of values: attributes, items, slices, lengths.
#include <algorithm>

#include "templates/characters.h"
#include "templates/machine.h"
#include "templates/number.h"

namespace qsf::templates {

std::string_view Machine::type_name(const Value& value) {
  constexpr std::string_view kNames[]{"missing", "undefined", "None",  "bool",     "int",  "float",  "str",   "list",
                                      "dict",    "namespace", "macro", "function", "loop", "cycler", "joiner"};
  if (value.is(Kind::list) && value.list->form != Form::list) {
    return value.list->form == Form::range ? "range" : value.list->form <= Form::group ? "tuple" : "iterator";
  }
  return kNames[static_cast<std::size_t>(value.kind)];
}

std::int64_t Machine::whole(const Value& value) {
  if (value.is_whole()) return value.whole();
  work.fail("a whole number is needed, not a value of type {}", type_name(value));
  return 0;
}

Value Machine::make_list(Form form, const Value* items, std::uint32_t n) {
  Value made(Kind::list);
  made.list = work.make<List>();
  Value* const copy = work.make<Value>(n);
  if (work.failed()) return {};
  if (items != nullptr) std::copy_n(items, n, copy);
  *made.list = {copy, n, form};
  return made;
}

Dict* Machine::make_dict(std::uint32_t room) {
  Dict* const made = work.make<Dict>();
  Pair* const pairs = work.make<Pair>(room);
  if (work.failed()) return nullptr;
  *made = {pairs, 0, room};
  return made;
}

const Pair* Machine::find(const Pair* pairs, std::uint32_t n, std::string_view key) {
  if (!work.spend(n / 8)) return nullptr;
  for (const Pair* pair = pairs; pair != pairs + n; ++pair) {
    if (pair->key.is_text() && work.same(pair->key.text->view(), key)) return pair;
  }
  return nullptr;
}

void Machine::put(Dict& dict, const Value& key, const Value& value) {
  if (key.is(Kind::dict) || (key.is(Kind::list) && key.list->form == Form::list)) {
    work.fail("a value of type {} is the key of a dict", type_name(key));
    return;
  }
  Value* found = nullptr;
  if (key.is_text()) {
    found = find(dict, key.text->view());
  } else {
    for (std::uint32_t i = 0; i < dict.size && found == nullptr; ++i) {
      if (equal(dict.pairs[i].key, key)) found = &dict.pairs[i].value;
    }
  }
  if (found == nullptr && dict.size == dict.room) {
    const std::uint32_t room = 2 * dict.room + 4;
    Pair* const pairs = work.make<Pair>(room);
    if (pairs == nullptr) return;
    std::copy_n(dict.pairs, dict.size, pairs);
    dict.pairs = pairs;
    dict.room = room;
  }
  if (work.failed()) return;
  if (found == nullptr) {
    dict.pairs[dict.size] = {key, {}};
    found = &dict.pairs[dict.size++].value;
  }
  *found = value;
}

Value Machine::method(const Value& object, std::span<const Row> rows, std::string_view name) {
  const Row* const row = find_row(rows, name);
  if (row == nullptr) return {};
  Value value(Kind::function);
  value.function = work.make<Function>();
  if (value.function == nullptr) return {};
  *value.function = {object, row};
  return value;
}

Value Machine::loop_attribute(const Loop& loop, std::string_view name) {
  const std::pair<std::string_view, std::int64_t> numbers[]{
      {"index", loop.at + 1},
      {"index0", loop.at},
      {"revindex", loop.size - loop.at},
      {"revindex0", loop.size - loop.at - 1},
      {"length", loop.size},
      {"depth", loop.depth + 1},
      {"depth0", loop.depth},
  };
  for (const auto& [of, number] : numbers) {
    if (of == name) return integer(number);
  }
  if (name == "first") return boolean(loop.at == 0);
  if (name == "last") return boolean(loop.at + 1 == loop.size);
  if (name == "previtem") return loop.at == 0 ? undefined(nullptr) : loop.items[loop.at - 1];
  if (name == "nextitem") return loop.at + 1 == loop.size ? undefined(nullptr) : loop.items[loop.at + 1];
  return {};
}

Value Machine::attribute(const Value& object, const Text* name) {
  if (!work.spend(1)) return {};
  const std::string_view key = name->view();
  Value found;
  switch (object.kind) {
    case Kind::undefined:
      if (object.text == nullptr) return work.fail("'{:.60}' of an undefined value is used", key);
      return work.fail("'{:.60}' is undefined, so it has no '{:.60}'", object.text->view(), key);
    case Kind::text:
      found = method(object, text_methods(), key);
      break;
    case Kind::list:
      found = method(object, list_methods(), key);
      if (object.list->form == Form::group && key == "grouper") found = object.list->items[0];
      if (object.list->form == Form::group && key == "list") found = object.list->items[1];
      break;
    case Kind::loop:
      found = loop_attribute(*object.loop, key);
      if (!found) found = method(object, loop_methods(), key);
      break;
    case Kind::cycler:
      if (key == "current") return object.cycler->items->items[object.cycler->at];
      found = method(object, cycler_methods(), key);
      break;
    case Kind::macro:
      if (key == "name" && object.macro->name != nullptr) found = Value(object.macro->name);
      break;
    case Kind::dict:
      found = method(object, dict_methods(), key);
      [[fallthrough]];
    case Kind::space:
      if (found) break;
      if (const Value* const value = find(*object.dict, key); value != nullptr) found = *value;
      break;
    default:
      break;
  }
  return found || work.failed() ? found : undefined(name);
}

Value Machine::item(const Value& object, const Value& key) {
  if (!work.spend(1)) return {};
  if (object.is(Kind::undefined)) {
    if (object.text == nullptr) return work.fail("an item of an undefined value is used");
    return work.fail("'{:.60}' is undefined, so it has no items", object.text->view());
  }
  if (object.is(Kind::dict)) {
    if (key.is_text()) {
      if (const Value* const value = find(*object.dict, key.text->view()); value != nullptr) return *value;
    } else {
      for (std::uint32_t i = 0; i < object.dict->size; ++i) {
        if (equal(object.dict->pairs[i].key, key)) return object.dict->pairs[i].value;
      }
    }
  }
  const bool has_items = object.is_text() || (object.is(Kind::list) && object.list->form <= Form::group);
  if (has_items && key.is_whole()) {
    const std::int64_t n = length(object);
    const std::int64_t at = key.whole() < 0 ? key.whole() + n : key.whole();
    if (at < 0 || at >= n) return undefined(nullptr);
    if (object.is(Kind::list)) return object.list->items[at];
    const std::size_t begin = offset(*object.text, static_cast<std::uint32_t>(at));
    return slice_text(*object.text, begin, begin + utf8::decode(object.text->view(), begin).size);
  }
  return key.is_text() ? attribute(object, key.text) : undefined(nullptr);
}

Value Machine::path(const Value& object, const Value& path) {
  if (path.is_whole()) return item(object, path);
  if (!path.is_text()) return work.fail("the name of an attribute is no text");
  work.spend(path.text->size / 16);
  Value at = object;
  std::size_t begin = 0;
  while (at && begin <= path.text->size) {
    const std::size_t end = std::min<std::size_t>(path.text->view().find('.', begin), path.text->size);
    const Value part = slice_text(*path.text, begin, end);
    if (!part) return {};
    const Value index = read_whole(work, part.text->view(), 10);
    at = item(at, index.is(Kind::integer) && index.integer >= 0 ? index : part);
    begin = end + 1;
  }
  return at;
}

Value Machine::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is(Kind::undefined)) return item(object, start);
  const bool has_items = object.is_text() || (object.is(Kind::list) && object.list->form <= Form::group);
  if (!has_items) return work.fail("a value of type {} has no slices", type_name(object));
  const std::int64_t by = step.is(Kind::none) ? 1 : whole(step);
  if (by == 0) return work.fail("the step of a slice is 0 or no whole number");
  const std::int64_t n = length(object);
  const auto bound = [&](const Value& given, std::int64_t otherwise) {
    if (given.is(Kind::none)) return otherwise;
    const std::int64_t at = whole(given);
    const std::int64_t least = by < 0 ? -1 : 0;
    return std::clamp(at < 0 ? std::max(at, -n - 1) + n : at, least, by < 0 ? n - 1 : n);
  };
  const std::int64_t begin = bound(start, by < 0 ? n - 1 : 0);
  const std::int64_t end = bound(stop, by < 0 ? -1 : n);
  if (work.failed()) return {};
  if (object.is_text() && by == 1) {
    const std::size_t first = offset(*object.text, static_cast<std::uint32_t>(std::min(begin, end)));
    return slice_text(*object.text, first, offset(*object.text, static_cast<std::uint32_t>(end)));
  }
  Writer out(work);
  const Value made =
      make_list(object.is_text() ? Form::list : object.list->form, nullptr, static_cast<std::uint32_t>(n));
  if (!made) return {};
  List& list = *made.list;
  list.size = 0;
  for (std::int64_t at = begin; (by > 0 ? at < end : at > end) && !work.failed();) {
    if (object.is_text()) {
      const std::size_t first = offset(*object.text, static_cast<std::uint32_t>(at));
      out.add(*object.text, first, first + utf8::decode(object.text->view(), first).size);
    } else {
      list.items[list.size++] = object.list->items[at];
    }
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return object.is_text() ? out.finish() : made;
}

Items Machine::items(const Value& value) {
  if (value.is(Kind::list)) {
    const std::uint32_t n = value.list->size;
    if (value.list->form == Form::lazy) value.list->size = 0;
    return {value.list->items, n};
  }
  if (value.is(Kind::undefined)) return {};
  if (!value.is_text() && !value.is(Kind::dict)) {
    work.fail("a value of type {} has no items", type_name(value));
    return {};
  }
  Items made;
  const std::uint32_t n = length(value);
  made.at = work.make<Value>(n);
  if (made.at == nullptr) return {};
  std::size_t at = 0;
  for (; made.n < n && !work.failed(); ++made.n) {
    if (value.is(Kind::dict)) {
      made.at[made.n] = value.dict->pairs[made.n].key;
    } else {
      const std::size_t size = utf8::decode(value.text->view(), at).size;
      made.at[made.n] = slice_text(*value.text, at, at + size);
      at += size;
    }
  }
  return made;
}

std::uint32_t Machine::length(const Value& value) {
  if (value.is_text()) return points(*value.text);
  if (value.is(Kind::dict)) return value.dict->size;
  if (value.is(Kind::list) && value.list->form != Form::lazy) return value.list->size;
  if (value.is(Kind::loop)) return value.loop->size;
  if (!value.is(Kind::undefined)) work.fail("a value of type {} has no length", type_name(value));
  return 0;
}

std::uint32_t Machine::points(const Text& text) {
  if (text.points == 0 && work.spend(text.size / 32)) {
    text.points = static_cast<std::uint32_t>(
        std::ranges::count_if(text.view(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }
  return text.points;
}

std::size_t Machine::offset(const Text& text, std::uint32_t point) {
  const std::uint32_t n = points(text);
  if (n == text.size || work.failed()) return std::min(point, text.size);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < point && at < text.size; ++i) at += utf8::decode(text.view(), at).size;
  work.spend(at / 4);
  return at;
}

std::size_t Machine::search(std::string_view text, std::string_view part, std::size_t from) {
  if (part.empty()) return from <= text.size() ? from : text.npos;
  while (from < text.size() && part.size() <= text.size() - from) {
    const std::size_t at = std::min(text.find(part[0], from), text.size());
    if (!work.spend(1 + (at - from) / 32 + part.size() / 256)) break;
    if (text.substr(at).starts_with(part)) return at;
    from = at + 1;
  }
  return text.npos;
}

std::size_t Machine::search_back(std::string_view text, std::string_view part) {
  if (part.empty()) return text.size();
  for (std::size_t end = text.size(); end >= part.size();) {
    const std::size_t at = text.rfind(part[0], end - part.size());
    if (at == text.npos || !work.spend(1 + (end - part.size() - at) / 8 + part.size() / 256)) break;
    if (text.substr(at).starts_with(part)) return at;
    if (at == 0) break;
    end = at - 1 + part.size();
  }
  return text.npos;
}

Value Machine::slice_text(const Text& text, std::size_t begin, std::size_t end) {
  end = std::max(begin, end);
  const Origin* const origins = text.origin == Origin::mixed ? text.origins + begin : nullptr;
  const Text* const made = work.text(text.view().substr(begin, end - begin), text.origin, origins);
  return work.failed() ? Value() : Value(made);
}

}  // namespace qsf::templates
