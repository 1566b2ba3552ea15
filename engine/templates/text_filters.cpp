// Filters of texts.
#include <algorithm>

#include "templates/characters.h"
#include "templates/text.h"

namespace qsf::templates {
namespace {

Value format_filter(Machine& m, const Call& call) {
  Value values;
  if (call.all.n_named > 0) {
    values = Value(Kind::dict);
    values.dict = m.make_dict(call.all.n_named);
    for (std::uint32_t i = 0; i < call.all.n_named && values.dict != nullptr; ++i) {
      m.put(*values.dict, call.all.named[i].key, call.all.named[i].value);
    }
  } else {
    values = m.make_list(Form::tuple, call.all.values, call.all.n);
  }
  return m.work.failed() ? Value() : format_percent(m, *m.text_of(call.self), values);
}

/// The filter indent: each line after the first, or all; `blank` lines too.
Value indent_text(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  const bool first = m.is_true(call[1]), blank = m.is_true(call[2]);
  const Text* by = call[0].is_text() ? call[0].text : nullptr;
  if (by == nullptr) {
    Writer spaces(m.work);
    spaces.add(" ", static_cast<std::size_t>(std::max<std::int64_t>(whole_argument(m, call, 0, 4), 0)));
    const Value made = spaces.finish();
    if (!made) return {};
    by = made.text;
  }
  Writer out(m.work);
  std::size_t begin = 0;
  m.work.spend(text.size / 8);
  for (bool is_first = true; begin <= text.size && m.work.spend(1); is_first = false) {
    std::size_t at = begin, next = text.size + 1;
    for (; at < text.size && next > text.size; at += next > text.size ? utf8::decode(text.view(), at).size : 0) {
      const utf8::Decoded c = utf8::decode(text.view(), at);
      if (!is_line_end(c.code)) continue;
      next = at + (c.code == '\r' && text.view().substr(at).starts_with("\r\n") ? 2 : c.size);
    }
    if (!is_first) out.add("\n");
    if (is_first ? first : blank || at > begin) out.add(*by);
    out.add(text, begin, at);
    begin = next;
  }
  return out.finish();
}

Value truncate_text(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  const std::int64_t length = whole_argument(m, call, 0, 255), leeway = whole_argument(m, call, 3, 5);
  const Text& end = call[2] ? *m.text_of(call[2]) : *m.work.text("...");
  if (m.points(text) <= length + leeway) return call.self;
  const std::int64_t kept = length - m.points(end);
  if (kept < 0) return m.work.fail("a text is truncated to less than its ending");
  std::size_t to = m.offset(text, static_cast<std::uint32_t>(kept));
  const std::size_t word = m.search_back(text.view().substr(0, to), " ");
  if (!m.is_true(call[1]) && word != std::string_view::npos) to = word;
  Writer out(m.work);
  out.add(text, 0, to);
  out.add(end);
  return out.finish();
}

Value count_words(Machine& m, const Call& call) {
  const Text& text = *m.text_of(call.self);
  std::int64_t n = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size && m.work.spend(1);) {
    const utf8::Decoded c = utf8::decode(text.view(), at);
    const bool is_word = is_letter(c.code) || is_number(c.code) || c.code == '_';
    n += is_word && !inside ? 1 : 0;
    inside = is_word;
    at += c.size;
  }
  return integer(n);
}

/// Adds a text as it is in the path of a URL, or in its query.
void add_encoded(Machine& m, Writer& out, const Value& value, bool in_query) {
  const Text& text = *m.text_of(value);
  const std::string_view kept = in_query ? "_.-~" : "_.-~/";
  for (std::size_t at = 0; at < text.size && m.work.spend(1); ++at) {
    const auto c = static_cast<unsigned char>(text.bytes[at]);
    const Origin origin = text.origin == Origin::mixed ? text.origins[at] : text.origin;
    if (c < 0x80 && (is_digit(c) || is_letter(c) || kept.find(static_cast<char>(c)) != kept.npos)) {
      out.add(text, at, at + 1);
    } else if (c == ' ' && in_query) {
      out.add("+", origin);
    } else {
      const char escape[]{'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};
      out.add({escape, 3}, origin);
    }
  }
}

/// The filter urlencode: a text, or the pairs of a query.
Value encode_url(Machine& m, const Call& call) {
  Writer out(m.work);
  Value given = call.self;
  if (given.is(Kind::dict)) given = m.call_row(*find_row(dict_methods(), "items"), given, {});
  if (!given.is(Kind::list)) {
    add_encoded(m, out, given, false);
    return out.finish();
  }
  for (const Value& one : m.items(given)) {
    const Items pair = m.items(one);
    if (pair.n != 2) return m.work.fail("'urlencode' needs pairs");
    if (out.size() > 0) out.add("&");
    add_encoded(m, out, pair.at[0], true);
    out.add("=");
    add_encoded(m, out, pair.at[1], true);
  }
  return out.finish();
}

Value as_text(Machine& m, const Call& call) { return Value(m.text_of(call.self)); }
Value as_safe(Machine& m, const Call& call) { return mark_safe(m, as_text(m, call)); }

Value escape_text(Machine& m, const Call& call) {
  if (call.self.is_text() && call.self.text->safe && call.row.name != "forceescape") return call.self;
  Writer out(m.work);
  write_escaped(out, *m.text_of(call.self));
  return mark_safe(m, out.finish());
}

constexpr Row kFilters[]{
    {"format", "*", format_filter},
    {"indent", "?width ?first ?blank", indent_text},
    {"truncate", "?length ?killwords ?end ?leeway", truncate_text},
    {"wordcount", "", count_words},
    {"urlencode", "", encode_url},
    {"string", "", as_text},
    {"safe", "", as_safe},
    {"escape", "", escape_text},
    {"e", "", escape_text},
    {"forceescape", "", escape_text},
};

}  // namespace

std::span<const Row> text_filters() { return kFilters; }

}  // namespace qsf::templates
