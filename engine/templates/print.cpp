// Values as text: str(), repr() and JSON.
#include <cmath>

#include "templates/characters.h"
#include "templates/machine.h"
#include "templates/number.h"

namespace qsf::templates {
namespace {

/// Adds a character's escape in hexadecimal digits, such as \u00e9.
void add_hexadecimal(Writer& out, char letter, std::uint32_t code, int digits, Origin origin) {
  char text[10]{'\\', letter};
  for (int i = 0; i < digits; ++i) text[2 + i] = "0123456789abcdef"[code >> (4 * (digits - 1 - i)) & 15];
  out.add({text, static_cast<std::size_t>(2 + digits)}, origin);
}

Origin origin_at(const Text& text, std::size_t at) {
  return text.origin == Origin::mixed ? text.origins[at] : text.origin;
}

void add_escaped(Writer& out, char32_t code, Style::Of of, Origin origin) {
  constexpr std::string_view kCodes = "\n\r\t\\\b\f", kNames = "nrt\\bf";
  const std::size_t known = code < 0x80 ? kCodes.find(static_cast<char>(code)) : kCodes.npos;
  const bool is_quote = code == '"' || code == '\'';
  if (is_quote || (known != kCodes.npos && (of == Style::json || known < 4))) {
    const char text[]{'\\', is_quote ? static_cast<char>(code) : kNames[known]};
    out.add({text, 2}, origin);
  } else if (of == Style::json) {
    if (code < 0x10000) return add_hexadecimal(out, 'u', code, 4, origin);
    add_hexadecimal(out, 'u', 0xD7C0 + (code >> 10), 4, origin);
    add_hexadecimal(out, 'u', 0xDC00 + (code & 0x3FF), 4, origin);
  } else if (code < 0x100) {
    add_hexadecimal(out, 'x', code, 2, origin);
  } else {
    code < 0x10000 ? add_hexadecimal(out, 'u', code, 4, origin) : add_hexadecimal(out, 'U', code, 8, origin);
  }
}

}  // namespace

void Machine::write_text(Writer& out, const Text& text, const Style& style) {
  const std::string_view bytes = text.view();
  const bool is_json = style.of == Style::json;
  char quote = '"';
  if (!is_json && (bytes.find('\'') == bytes.npos || bytes.find('"') != bytes.npos)) quote = '\'';
  const auto is_escaped = [&](char32_t code) {
    if (code == static_cast<char32_t>(quote) || code == '\\') return true;
    if (is_json) return code < 0x20 || (code > 0x7E && style.ascii);
    return !is_printable(code);
  };
  out.add({&quote, 1});
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const utf8::Decoded c = utf8::decode(bytes, at);
    if (!work.spend(c.size > 1 || at % 8 == 0 ? 1 : 0)) return;
    if (is_escaped(c.code)) {
      out.add(text, begin, at);
      add_escaped(out, c.code, style.of, origin_at(text, at));
      begin = at + c.size;
    }
    at += c.size;
  }
  out.add(text, begin, bytes.size());
  out.add({&quote, 1});
}

void Machine::write_break(Writer& out, const Style& style, std::uint32_t level) {
  if (style.indent == nullptr) return;
  out.add("\n");
  for (std::uint32_t i = 0; i < level && work.spend(1); ++i) out.add(*style.indent);
}

void Machine::write_list(Writer& out, const List& list, const Style& style) {
  const bool is_tuple = style.of != Style::json && (list.form == Form::tuple || list.form == Form::group);
  out.add(is_tuple ? "(" : "[");
  ++level_;
  for (std::uint32_t i = 0; i < list.size && !work.failed(); ++i) {
    if (i > 0 && style.separator != nullptr) out.add(*style.separator);
    if (i > 0 && style.separator == nullptr) out.add(style.indent != nullptr ? "," : ", ");
    write_break(out, style, level_);
    write(out, list.items[i], style);
  }
  --level_;
  if (list.size > 0) write_break(out, style, level_);
  out.add(is_tuple ? (list.size == 1 ? ",)" : ")") : "]");
}

void Machine::write_dict(Writer& out, const Dict& dict, const Style& style) {
  const std::uint32_t* order_of = nullptr;
  if (style.sorted) {
    Value* const keys = work.make<Value>(dict.size);
    for (std::uint32_t i = 0; i < dict.size && keys != nullptr; ++i) keys[i] = dict.pairs[i].key;
    order_of = work.failed() ? nullptr : sorted(keys, dict.size, false);
  }
  out.add("{");
  ++level_;
  for (std::uint32_t i = 0; i < dict.size && !work.failed(); ++i) {
    const Pair& pair = dict.pairs[order_of == nullptr ? i : order_of[i]];
    if (i > 0 && style.separator != nullptr) out.add(*style.separator);
    if (i > 0 && style.separator == nullptr) out.add(style.indent != nullptr ? "," : ", ");
    write_break(out, style, level_);
    const bool quoted = style.of == Style::json && !pair.key.is_text();
    if (quoted) out.add("\"");
    write(out, pair.key, style);
    if (quoted) out.add("\"");
    style.colon != nullptr ? out.add(*style.colon) : out.add(": ");
    write(out, pair.value, style);
  }
  --level_;
  if (dict.size > 0) write_break(out, style, level_);
  out.add("}");
}

void Machine::write(Writer& out, const Value& value, const Style& given) {
  const Nested nested(work);
  if (!nested || !work.spend(1)) return;
  const bool is_json = given.of == Style::json;
  Style inner = given;
  if (inner.of == Style::plain) inner.of = Style::repr;
  char text[kNumberBytes];
  switch (value.kind) {
    case Kind::text:
      return given.of == Style::plain ? out.add(*value.text) : write_text(out, *value.text, given);
    case Kind::undefined:
      if (given.of == Style::repr) out.add("Undefined");
      if (!is_json) return;
      break;
    case Kind::none:
      return out.add(is_json ? "null" : "None");
    case Kind::boolean:
      return out.add(is_json ? (value.boolean ? "true" : "false") : (value.boolean ? "True" : "False"));
    case Kind::integer:
      return out.add({text, write_whole(value.integer, text)});
    case Kind::real: {
      if (is_json && !std::isfinite(value.real)) {
        return out.add(std::isnan(value.real) ? "NaN" : value.real < 0 ? "-Infinity" : "Infinity");
      }
      return out.add({text, write_real(work, value.real, text)});
    }
    case Kind::list:
      if (is_json && value.list->form > Form::tuple && value.list->form != Form::group) break;
      return write_list(out, *value.list, inner);
    case Kind::dict:
      return write_dict(out, *value.dict, inner);
    default:
      break;
  }
  if (is_json) {
    work.fail("a value of type {} cannot be written as JSON", type_name(value));
    return;
  }
  out.add("<");
  out.add(type_name(value));
  out.add(">");
}

const Text* Machine::text_of(const Value& value) {
  if (value.is_text()) return value.text;
  Writer out(work);
  write(out, value, {});
  const Value made = out.finish();
  return made ? made.text : work.text({});
}

}  // namespace qsf::templates
