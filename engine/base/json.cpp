#include "qsf/base/json.h"

#include <algorithm>
#include <cstring>

#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::json {
namespace {

constexpr std::uint32_t kFewMembers = 16;  // compared in pairs; more are sorted

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

class Reader {
 public:
  Reader(std::string_view text, Store& store, Document& document) : text_(text), store_(store), d_(document) {}

  Status read() {
    if (!d_.values_.init(store_)) return no_memory();
    QSF_TRY(value(0, {}));
    skip();
    if (at_ != text_.size()) return wrong("there is text after the value");
    return store_.full() ? no_memory() : Status();
  }

 private:
  Status no_memory() const {
    return make_error(ErrorCode::out_of_memory, "the JSON text needs more than {} bytes of memory", store_.size());
  }
  Status wrong(std::string_view sentence) const {
    return make_error(ErrorCode::bad_input, "the JSON text is wrong at byte {}: {}", at_, sentence);
  }
  void skip() {
    constexpr std::string_view kWhite = " \t\n\r";
    while (at_ < text_.size() && kWhite.find(text_[at_]) != kWhite.npos) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  Status value(std::uint32_t depth, std::string_view name) {
    if (depth > kMaxDepth) return wrong("it is nested too deep");
    skip();
    const std::uint32_t id = d_.values_.add({});
    if (id == 0) return no_memory();
    Value made;
    made.name = name;
    const char c = peek();
    if (c == '{' || c == '[') {
      made.kind = c == '{' ? Kind::object : Kind::array;
      QSF_TRY(children(made, depth));
    } else if (c == '"') {
      made.kind = Kind::string;
      QSF_TRY(string(made.text));
    } else if (take("true") || take("false")) {
      made.kind = Kind::boolean;
      made.truth = c == 't';
    } else if (!take("null")) {
      made.kind = Kind::number;
      QSF_TRY(number(made.text));
    }
    d_.values_[id] = made;
    return {};
  }

  Status children(Value& parent, std::uint32_t depth) {
    const bool object = parent.kind == Kind::object;
    const char end = object ? '}' : ']';
    ++at_;
    skip();
    if (peek() == end) {
      ++at_;
      return {};
    }
    std::uint32_t last = 0;
    while (true) {
      std::string_view name;
      if (object) {
        skip();
        if (peek() != '"') return wrong("a member's name is expected");
        QSF_TRY(string(name));
        skip();
        if (!take(":")) return wrong("a colon is expected");
      }
      const std::uint32_t id = d_.values_.size();
      QSF_TRY(value(depth + 1, name));
      (last == 0 ? parent.first : d_.values_[last].next) = id;
      last = id;
      ++parent.count;
      skip();
      if (peek() == end) break;
      if (!take(",")) return wrong("a comma or an end is expected");
    }
    ++at_;
    return object ? unlike(parent) : Status();
  }

  Status unlike(const Value& object) {
    std::uint32_t* const ids = store_.take_values<std::uint32_t>(object.count);
    if (ids == nullptr) return no_memory();
    std::uint32_t n = 0;
    for (std::uint32_t i = object.first; i != 0; i = d_[i].next) ids[n++] = i;
    const auto name = [&](std::uint32_t i) { return d_[ids[i]].name; };
    if (n > kFewMembers) {
      heap_sort(std::span(ids, n), {}, [&](std::uint32_t id) { return d_[id].name; });
    }
    for (std::uint32_t i = 1; i < n; ++i) {
      for (std::uint32_t j = n > kFewMembers ? i - 1 : 0; j < i; ++j) {
        if (name(i) == name(j)) {
          return make_error(ErrorCode::bad_input, "the JSON text has an object with the name '{:.40}' twice", name(i));
        }
      }
    }
    return {};
  }

  Status string(std::string_view& out) {
    const std::size_t begin = ++at_;
    std::size_t end = begin;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return wrong("a string has no end");
    const std::string_view raw = text_.substr(begin, end - begin);
    for (const char c : raw) {
      if (static_cast<std::uint8_t>(c) < 0x20) return wrong("a string has a control character");
    }
    if (!utf8::is_valid(raw)) return wrong("a string is not valid UTF-8");
    if (raw.find('\\') == raw.npos) {
      out = raw;
      at_ = end + 1;
      return {};
    }
    char* const copy = reinterpret_cast<char*>(store_.take(raw.size()));
    if (copy == nullptr) return no_memory();
    std::size_t n = 0;
    while (at_ < end) {
      if (text_[at_] != '\\') {
        copy[n++] = text_[at_++];
        continue;
      }
      constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      const std::size_t simple = kNames.find(text_[at_ + 1]);
      at_ += 2;
      if (simple != kNames.npos) {
        copy[n++] = kMeanings[simple];
        continue;
      }
      char32_t code = 0;
      if (text_[at_ - 1] != 'u' || !hex(code)) return wrong("an escape is not known");
      if (code >= 0xD800 && code < 0xDC00) {
        char32_t low = 0;
        if (!take("\\u") || !hex(low) || low < 0xDC00 || low > 0xDFFF) return wrong("a surrogate is alone");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else if (code >= 0xDC00 && code < 0xE000) {
        return wrong("a surrogate is alone");
      }
      n += utf8::encode(code, copy + n);
    }
    out = std::string_view(copy, n);
    at_ = end + 1;
    return {};
  }
  bool hex(char32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const char32_t digit = is_digit(c)            ? static_cast<char32_t>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<char32_t>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<char32_t>(c - 'A' + 10)
                                                    : 16;
      if (digit == 16) return false;
      code = code * 16 + digit;
    }
    return true;
  }

  Status number(std::string_view& out) {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (is_digit(peek())) ++at_;
      return at_ > from;
    };
    (void)take("-");
    const bool zero = peek() == '0';
    const std::size_t first = at_;
    if (!digits() || (zero && at_ - first > 1)) return wrong("a value is expected");
    if (take(".") && !digits()) return wrong("a number needs digits after its point");
    if (take("e") || take("E")) {
      if (!take("+")) (void)take("-");
      if (!digits()) return wrong("a number needs digits in its exponent");
    }
    out = text_.substr(begin, at_ - begin);
    return {};
  }

