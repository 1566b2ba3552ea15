#include "templates/text.h"

#include <algorithm>
#include <cmath>

#include "templates/characters.h"
#include "templates/number.h"

namespace qsf::templates {
namespace {

/// The part of a place that says how a value is written: %[flags][width][.precision]type, or after the colon of a
/// place in braces [[fill]align][sign][0][width][,][.precision][type].
struct Placed {
  std::string_view fill;  // empty if not given
  char align = 0, sign = 0;
  bool zeros = false, commas = false;
  std::uint32_t width = 0;
  std::int32_t precision = -1;
  char type = 's';
};

/// Numbers from 100,000,000 are that: no text is so long.
std::uint32_t read_number(std::string_view text, std::size_t& at) {
  std::uint32_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = std::min<std::uint32_t>(number * 10 + static_cast<std::uint32_t>(text[at++] - '0'), 100'000'000);
  }
  return number;
}

/// Writes digits with a comma after each third from the right.
std::size_t with_commas(const char* digits, std::size_t n, char* out) {
  std::size_t whole = 0, size = 0;
  const std::size_t begin = n > 0 && digits[0] == '-' ? 1 : 0;
  while (begin + whole < n && digits[begin + whole] >= '0' && digits[begin + whole] <= '9') ++whole;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t left = begin + whole - i;
    if (i > begin && i < begin + whole && left % 3 == 0) out[size++] = ',';
    out[size++] = digits[i];
  }
  return size;
}

/// Writes a number in the given form, without its sign if there is one, and returns its bytes; 0 after a failure.
std::size_t write_number(Machine& m, const Value& value, const Placed& form, char* out) {
  const bool hexadecimal = (form.type | 0x20) == 'x', real = value.is(Kind::real);
  const bool fixed = (form.type | 0x20) == 'f' || form.type == '%', general = real && form.type == 0;
  const bool usable =
      value.is_number() && !(hexadecimal && (real || form.commas)) && !(form.commas && form.zeros) &&
      (fixed || general ? form.precision <= static_cast<std::int32_t>(kMostDigits) : form.precision < 0) &&
      std::abs(value.number()) < 1e300;
  if (!usable) {
    m.work.fail("a value of type {} cannot be formatted as a number here", m.type_name(value));
    return 0;
  }
  if (general) return write_real(m.work, value.real, out, form.precision);
  if (fixed || real) {
    m.work.spend(5 * kQuickSteps);
    const double number = fixed ? value.number() * (form.type == '%' ? 100 : 1) : std::trunc(value.real) + 0.0;
    const int places = !fixed ? 0 : form.precision < 0 ? 6 : form.precision;
    const std::size_t n = write_fixed(number, static_cast<std::uint32_t>(places), out);
    if (form.type == '%') out[n] = '%';
    return n + (form.type == '%' ? 1 : 0);
  }
  if (!hexadecimal) return write_whole(value.whole(), out);
  const auto number = static_cast<std::uint64_t>(value.whole());
  std::size_t n = 0;
  for (auto left = value.whole() < 0 ? 0 - number : number; n == 0 || left != 0; left /= 16) {
    out[n++] = (form.type == 'x' ? "0123456789abcdef" : "0123456789ABCDEF")[left % 16];
  }
  if (value.whole() < 0) out[n++] = '-';
  std::reverse(out, out + n);
  return n;
}

