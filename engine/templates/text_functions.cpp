// The methods of texts, and the filters of the same names.
#include <algorithm>

#include "templates/characters.h"
#include "templates/text.h"

namespace qsf::templates {
namespace {

/// Returns a text argument, or fails with null.
const Text* text_argument(Machine& m, const Call& call, std::uint32_t i) {
  if (call[i].is_text()) return call[i].text;
  m.work.fail("'{:.40}' needs a text, not a value of type {}", call.row.name, m.type_name(call[i]));
  return nullptr;
}

enum class Case : std::uint8_t { upper, lower, capital, title, words };

/// Begins a word of the filter `title` after these characters.
bool parts_words(char32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; }

template <Case kCase>
Value change_case(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  Writer out(m.work);
  bool begins = true;
  for (std::size_t at = 0; at < text.size && m.work.spend(1);) {
    const utf8::Decoded c = utf8::decode(text.view(), at);
    if (c.size > 1) m.work.spend(8);
    const bool up = kCase == Case::upper || (kCase != Case::lower && begins);
    char32_t codes[3];
    const std::size_t n = up ? upper(c.code, codes) : lower(c.code, codes);
    char bytes[12];
    std::size_t size = 0;
    for (std::size_t i = 0; i < n; ++i) size += utf8::encode(codes[i], bytes + size);
    out.add({bytes, size}, text.origin == Origin::mixed ? text.origins[at] : text.origin);
    begins = kCase == Case::title ? !is_letter(c.code) : kCase == Case::words && parts_words(c.code);
    at += c.size;
  }
  return out.finish();
}

/// strip, lstrip and rstrip; the filter trim.
Value strip_text(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  std::string_view set;
  const bool has_set = call[0] && !call[0].is(Kind::none);
  if (has_set) {
    const Text* const characters = text_argument(m, call, 0);
    if (characters == nullptr) return {};
    set = characters->view();
  }
  const char side = call.row.name[0];
  const std::string_view left = strip(text.view(), side != 'r', side != 'l', set, has_set ? &m.work : nullptr);
  m.work.spend(text.size - left.size());
  const std::size_t begin = left.empty() ? 0 : static_cast<std::size_t>(left.data() - text.bytes);
  return m.slice_text(text, begin, begin + left.size());
}

/// A growing list of parts of a text.
class Parts {
 public:
  Parts(Machine& m, const Text& text) : m_(m), text_(text), made_(m.make_list(Form::list, nullptr, 0)) {}

  void add(std::size_t begin, std::size_t end) {
    if (!made_) return;
    List& list = *made_.list;
    if (list.size == room_) {
      room_ = 2 * room_ + 4;
      Value* const items = m_.work.make<Value>(room_);
      if (items == nullptr) return;
      std::copy_n(list.items, list.size, items);
      list.items = items;
    }
    list.items[list.size++] = m_.slice_text(text_, begin, end);
  }
  Value reversed() {
    if (made_) std::reverse(made_.list->items, made_.list->items + made_.list->size);
    return made_;
  }
  Value made() const { return made_; }

