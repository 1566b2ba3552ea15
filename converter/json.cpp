#include "converter/json.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kPiece = 64 << 10;

/// The characters of a text, brought in piece by piece. Ends early, with an error, where a bound is passed.
class Characters {
 public:
  Characters(const Input& input, std::uint64_t offset, std::uint64_t size)
      : input_(input), at_(offset), end_(offset + size) {
    if (size > kMaxJsonBytes) {
      fail("{:.100}: {} bytes of JSON are too many, {} is the most", size, kMaxJsonBytes);
    } else {
      refill();
    }
  }

  bool ended() const { return next_ >= piece_.size(); }
  char get() const { return static_cast<char>(piece_[next_]); }
  void advance() {
    count(get());
    if (status_ && ++next_ == piece_.size()) refill();
  }
  const Status& status() const { return status_; }

 private:
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
  bool in_text_ = false, escaped_ = false;
  std::uint32_t run_ = 0;  // characters since one that ends a value
  std::uint32_t depth_ = 0, values_ = 0;
};

/// What the parser takes: two of these, of which the one without characters is the end.
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

}  // namespace

Result<Json> read_json(const Input& input, std::uint64_t offset, std::uint64_t size) {
  Characters characters(input, offset, size);
  Json json = Json::parse(CharacterIterator(&characters), CharacterIterator(nullptr), nullptr,
                          /*allow_exceptions=*/false);
  QSF_TRY(characters.status());
  if (json.is_discarded()) return make_error(ErrorCode::bad_input, "{:.100} is not valid JSON", input.name);
  return json;
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

void Fields::fail(std::string_view key, const char* expected) {
  if (!status_) return;
  const Json* value = get(key);
  constexpr std::size_t kShown = 60;
  std::string shown = "missing";
  if (value && value->is_structured()) {
    shown = value->is_array() ? "a list" : "an object";
  } else if (value && value->is_string()) {
    shown = '"' + as_text(*value)->substr(0, kShown) + '"';
  } else if (value) {
    shown = value->dump().substr(0, kShown);
  }
  status_ = make_error(ErrorCode::bad_input, "{}: \"{}\" must be {}, but is {}", where_, key, expected, shown);
}

std::uint32_t Fields::u32(std::string_view key, std::optional<std::uint32_t> fallback) {
  const Json* value = get(key);
  if (!value && fallback) return *fallback;
  const std::optional<std::uint64_t> number = value ? as_u64(*value) : std::nullopt;
  if (number && *number <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(*number);
  fail(key, "a whole number below 2^32");
  return fallback.value_or(0);
}

double Fields::number(std::string_view key, std::optional<double> fallback) {
  const Json* value = get(key);
  if (!value && fallback) return *fallback;
  if (value) {
    if (const auto* d = value->get_ptr<const Json::number_float_t*>()) return *d;
    if (const auto* u = value->get_ptr<const Json::number_unsigned_t*>()) return static_cast<double>(*u);
    if (const auto* i = value->get_ptr<const Json::number_integer_t*>()) return static_cast<double>(*i);
  }
  fail(key, "a number");
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