/// Writes a value in the given form.
void write_formed(Machine& m, Writer& out, const Value& value, const Placed& form) {
  constexpr std::string_view kNumeric = "dixXfF%";
  char digits[kNumberBytes], grouped[kNumberBytes + kNumberBytes / 3 + 1];
  std::string_view bytes;
  const Text* text = nullptr;
  char sign = 0;
  std::size_t length = 0, end = 0;
  const bool is_number = kNumeric.find(form.type) != kNumeric.npos || (form.type == 0 && value.is_number());
  if (is_number) {
    bytes = {digits, write_number(m, value, form, digits)};
    if (form.commas) bytes = {grouped, with_commas(digits, bytes.size(), grouped)};
    sign = form.sign == '-' ? '\0' : form.sign;
    if (bytes.starts_with('-')) {
      sign = '-';
      bytes.remove_prefix(1);
    }
    length = bytes.size() + (sign != 0 ? 1 : 0);
  } else if (form.type == 'r') {
    Writer repr(m.work);
    m.write(repr, value, {.of = Style::repr});
    const Value made = repr.finish();
    text = made ? made.text : nullptr;
  } else {
    text = m.text_of(value);
  }
  if (m.work.failed()) return;
  if (text != nullptr) {
    length = m.points(*text);
    end = text->size;
    if (form.precision >= 0 && static_cast<std::size_t>(form.precision) < length) {
      length = static_cast<std::size_t>(form.precision);
      end = m.offset(*text, static_cast<std::uint32_t>(length));
    }
  }
  const std::size_t missing = form.width > length ? form.width - length : 0;
  const char align = form.align != 0 ? form.align : !is_number ? '<' : form.zeros ? '=' : '>';
  const std::size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const std::string_view fill = !form.fill.empty() ? form.fill : form.zeros ? "0" : " ";
  const std::string_view mark(&sign, sign != 0 ? 1 : 0);
  if (align == '=') out.add(mark);  // the sign, then zeros or the like
  out.add(fill, before);
  if (align != '=') out.add(mark);
  text != nullptr ? out.add(*text, 0, end) : out.add(bytes);
  out.add(fill, missing - before);
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

/// Reads the form of a place in braces. Returns false if it is another.
bool read_form(std::string_view text, Placed& form) {
  std::size_t at = 0;
  const auto next = [&](char c) {
    const bool found = at < text.size() && text[at] == c;
    at += found ? 1 : 0;
    return found;
  };
  form.type = 0;
  const std::size_t first = text.empty() ? 0 : utf8::decode(text, 0).size;
  if (first < text.size() && is_align(text[first])) {
    form.fill = text.substr(0, first);
    form.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    form.align = text[at++];
  }
  form.sign = next('+') ? '+' : next(' ') ? ' ' : next('-') ? '-' : '\0';
  form.zeros = next('0');
  form.width = read_number(text, at);
  form.commas = next(',');
  if (next('.')) form.precision = static_cast<std::int32_t>(read_number(text, at));
  constexpr std::string_view kTypes = "sdxXfF%";
  if (at < text.size() && kTypes.find(text[at]) != kTypes.npos) form.type = text[at++];
  return at == text.size();
}

/// Whether str.format() takes the form for a value, or for its text if it is `converted`.
bool fits(const Value& value, const Placed& form, bool converted) {
  if (converted || value.is_text()) {
    return (form.type == 0 || form.type == 's') && form.sign == 0 && !form.commas && form.align != '=';
  }
  return value.is_number() && form.type != 's' && !(form.type == 'd' && value.is(Kind::real));
}

}  // namespace

void write_escaped(Writer& out, const Text& text) {
  constexpr std::string_view kCharacters = "&<>\"'";
  constexpr std::string_view kNames[]{"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size; ++at) {
    const std::size_t which = kCharacters.find(text.bytes[at]);
    if (which == kCharacters.npos) continue;
    out.add(text, begin, at);
    out.add(kNames[which], text.origin == Origin::mixed ? text.origins[at] : text.origin);
    begin = at + 1;
  }
  out.add(text, begin, text.size);
}

Value mark_safe(Machine& machine, const Value& text) {
  if (!text) return text;
  Text* const made = machine.work.make<Text>();
  if (made == nullptr) return {};
  *made = *text.text;
  made->safe = true;
  return Value(made);
}

