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
  std::string_view fill = " ";
  char align = 0;
  bool plus = false, commas = false;
  std::uint32_t width = 0;
  std::int32_t precision = -1;
  char type = 's';
};

std::uint32_t read_number(std::string_view text, std::size_t& at) {
  std::uint32_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = std::min<std::uint32_t>(number * 10 + static_cast<std::uint32_t>(text[at++] - '0'), 100'000);
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

/// Writes a value in the given form.
void write_formed(Machine& m, Writer& out, const Value& value, const Placed& form) {
  constexpr std::string_view kNumeric = "dixXfF%";
  char digits[kNumberBytes], grouped[kNumberBytes + kNumberBytes / 3 + 1];
  std::string_view bytes;
  const Text* text = nullptr;
  std::size_t length = 0;
  const bool is_number = kNumeric.find(form.type) != kNumeric.npos || (form.type == 0 && value.is_number());
  if (is_number) {
    const bool fixed = form.type == 'f' || form.type == 'F' || form.type == '%' ||
                       (form.type == 0 && form.precision >= 0 && value.is(Kind::real));
    const bool usable = value.is_number() && (fixed || !value.is(Kind::real) || form.type != 'x') &&
                        form.precision <= static_cast<std::int32_t>(kMostDigits) && std::abs(value.number()) < 1e300;
    if (!usable) {
      m.work.fail("a value of type {} cannot be formatted as a number here", m.type_name(value));
      return;
    }
    m.work.spend(fixed ? 5 * kQuickSteps : 1);
    std::size_t n = 0;
    if (fixed) {
      const double number = value.number() * (form.type == '%' ? 100 : 1);
      n = write_fixed(number, form.precision < 0 ? 6 : static_cast<std::uint32_t>(form.precision), digits);
      if (form.type == '%') digits[n++] = '%';
    } else if (form.type == 'x' || form.type == 'X') {
      auto left = static_cast<std::uint64_t>(std::abs(value.whole()));
      const char* const letters = form.type == 'x' ? "0123456789abcdef" : "0123456789ABCDEF";
      do {
        digits[n++] = letters[left % 16];
        left /= 16;
      } while (left != 0);
      if (value.whole() < 0) digits[n++] = '-';
      std::reverse(digits, digits + n);
    } else if (value.is(Kind::real) && form.type == 0) {
      std::uint32_t steps = 0;
      n = write_real(value.real, digits, steps);
      m.work.spend(steps);
    } else {
      n = write_whole(value.is(Kind::real) ? static_cast<std::int64_t>(value.real) : value.whole(), digits);
    }
    if (form.commas) {
      n = with_commas(digits, n, grouped);
      bytes = {grouped, n};
    } else {
      bytes = {digits, n};
    }
    length = n + (form.plus && digits[0] != '-' ? 1 : 0);
  } else if (form.type == 'r') {
    Writer repr(m.work);
    m.write(repr, value, {.of = Style::repr});
    const Value made = repr.finish();
    text = made ? made.text : nullptr;
  } else {
    text = m.text_of(value);
  }
  if (m.work.failed()) return;
  std::size_t end = 0;
  if (text != nullptr) {
    length = m.points(*text);
    end = text->size;
    if (form.precision >= 0 && static_cast<std::size_t>(form.precision) < length) {
      length = static_cast<std::size_t>(form.precision);
      end = m.offset(*text, static_cast<std::uint32_t>(length));
    }
  }
  const std::size_t missing = form.width > length ? form.width - length : 0;
  const char align = form.align != 0 ? form.align : is_number ? '>' : '<';
  const std::size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const bool plus = is_number && form.plus && !bytes.starts_with('-');
  if (align == '=') {  // zeros after the sign
    if (bytes.starts_with('-')) out.add("-");
    if (plus) out.add("+");
    out.add(form.fill, missing);
    if (bytes.starts_with('-')) bytes.remove_prefix(1);
  } else {
    out.add(form.fill, before);
    if (plus) out.add("+");
  }
  text != nullptr ? out.add(*text, 0, end) : out.add(bytes);
  if (align != '=') out.add(form.fill, missing - before);
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
  form.plus = next('+');
  if (next('0')) {
    form.fill = "0";
    if (form.align == 0) form.align = '=';
  }
  form.width = read_number(text, at);
  form.commas = next(',');
  if (next('.')) form.precision = static_cast<std::int32_t>(read_number(text, at));
  constexpr std::string_view kTypes = "sdxXf%";
  if (at < text.size() && kTypes.find(text[at]) != kTypes.npos) form.type = text[at++];
  return at == text.size();
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
    form.align = '>';
    for (; at < bytes.size() && (bytes[at] == '-' || bytes[at] == '0' || bytes[at] == '+' || bytes[at] == ' '); ++at) {
      if (bytes[at] == '-') form.align = '<';
      if (bytes[at] == '+') form.plus = true;
      if (bytes[at] == '0' && form.align == '>') {
        form.align = '=';
        form.fill = "0";
      }
    }
    form.width = read_number(bytes, at);
    if (at < bytes.size() && bytes[at] == '.') {
      ++at;
      form.precision = static_cast<std::int32_t>(read_number(bytes, at));
    }
    constexpr std::string_view kTypes = "sdirfxX%";
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
    const bool repr = place.ends_with("!r");
    if (repr || place.ends_with("!s")) place.remove_suffix(2);
    const std::size_t name_end = std::min(place.find_first_of(".["), place.size());
    const std::string_view name = place.substr(0, name_end);
    Value value;
    if (name.empty()) {
      value = arguments[next++];
    } else if (const Value index = read_whole(m.work, name, 10)) {
      value = arguments[static_cast<std::uint32_t>(std::min<std::int64_t>(index.integer, 0xFFFFFFFF))];
    }
    if (const Pair* const named = m.named(arguments, name); named != nullptr && !value) value = named->value;
    if (value && name_end < place.size()) {
      std::string_view rest = place.substr(name_end + 1);
      if (place[name_end] == '[' && rest.ends_with(']')) rest.remove_suffix(1);
      value = m.path(value, m.work.text_value(rest));
    }
    if (!value) return m.work.fail("a place of a format has no value");
    if (!read_form(style, form)) return m.work.fail("a place of a format has an unknown form");
    if (repr) form.type = 'r';
    write_formed(m, out, value, form);
  }
  out.add(format, begin, bytes.size());
  return out.finish();
}

}  // namespace qsf::templates