  std::string_view text_;
  Store& store_;
  Document& d_;
  std::size_t at_ = 0;
};

Result<Document> Document::read(std::string_view text, Store& store) {
  Document document;
  Reader reader(text, store, document);
  QSF_TRY(reader.read());
  return document;
}

std::uint32_t Document::member(std::uint32_t object, std::string_view name) const {
  if (values_[object].kind != Kind::object) return 0;
  for (std::uint32_t i = values_[object].first; i != 0; i = values_[i].next) {
    if (values_[i].name == name) return i;
  }
  return 0;
}

bool equal(const Document& d, std::uint32_t a, std::uint32_t b) {
  const Value &x = d[a], &y = d[b];
  if (x.kind != y.kind || x.truth != y.truth || x.count != y.count) return false;
  if (x.kind == Kind::number) {
    const std::optional<Number> left = Number::read(x.text), right = Number::read(y.text);
    return left && right ? *left == *right : x.text == y.text;
  }
  if (x.kind == Kind::array) {
    for (std::uint32_t i = x.first, j = y.first; i != 0; i = d[i].next, j = d[j].next) {
      if (!equal(d, i, j)) return false;
    }
    return true;
  }
  for (std::uint32_t i = x.first; i != 0; i = d[i].next) {
    const std::uint32_t j = d.member(b, d[i].name);
    if (j == 0 || !equal(d, i, j)) return false;
  }
  return x.text == y.text;
}

std::optional<Number> Number::read(std::string_view text) {
  Number out;
  std::size_t at = 0;
  const auto has = [&](char c) { return at < text.size() && text[at] == c; };
  out.negative = has('-');
  if (out.negative) ++at;
  bool after_point = false;
  std::int32_t zeros = 0;  // that matter only if a digit follows
  for (; at < text.size() && (is_digit(text[at]) || text[at] == '.'); ++at) {
    if (text[at] == '.') {
      after_point = true;
      continue;
    }
    if (!after_point && (out.count != 0 || text[at] != '0')) ++out.point;
    if (text[at] == '0') {
      if (out.count != 0) {
        ++zeros;
      } else if (after_point) {
        --out.point;
      }
      continue;
    }
    if (out.count + static_cast<std::uint32_t>(zeros) >= kMaxDigits) return std::nullopt;
    for (; zeros > 0; --zeros) out.digits[out.count++] = '0';
    out.digits[out.count++] = text[at];
  }
  if (has('e') || has('E')) {
    ++at;
    const bool down = has('-');
    if (down || has('+')) ++at;
    std::int32_t exponent = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      exponent = std::min(exponent * 10 + (text[at] - '0'), 10000);
    }
    if (exponent > 400 && out.count != 0) return std::nullopt;
    out.point += down ? -exponent : exponent;
  }
  if (out.count == 0) {
    out.point = 0;
    out.negative = false;
  }
  return out;
}

bool Number::operator==(const Number& other) const {
  return count == other.count && point == other.point && negative == other.negative &&
         std::memcmp(digits, other.digits, count) == 0;
}

}  // namespace qsf::json