 private:
  Machine& m_;
  const Text& text_;
  Value made_;
  std::uint32_t room_ = 0;
};

/// Splits at white space.
Value split_words(Machine& m, const Text& text, std::int64_t most, bool from_right) {
  Parts parts(m, text);
  const std::string_view bytes = text.view();
  std::size_t begin = 0, end = bytes.size();  // of the rest
  while (m.work.spend(1)) {
    // Only the side from which words are taken loses its white space.
    const std::string_view rest = strip(bytes.substr(begin, end - begin), !from_right, from_right);
    if (!m.work.spend(end - begin - rest.size()) || rest.empty()) break;
    begin = static_cast<std::size_t>(rest.data() - bytes.data());
    end = begin + rest.size();
    if (most == 0) {
      parts.add(begin, end);
      break;
    }
    --most;
    std::size_t word = from_right ? end : begin;
    if (from_right) {
      while (word > begin && space_size(bytes, word - last_size(bytes, word)) == 0) word -= last_size(bytes, word);
      parts.add(word, end);
      m.work.spend(end - word);
      end = word;
    } else {
      while (word < end && space_size(bytes, word) == 0) word += utf8::decode(bytes, word).size;
      parts.add(begin, word);
      m.work.spend(word - begin);
      begin = word;
    }
  }
  return from_right ? parts.reversed() : parts.made();
}

/// split and rsplit.
Value split_text(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const bool from_right = call.row.name[0] == 'r';
  std::int64_t most = whole_argument(m, call, 1, -1);
  if (!call[0] || call[0].is(Kind::none)) return split_words(m, text, most, from_right);
  const Text* const by = text_argument(m, call, 0);
  if (by == nullptr || by->size == 0) return m.work.fail("a text is split by an empty text");
  Parts parts(m, text);
  std::size_t begin = 0, end = text.size;
  while (most != 0) {
    const std::string_view rest = text.view().substr(begin, end - begin);
    const std::size_t found = from_right ? m.search_back(rest, by->view()) : m.search(rest, by->view());
    if (found == rest.npos) break;
    if (from_right) {
      parts.add(begin + found + by->size, end);
      end = begin + found;
    } else {
      parts.add(begin, begin + found);
      begin += found + by->size;
    }
    --most;
  }
  parts.add(begin, end);
  return from_right ? parts.reversed() : parts.made();
}

Value split_lines(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const bool keeps = m.is_true(call[0]);
  Parts parts(m, text);
  std::size_t begin = 0;
  m.work.spend(text.size / 4);
  for (std::size_t at = 0; at < text.size && !m.work.failed();) {
    const utf8::Decoded c = utf8::decode(text.view(), at);
    const std::size_t line = at;
    at += c.size;
    if (!is_line_end(c.code)) continue;
    if (c.code == '\r' && at < text.size && text.bytes[at] == '\n') ++at;
    parts.add(begin, keeps ? at : line);
    begin = at;
  }
  if (begin < text.size) parts.add(begin, text.size);
  return parts.made();
}

/// partition and rpartition.
Value part_text(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const Text* const by = text_argument(m, call, 0);
  if (by == nullptr || by->size == 0) return m.work.fail("a text is split by an empty text");
  const bool last = call.row.name[0] == 'r';
  const std::size_t at = last ? m.search_back(text.view(), by->view()) : m.search(text.view(), by->view());
  const bool found = at != std::string_view::npos;
  const std::size_t first = found ? at : last ? 0 : text.size, second = found ? at + by->size : first;
  const Value parts[]{m.slice_text(text, 0, first), m.slice_text(text, first, second),
                      m.slice_text(text, second, text.size)};
  return m.make_list(Form::tuple, parts, 3);
}

/// The bytes between the arguments `start` and `end`, which are characters, and the number of these; it is negative if
/// `start` is after `end`, where not even an empty text is found.
struct Range {
  std::string_view bytes;
  std::size_t begin;
  std::int64_t points;
};
Range range_of(Machine& m, const Text& text, const Call& call, std::uint32_t first) {
  const std::int64_t n = m.points(text);
  const auto bound = [&](std::uint32_t i, std::int64_t otherwise) {
    const std::int64_t at = whole_argument(m, call, i, otherwise);
    return at < 0 ? std::max<std::int64_t>(at + n, 0) : at;
  };
  const std::int64_t from = bound(first, 0), to = std::min(bound(first + 1, n), n);
  if (from > to) return {{}, 0, -1};
  const std::size_t begin = m.offset(text, static_cast<std::uint32_t>(from));
  const std::size_t end = m.offset(text, static_cast<std::uint32_t>(to));
  return {text.view().substr(begin, end - begin), begin, to - from};
}

/// find, rfind, index, rindex and count.
Value find_text(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const Text* const wanted = text_argument(m, call, 0);
  if (wanted == nullptr) return {};
  const Range range = range_of(m, text, call, 1);
  const std::string_view inside = range.bytes;
  if (call.row.name == "count") {
    if (wanted->size == 0) return integer(range.points + 1);
    std::int64_t n = 0;
    for (std::size_t at = m.search(inside, wanted->view()); at != inside.npos; ++n) {
      at = m.search(inside, wanted->view(), at + wanted->size);
    }
    return integer(n);
  }
  const bool from_right = call.row.name[0] == 'r';
  const std::size_t at = from_right ? m.search_back(inside, wanted->view()) : m.search(inside, wanted->view());
  if (at == inside.npos || range.points < 0) {
    if (call.row.name.ends_with("index")) return m.work.fail("'{:.40}' finds nothing", call.row.name);
    return integer(-1);
  }
  const Value before = m.slice_text(text, 0, range.begin + at);
  return before ? integer(m.points(*before.text)) : before;
}

/// Whether a text begins or ends with another.
bool has_at_end(Machine& m, std::string_view text, std::string_view affix, bool front) {
  return m.work.spend(affix.size() / 32) && (front ? text.starts_with(affix) : text.ends_with(affix));
}

/// startswith and endswith.
Value has_affix(Machine& m, const Call& call) {
  const Range range = range_of(m, *call.self.text, call, 1);
  const bool is_tuple = call[0].is(Kind::list) && call[0].list->form == Form::tuple;
  const Items wanted = is_tuple ? m.items(call[0]) : Items{};
  const std::uint32_t n = is_tuple ? wanted.n : 1;
  for (std::uint32_t i = 0; i < n && m.work.spend(1); ++i) {
    const Value one = is_tuple ? wanted.at[i] : call[0];
    if (!one.is_text())
      return m.work.fail("'{:.40}' needs a text, not a value of type {}", call.row.name, m.type_name(one));
    const bool has = has_at_end(m, range.bytes, one.text->view(), call.row.name[0] == 's');
    if (has && range.points >= 0) return boolean(true);
  }
  return boolean(false);
}

/// removeprefix and removesuffix.
Value remove_affix(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const Text* const affix = text_argument(m, call, 0);
  if (affix == nullptr) return {};
  const bool front = call.row.name == "removeprefix";
  if (!has_at_end(m, text.view(), affix->view(), front)) return call.self;
  return m.slice_text(text, front ? affix->size : 0, text.size - (front ? 0 : affix->size));
}

Value replace_text(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  const Text& old = *m.text_of(call[0]);
  const Text& with = *m.text_of(call[1]);
  std::int64_t most = whole_argument(m, call, 2, -1);
  Writer out(m.work);
  std::size_t begin = 0;
  while (most != 0) {
    std::size_t at = m.search(text.view(), old.view(), begin);
    if (old.size == 0) {  // before each character and at the end
      out.add(with);
      if (begin >= text.size) break;
      at = begin + utf8::decode(text.view(), begin).size;
    }
    if (at == std::string_view::npos) break;
    out.add(text, begin, at);
    if (old.size != 0) out.add(with);
    begin = at + old.size;
    --most;
  }
  out.add(text, begin, text.size);
  return out.finish();
}

/// Joins values; a method of the separator, whose items must be texts, or a filter of the items.
template <bool kFilter>
Value join_texts(Machine& m, const Call& call) {
  Writer out(m.work);
  const Value separator = kFilter ? call[0] : call.self;
  bool first = true;
  for (const Value& given : m.items(kFilter ? call.self : call[0])) {
    const Value value = kFilter && call[1] && !call[1].is(Kind::none) ? m.path(given, call[1]) : given;
    if (!value) return {};
    if (!kFilter && !value.is_text())
      return m.work.fail("join() needs texts, not a value of type {}", m.type_name(value));
    if (!first && separator) m.write(out, separator, {});
    m.write(out, value, {});
    first = false;
  }
  return out.finish();
}

/// center, ljust, rjust and zfill.
Value pad_text(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  const std::int64_t width = whole_argument(m, call, 0, 80);
  const Text* const fill = call[1] ? text_argument(m, call, 1) : m.work.text(call.row.name[0] == 'z' ? "0" : " ");
  if (fill == nullptr || fill->size == 0) return m.work.fail("a text is filled with nothing");
  const std::int64_t n = m.points(text);
  const auto missing = static_cast<std::size_t>(std::max<std::int64_t>(width - n, 0));
  const char side = call.row.name[0];
  const std::size_t odd = missing % 2 != 0 && width % 2 != 0 ? 1 : 0;
  const std::size_t before = side == 'l' ? 0 : side == 'c' ? missing / 2 + odd : missing;
  Writer out(m.work);
  const bool has_sign = side == 'z' && text.size > 0 && (text.bytes[0] == '-' || text.bytes[0] == '+');
  out.add(text, 0, has_sign ? 1 : 0);
  for (std::size_t i = 0; i < before && m.work.spend(1); ++i) out.add(*fill);
  out.add(text, has_sign ? 1 : 0, text.size);
  for (std::size_t i = before; i < missing && m.work.spend(1); ++i) out.add(*fill);
  return out.finish();
}

/// isalpha, isdigit, isdecimal, isnumeric, isalnum, isspace, isupper and islower.
Value has_only(Machine& m, const Call& call) {
  const Text& text = *call.self.text;
  const char kind = call.row.name == "isalnum" ? '\0' : call.row.name[2];
  bool has = false;
  for (std::size_t at = 0; at < text.size && m.work.spend(1);) {
    const utf8::Decoded c = utf8::decode(text.view(), at);
    at += c.size;
    if (kind == 'u' || kind == 'l') {
      if (kind == 'u' ? is_lower(c.code) : is_upper(c.code)) return boolean(false);
      has = has || (kind == 'u' ? is_upper(c.code) : is_lower(c.code));
      continue;
    }
    has = kind == 's'   ? is_space(c.code)
          : kind == 'd' ? is_digit(c.code)
          : kind == 'n' ? is_number(c.code)
                        : is_letter(c.code) || (kind != 'a' && is_number(c.code));
    if (!has) return boolean(false);
  }
  return boolean(has);
}

Value format_method(Machine& m, const Call& call) { return format_braces(m, *call.self.text, call.all); }

constexpr Row kMethods[]{
    {"upper", "", change_case<Case::upper>},
    {"lower", "", change_case<Case::lower>},
    {"casefold", "", change_case<Case::lower>},
    {"capitalize", "", change_case<Case::capital>},
    {"title", "", change_case<Case::title>},
    {"strip", "?chars", strip_text},
    {"lstrip", "?chars", strip_text},
    {"rstrip", "?chars", strip_text},
    {"split", "?sep ?maxsplit", split_text},
    {"rsplit", "?sep ?maxsplit", split_text},
    {"splitlines", "?keepends", split_lines},
    {"partition", "sep", part_text},
    {"rpartition", "sep", part_text},
    {"find", "sub ?start ?end", find_text},
    {"rfind", "sub ?start ?end", find_text},
    {"index", "sub ?start ?end", find_text},
    {"rindex", "sub ?start ?end", find_text},
    {"count", "sub ?start ?end", find_text},
    {"startswith", "prefix ?start ?end", has_affix},
    {"endswith", "suffix ?start ?end", has_affix},
    {"removeprefix", "prefix", remove_affix},
    {"removesuffix", "suffix", remove_affix},
    {"replace", "old new ?count", replace_text},
    {"join", "iterable", join_texts<false>},
    {"format", "*", format_method},
    {"center", "width ?fillchar", pad_text},
    {"ljust", "width ?fillchar", pad_text},
    {"rjust", "width ?fillchar", pad_text},
    {"zfill", "width", pad_text},
    {"isalpha", "", has_only},
    {"isalnum", "", has_only},
    {"isdigit", "", has_only},
    {"isdecimal", "", has_only},
    {"isnumeric", "", has_only},
    {"isspace", "", has_only},
    {"isupper", "", has_only},
    {"islower", "", has_only},
};

constexpr Row kFilters[]{
    {"upper", "", change_case<Case::upper>},
    {"lower", "", change_case<Case::lower>},
    {"capitalize", "", change_case<Case::capital>},
    {"title", "", change_case<Case::words>},
    {"trim", "?chars", strip_text},
    {"replace", "old new ?count", replace_text},
    {"join", "?d ?attribute", join_texts<true>},
    {"center", "?width", pad_text},
};

}  // namespace

std::span<const Row> method_filters() { return kFilters; }
std::span<const Row> text_methods() { return kMethods; }

}  // namespace qsf::templates
