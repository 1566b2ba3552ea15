// The variables of a template, from JSON.
#include <algorithm>

#include "templates/characters.h"
#include "templates/machine.h"
#include "templates/number.h"

namespace qsf::templates {
namespace {

class JsonReader {
 public:
  JsonReader(Machine& m, std::string_view text, Origin origin) : m_(m), text_(text), origin_(origin) {}

  Value read() {
    if (!utf8::is_valid(text_)) return fail("text that is not UTF-8");
    const Value value = read_value();
    skip_space();
    return value && at_ < text_.size() ? fail("more than one value") : value;
  }

 private:
  Value fail(std::string_view what) {
    const FormatValue values[]{FormatValue(what), FormatValue(at_)};
    return m_.work.fail_with(ErrorCode::bad_input, "the variables of a chat template have {} at byte {}", values,
                             format_kinds<std::string_view, std::size_t>());
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool take(char c) {
    skip_space();
    const bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found ? 1 : 0;
    return found;
  }
  bool take(std::string_view word) {
    const bool found = text_.substr(at_).starts_with(word);
    if (found) at_ += word.size();
    return found;
  }

  Value read_value() {
    const Nested nested(m_.work);
    if (!nested || !m_.work.spend(1)) return {};
    skip_space();
    if (take('{')) return read_dict();
    if (take('[')) return read_list();
    if (take('"')) return read_text();
    if (take("true")) return boolean(true);
    if (take("false")) return boolean(false);
    if (take("null")) return Value(Kind::none);
    const std::size_t end = std::min(text_.find_first_not_of("+-.eE0123456789", at_), text_.size());
    const std::string_view number = text_.substr(at_, end - at_);
    if (number.empty() || !(is_digit(static_cast<unsigned char>(number.back())))) return fail("no value");
    at_ = end;
    Value value;
    if (number.find_first_of(".eE") == number.npos) value = read_whole(m_.work, number, 10);
    if (!value.is(Kind::integer)) value = read_real(m_.work, number);
    return value ? value : fail("no number");
  }

  Value read_list() {
    Value made = m_.make_list(Form::list, nullptr, 0);
    std::uint32_t room = 0;
    if (!made || take(']')) return made;
    do {
      const Value value = read_value();
      if (!value) return {};
      List& list = *made.list;
      if (list.size == room) {
        room = 2 * room + 4;
        Value* const items = m_.work.make<Value>(room);
        if (items == nullptr) return {};
        std::copy_n(list.items, list.size, items);
        list.items = items;
      }
      list.items[list.size++] = value;
    } while (take(','));
    return take(']') ? made : fail("a list that is not closed");
  }

  Value read_dict() {
    Value made(Kind::dict);
    made.dict = m_.make_dict(4);
    if (made.dict == nullptr || take('}')) return made.dict == nullptr ? Value() : made;
    do {
      const Value key = take('"') ? read_text() : fail("no name");
      if (!key) return {};
      if (!take(':')) return fail("no colon");
      Value value = read_value();
      if (!value) return {};
      // Templates write special tokens with roles, such as <|user|>. A role cannot contain one.
      if (key.text->view() == "role" && value.is_text() && is_identifier(value.text->view())) {
        value = m_.work.text_value(value.text->view());
      }
      m_.put(*made.dict, key, value);
    } while (take(','));
    return take('}') ? made : fail("an object that is not closed");
  }

  static bool is_identifier(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  }

  bool read_hexadecimal(char32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= text_.size() || digit_value(text_[at_]) > 15) return false;
      code = code * 16 + static_cast<char32_t>(digit_value(text_[at_]));
    }
    return true;
  }

  /// Reads an escape after its backslash.
  bool read_escape(Writer& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : 0;
    if (const std::size_t known = kNames.find(c); known != kNames.npos && c != 0) {
      out.add(kValues.substr(known, 1), origin_);
      return true;
    }
    char32_t code = 0;
    if (c != 'u' || !read_hexadecimal(code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const std::size_t before = at_;
      char32_t low = 0;
      at_ += 2;
      if (read_hexadecimal(low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = before;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;  // half of a pair
    char bytes[4];
    out.add({bytes, utf8::encode(code, bytes)}, origin_);
    return true;
  }

  Value read_text() {
    const std::size_t begin = at_;
    std::size_t end = text_.find_first_of("\"\\", at_);
    if (end != text_.npos && text_[end] == '"') {  // as it is
      at_ = end + 1;
      return checked(m_.work.text_value(text_.substr(begin, end - begin), origin_));
    }
    Writer out(m_.work);
    while (end != text_.npos && m_.work.spend(1)) {
      out.add(text_.substr(at_, end - at_), origin_);
      at_ = end + 1;
      if (text_[end] == '"') return checked(out.finish());
      if (!read_escape(out)) return fail("an escape that JSON does not know");
      end = text_.find_first_of("\"\\", at_);
    }
    return fail("a text that is not closed");
  }
  Value checked(const Value& text) const { return m_.work.failed() ? Value() : text; }

  Machine& m_;
  std::string_view text_;
  Origin origin_;
  std::size_t at_ = 0;
};

}  // namespace

Value Machine::read_json(std::string_view json, Origin origin) { return JsonReader(*this, json, origin).read(); }

}  // namespace qsf::templates
