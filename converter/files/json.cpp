#include "converter/files/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kPiece = 64 << 10;

// Python's json writes these words for numbers that are not finite.
constexpr std::string_view kNotANumber = "NaN", kInfinite = "Infinity";

/// The characters of a text, read piece by piece. They end early, with an error, if a limit is passed. NaN, Infinity
/// and -Infinity, which JSON does not have, are replaced by empty texts.
class Characters {
 public:
  Characters(const Input& input, std::uint64_t offset, std::uint64_t size)
      : input_(input), at_(offset), end_(offset + size) {
    if (size > kMaxJsonBytes) {
      fail("{:.100}: {} bytes of JSON are too many, {} is the most", size, kMaxJsonBytes);
    } else {
      refill();
      substitute();
    }
  }

  bool ended() const { return instead_.empty() && at_end(); }
  char get() const { return instead_.empty() ? here() : instead_.front(); }
  void advance() {
    if (!instead_.empty()) {
      instead_.erase(0, 1);
      return;
    }
    go_on();
    substitute();
  }
  const Status& status() const { return status_; }
  /// The position of the last character that was read, from 1.
  std::uint64_t line() const { return line_; }
  std::uint64_t column() const { return column_; }
  /// Returns the number that the last empty text stands for. Empty for any other text, and on a second call.
  std::optional<double> special() { return std::exchange(special_, std::nullopt); }

 private:
  bool at_end() const { return next_ >= piece_.size(); }
  char here() const { return static_cast<char>(piece_[next_]); }
  void go_on() {
    const char c = here();
    count(c);
    if (std::exchange(ends_line_, c == '\n')) {
      ++line_;
      column_ = 0;
    }
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++column_;  // the first byte of a character in UTF-8
    if (status_ && ++next_ == piece_.size()) refill();
  }

  /// At the start of a number that is not finite, gives an empty text in place of its characters.
  void substitute() {
    if (in_text_ || at_end()) return;
    const bool minus = here() == '-';
    if (minus) {
      go_on();
      if (at_end() || here() != kInfinite.front()) {
        instead_ = "-";
        return;
      }
    }
    const std::string_view word = here() == kInfinite.front() ? kInfinite : kNotANumber;
    if (here() != word.front()) return;
    for (const char c : word) {
      if (at_end() || here() != c) {
        instead_ = word;  // not JSON: the parser reports it
        return;
      }
      go_on();
    }
    instead_ = "\"\"";
    special_ = word == kNotANumber ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (minus) *special_ = -*special_;
  }

  void refill() {
    piece_.resize(std::min(kPiece, end_ - at_));
    next_ = 0;
    if (Status read = input_.read(at_, piece_); !read) return stop(read);
    at_ += piece_.size();
  }
  void stop(const Status& status) {
    status_ = status;
    piece_.clear();
    next_ = 0;
    at_ = end_;
  }
  void fail(FormatString<std::string, std::uint64_t, std::uint64_t> format, std::uint64_t is, std::uint64_t most) {
    stop(make_error(ErrorCode::bad_input, format, input_.name, is, most));
  }

  void count(char c) {
    if (++run_ > kMaxJsonText) return fail("{:.100}: a text of {} bytes or more; {} is the most", run_, kMaxJsonText);
    if (in_text_) {
      in_text_ = c != '"' || escaped_;
      escaped_ = c == '\\' && !escaped_;
      return;
    }
    switch (c) {
      case '"':
        in_text_ = true;
        run_ = 0;
        return;
      case '[':
      case '{':
        if (++depth_ > kMaxJsonDepth) fail("{:.100}: lists in lists, {} deep; {} is the most", depth_, kMaxJsonDepth);
        break;
      case ']':
      case '}':
        depth_ -= depth_ > 0 ? 1 : 0;
        run_ = 0;
        return;
      case ',':
      case ':':
        break;
      default:
        return;
    }
    run_ = 0;
    if (status_ && ++values_ > kMaxJsonValues) {
      fail("{:.100}: {} values or more; {} is the most", values_, kMaxJsonValues);
    }
  }

  const Input& input_;
  std::uint64_t at_, end_;
  std::vector<std::byte> piece_;
  std::size_t next_ = 0;
  Status status_;
  std::string instead_;  // given before the character at next_
  std::optional<double> special_;
  std::uint64_t line_ = 1, column_ = 0;
  bool ends_line_ = false;  // the last character did
  bool in_text_ = false, escaped_ = false;
  std::uint32_t run_ = 0;  // characters since the last end of a value
  std::uint32_t depth_ = 0, values_ = 0;
};