Value format_percent(Machine& m, const Text& format, const Value& values) {
  const bool is_tuple = values.is(Kind::list) && values.list->form == Form::tuple;
  const std::uint32_t n = is_tuple ? values.list->size : 1;
  const std::string_view bytes = format.view();
  m.work.spend(bytes.size() / 8);
  Writer out(m.work);
  std::uint32_t used = 0;
  std::size_t begin = 0;
  for (std::size_t at = bytes.find('%'); at != bytes.npos && m.work.spend(1); at = bytes.find('%', begin)) {
    out.add(format, begin, at++);
    Value value;
    if (at < bytes.size() && bytes[at] == '(') {
      const std::size_t close = std::min(bytes.find(')', at), bytes.size());
      const Value* const named =
          values.is(Kind::dict) ? m.find(*values.dict, bytes.substr(at + 1, close - at - 1)) : nullptr;
      if (named == nullptr) return m.work.fail("a named place of a format has no value");
      value = *named;
      at = std::min(close + 1, bytes.size());
      used = n;
    }
    Placed form;
    bool left = false;
    for (; at < bytes.size() && (bytes[at] == '-' || bytes[at] == '0' || bytes[at] == '+' || bytes[at] == ' '); ++at) {
      left = left || bytes[at] == '-';
      form.zeros = form.zeros || bytes[at] == '0';
      if (bytes[at] == '+' || (bytes[at] == ' ' && form.sign == 0)) form.sign = bytes[at];
    }
    form.width = read_number(bytes, at);
    if (at < bytes.size() && bytes[at] == '.') {
      ++at;
      form.precision = static_cast<std::int32_t>(read_number(bytes, at));
    }
    constexpr std::string_view kTypes = "sdirfFxX%";
    const std::size_t type = at < bytes.size() ? kTypes.find(bytes[at]) : kTypes.npos;
    if (type == kTypes.npos) return m.work.fail("a place of a format has an unknown type");
    begin = at + 1;
    if (bytes[at] == '%') {
      out.add("%");
      continue;
    }
    if (!value && used >= n) return m.work.fail("a format has more places than values");
    if (!value) value = is_tuple ? values.list->items[used] : values;
    if (used < n) ++used;
    form.type = bytes[at];
    form.zeros = form.zeros && !left && form.type != 's' && form.type != 'r';
    form.align = left ? '<' : form.zeros ? '=' : '>';
    write_formed(m, out, value, form);
  }
  if (used < n && !values.is(Kind::dict)) return m.work.fail("a format has fewer places than values");
  out.add(format, begin, bytes.size());
  return out.finish();
}

Value format_braces(Machine& m, const Text& format, const Arguments& arguments) {
  const std::string_view bytes = format.view();
  m.work.spend(bytes.size() / 8);
  Writer out(m.work);
  std::uint32_t next = 0;
  bool numbered = false;
  std::size_t begin = 0;
  for (std::size_t at = bytes.find_first_of("{}"); at != bytes.npos && m.work.spend(1);
       at = bytes.find_first_of("{}", begin)) {
    out.add(format, begin, at);
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.add(format, at, at + 1);
      begin = at + 2;
      continue;
    }
    const std::size_t close = bytes.find('}', at + 1);
    if (bytes[at] == '}' || close == bytes.npos) return m.work.fail("a format has a brace that is not closed");
    std::string_view place = bytes.substr(at + 1, close - at - 1);
    begin = close + 1;
    Placed form;
    const std::size_t colon = place.find(':');
    std::string_view style = colon == place.npos ? std::string_view() : place.substr(colon + 1);
    place = place.substr(0, colon);
    const bool repr = place.ends_with("!r"), converted = repr || place.ends_with("!s");
    if (converted) place.remove_suffix(2);
    const std::size_t name_end = std::min(place.find_first_of(".["), place.size());
    const std::string_view name = place.substr(0, name_end);
    const Value index = read_whole(m.work, name, 10);
    const bool has_index = index.is(Kind::integer);
    if (name.empty() ? numbered : has_index && next > 0)
      return m.work.fail("a format has places with and without numbers");
    Value value;
    if (name.empty()) {
      value = arguments[next++];
    } else if (has_index) {
      numbered = true;
      value = arguments[static_cast<std::uint32_t>(std::min<std::int64_t>(index.integer, 0xFFFFFFFF))];
    }
    if (const Pair* const named = m.named(arguments, name); named != nullptr && !value) value = named->value;
    for (std::string_view rest = place.substr(name_end); value && !rest.empty();) {
      const bool is_item = rest[0] == '[';
      const std::size_t end = std::min(is_item ? rest.find(']') : rest.find_first_of(".[", 1), rest.size());
      const Value key = m.work.text_value(rest.substr(1, end - 1));
      if (end < 2 || (is_item ? end == rest.size() : rest[0] != '.')) return m.work.fail("a place of a format is cut");
      const Value number = is_item && rest[1] != '-' ? read_whole(m.work, key.text->view(), 10) : Value();
      value = is_item ? m.item(value, number.is(Kind::integer) ? number : key) : m.attribute(value, key.text);
      rest.remove_prefix(end + (is_item ? 1 : 0));
    }
    if (!value) return m.work.fail("a place of a format has no value");
    if (!style.empty() && (!read_form(style, form) || !fits(value, form, converted)))
      return m.work.fail("a place of a format has an unknown form");
    if (converted) form.type = repr ? 'r' : 's';
    write_formed(m, out, value, form);
  }
  out.add(format, begin, bytes.size());
  return out.finish();
}

}  // namespace qsf::templates