/// The parser's iterator. An iterator without characters is the end.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit CharacterIterator(Characters* from) : from_(from) {}
  char operator*() const { return from_->get(); }
  CharacterIterator& operator++() {
    from_->advance();
    return *this;
  }
  void operator++(int) { from_->advance(); }
  bool operator==(const CharacterIterator& other) const { return ended() == other.ended(); }

 private:
  bool ended() const { return from_ == nullptr || from_->ended(); }
  Characters* from_;
};

/// Builds a value from the parser's events. Stops at an object that has a key twice.
class Builder {
 public:
  Builder(Characters& characters, std::string_view name) : characters_(characters), name_(name) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    const std::optional<double> number = characters_.special();
    return number ? add(*number) : add(std::move(value));
  }
  bool binary(Json::binary_t&) { return false; }  // JSON as text has none
  bool start_object(std::size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool key(std::string& value) {
    if (characters_.special()) return false;
    const auto [at, is_new] = open_.back()->get_ref<Json::object_t&>().emplace(value, nullptr);
    member_ = &at->second;
    if (is_new) return true;
    fault_ = make_error(ErrorCode::bad_input, "{:.100}: the key \"{:.60}\" is there twice, again in line {}, column {}",
                        name_, value, characters_.line(), characters_.column());
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

  /// Returns bad_input if the parser or the builder stopped early.
  Result<Json> value(bool whole) {
    if (whole) return std::move(root_);
    QSF_TRY(fault_);
    return make_error(ErrorCode::bad_input, "{:.100} is not valid JSON: see line {}, column {}", name_,
                      characters_.line(), characters_.column());
  }

 private:
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    Json& at = place();
    at = std::move(value);
    open_.push_back(&at);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  Json& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    auto& list = open_.back()->get_ref<Json::array_t&>();
    return list.emplace_back();
  }

  Characters& characters_;
  std::string_view name_;
  Json root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;
  Status fault_;
};

}  // namespace

Result<Json> read_json(const Input& input, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return make_error(ErrorCode::bad_input, "{:.100} is empty, and not valid JSON", input.name);
  Characters characters(input, offset, size);
  Builder builder(characters, input.name);
  const bool whole = Json::sax_parse(CharacterIterator(&characters), CharacterIterator(nullptr), &builder);
  QSF_TRY(characters.status());
  return builder.value(whole);
}

Result<Json> parse_json(std::string_view text, std::string_view what) {
  return read_json(input_of(std::string(what), std::as_bytes(std::span(text))), 0, text.size());
}

Result<Json> read_json(const InputFolder& folder, const std::string& file) {
  QSF_LET(found, folder.find(file));
  return found ? read_json(*found, 0, found->size) : Json(nullptr);
}

const Json* find(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(std::string(key));
  return at == json.end() || at->is_null() ? nullptr : &*at;
}

std::optional<std::uint64_t> as_u64(const Json& json) {
  if (const auto* value = json.get_ptr<const Json::number_unsigned_t*>()) return *value;
  const auto* value = json.get_ptr<const Json::number_integer_t*>();
  return value && *value >= 0 ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

const std::string* as_text(const Json& json) { return json.get_ptr<const std::string*>(); }

std::string shown(const Json& json) {
  constexpr std::size_t kShown = 60;
  if (json.is_null()) return "missing";
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  constexpr double kExact = 0x1p53;  // all whole numbers below it are exact
  const auto* const number = json.get_ptr<const Json::number_float_t*>();
  if (number && !std::isfinite(*number)) {
    const std::string_view word = std::isnan(*number) ? kNotANumber : kInfinite;
    return (*number < 0 ? "-" : "") + std::string(word);
  }
  if (number && std::trunc(*number) == *number && std::abs(*number) < kExact) {
    return std::to_string(static_cast<std::int64_t>(*number));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kShown);
}

void Fields::fail(std::string_view key, const char* expected) {
  if (!status_) return;
  const Json* value = get(key);
  status_ = make_error(ErrorCode::bad_input, "{}: \"{}\" must be {}, but is {}", where_, key, expected,
                       shown(value ? *value : Json(nullptr)));
}

double Fields::number(std::string_view key, std::optional<double> fallback) {
  const Json* value = get(key);
  if (!value && fallback) return *fallback;
  if (value && value->is_number()) {
    if (const auto number = value->get<double>(); std::isfinite(number)) return number;
  }
  fail(key, "a finite number");
  return fallback.value_or(0);
}

bool Fields::flag(std::string_view key, bool fallback) {
  const Json* value = get(key);
  if (!value) return fallback;
  if (const auto* b = value->get_ptr<const Json::boolean_t*>()) return *b;
  fail(key, "true or false");
  return fallback;
}

std::string Fields::text(std::string_view key, std::string_view fallback) {
  const Json* value = get(key);
  if (!value) return std::string(fallback);
  if (const std::string* s = as_text(*value)) return *s;
  fail(key, "a text");
  return std::string(fallback);
}

}  // namespace qsf::convert
