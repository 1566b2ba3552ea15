#include "grammar/json_machine.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "qsf/base/utf8.h"

namespace qsf::grammar {
namespace {

constexpr std::array<std::string_view, 3> kWords{"null", "false", "true"};  // by their types

/// The kind of answers on numbers.
constexpr std::uint8_t kOfNumbers = 32;

bool is_white(std::uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

/// Returns the value of a hexadecimal digit, or 16.
std::uint32_t hex(std::uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - std::uint32_t{'0'};
  const std::uint32_t letter = byte | 0x20u;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 16;
}

}  // namespace

bool JsonMachine::init(Store& store, Checks& checks, Profiles& profiles, std::uint32_t root) {
  checks_ = &checks;
  profiles_ = &profiles;
  if (!frames_.init(store) || !words_.init(store) || !keys_.init(store) || !spare_.init(store)) return false;
  begin_ = {};
  begin_.profile = profiles.of({&root, 1});
  return !profiles.failed();
}

bool JsonMachine::can_end(const State& s) {
  if (s.mode == Mode::done) return true;
  if (s.mode != Mode::number || s.frame != 0) return false;
  State copy = s;
  return end_number(copy);
}

bool JsonMachine::step(const State& from, std::uint8_t byte, State& to) {
  to = from;
  switch (from.mode) {
    case Mode::string:
    case Mode::escape:
    case Mode::hex:
    case Mode::low_escape:
    case Mode::low_u:
    case Mode::low_hex:
      return step_string(to, byte);
    case Mode::number:
      to.text = checks_->step(from.text, byte);
      if (to.text != 0 && (checks_->verdicts(to.text).no & 1) == 0) return number_alive(to);
      to = from;
      return end_number(to) && step_after(to, byte);
    case Mode::word: {
      const std::string_view word = kWords[static_cast<std::size_t>(from.type)];
      if (static_cast<std::uint8_t>(word[from.place]) != byte) return false;
      if (++to.place < word.size()) return true;
      std::array<Status3, kMaxRoots> roots;
      Facts facts;
      facts.type = from.type;
      facts.final = true;
      profiles_->evaluate((*profiles_)[from.profile], facts, roots.data());
      return complete(to, roots.data());
    }
    default:
      break;
  }
  if (is_white(byte)) return ++to.spaces <= kMaxSpaces;
  to.spaces = 0;
  switch (from.mode) {
    case Mode::first_item: {
      if (byte == ']') return close(to);
      auto f = frames_[to.frame];
      f.count = 1;
      to.frame = frames_.add(f);
      return to.frame != 0 && enter(to, profiles_->element(f.profile, 0)) && element_possible(to.frame) &&
             step_value(to, byte);
    }
    case Mode::value:
      return step_value(to, byte);
    case Mode::first_key:
      if (byte == '}') return close(to);
      [[fallthrough]];
    case Mode::next_key: {
      bool open = false;
      if (byte != '"' || !key_possible(to.frame, open)) return false;
      to.open = open;
      to.mode = Mode::string;
      to.key = true;
      to.utf8 = 0;
      to.chars = to.keys = 0;
      to.text = (*profiles_)[frames_[to.frame].profile].key;
      return true;
    }
    case Mode::colon:
      to.mode = Mode::value;
      return byte == ':';
    default:
      return step_after(to, byte);
  }
}

/// Whether the element that has begun may be there.
bool JsonMachine::element_possible(std::uint32_t id) const {
  Trial t = trial(frames_[id]);
  const ValueClass& c = profiles_->value_class(frames_[id].value);
  t.failed |= c.failing;
  t.pending = linked(c);
  return value_possible(frames_[id], c) && holds(id, t);
}

bool JsonMachine::step_value(State& s, std::uint8_t byte) {
  const Profile& p = (*profiles_)[s.profile];
  Type type = Type::null;
  switch (byte) {
    case '"':
      type = Type::string;
      break;
    case '{':
      type = Type::object;
      break;
    case '[':
      type = Type::array;
      break;
    case 't':
      type = Type::yes;
      break;
    case 'f':
      type = Type::no;
      break;
    case 'n':
      break;
    default:
      if (byte != '-' && (byte < '0' || byte > '9')) return false;
      type = Type::number;
  }
  if (s.strict) {
    if ((p.types >> static_cast<std::uint32_t>(type) & 1) == 0) return false;
  } else if (type <= Type::yes) {
    std::array<Status3, kMaxRoots> roots;
    Facts facts;
    facts.type = type;
    facts.final = true;
    profiles_->evaluate(p, facts, roots.data());
    if (!supports(s.frame, roots.data(), false)) return false;
  }
  if (type == Type::object || type == Type::array) return push(s, type == Type::object);
  if (type == Type::string) {
    s.mode = Mode::string;
    s.key = false;
    s.utf8 = 0;
    s.chars = 0;
    s.text = p.string;
    return string_alive(s);
  }
  if (type == Type::number) {
    s.mode = Mode::number;
    s.text = checks_->step(p.number, byte);
    return number_alive(s);
  }
  s.mode = Mode::word;
  s.type = type;
  s.place = 1;
  return true;
}

bool JsonMachine::step_after(State& s, std::uint8_t byte) {
  if (is_white(byte)) return ++s.spaces <= kMaxSpaces;
  s.spaces = 0;
  if (s.mode != Mode::after) return false;
  const bool object = frames_[s.frame].object;
  const std::uint8_t end = object ? '}' : ']';
  if (byte == end) return close(s);
  if (byte != ',') return false;
  if (object) {
    bool open = false;
    s.mode = Mode::next_key;
    return key_possible(s.frame, open);
  }
  auto f = frames_[s.frame];
  const std::uint32_t value_class = profiles_->element(f.profile, f.count);
  ++f.count;
  s.frame = frames_.add(f);
  s.mode = Mode::value;
  return s.frame != 0 && enter(s, value_class) && element_possible(s.frame);
}

// Strings

bool JsonMachine::step_string(State& s, std::uint8_t byte) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  switch (s.mode) {
    case Mode::string:
      if (s.utf8 == 0) {
        if (byte == '"') return s.key ? end_key(s) : end_string(s);
        if (byte == '\\') {
          s.mode = Mode::escape;
          return may_become(s, 0, 0x10FFFF);
        }
        if (byte < 0x20) return false;
        ++s.chars;
      }
      s.utf8 = utf8_step(s.utf8, byte);
      return s.utf8 != kNoUtf8 && content(s, byte);
    case Mode::escape: {
      s.mode = Mode::string;
      if (byte == 'u') {
        s.mode = Mode::hex;
        s.code = s.place = 0;
        return true;
      }
      const std::size_t i = kNames.find(static_cast<char>(byte));
      return i != kNames.npos && character(s, static_cast<std::uint8_t>(kMeanings[i]));
    }
    case Mode::hex: {
      const std::uint32_t digit = hex(byte);
      if (digit == 16) return false;
      s.code = s.code * 16 + digit;
      if (++s.place < 4) {
        const std::uint32_t shift = 4u * (4u - s.place);
        return may_become(s, s.code << shift, ((s.code + 1) << shift) - 1);
      }
      if (s.code >= 0xDC00 && s.code < 0xE000) return false;
      if (s.code < 0xD800 || s.code >= 0xE000) {
        s.mode = Mode::string;
        return character(s, s.code);
      }
      s.mode = Mode::low_escape;
      return may_become(s, 0x10000 + ((s.code - 0xD800) << 10), 0x103FF + ((s.code - 0xD800) << 10));
    }
    case Mode::low_escape:
      s.mode = Mode::low_u;
      return byte == '\\';
    case Mode::low_u:
      s.mode = Mode::low_hex;
      s.code = (s.code - 0xD800) << 16;
      s.place = 0;
      return byte == 'u';
    default: {
      const std::uint32_t digit = hex(byte);
      if (digit == 16) return false;
      s.code += digit << (4u * (3u - s.place));
      ++s.place;
      const std::uint32_t low = s.code & 0xFFFF, shift = 4u * (4u - s.place);
      const std::uint32_t end = low + (1u << shift) - 1;
      if (end < 0xDC00 || low > 0xDFFF) return false;
      const std::uint32_t base = 0x10000 + ((s.code >> 16) << 10);
      const std::uint32_t first = low < 0xDC00 ? 0xDC00 : low, last = end > 0xDFFF ? 0xDFFF : end;
      if (s.place < 4) return may_become(s, base + first - 0xDC00, base + last - 0xDC00);
      s.mode = Mode::string;
      return character(s, base + low - 0xDC00);
    }
  }
}

/// Advances by a byte of the string's meaning.
bool JsonMachine::content(State& s, std::uint8_t byte) {
  s.text = checks_->step(s.text, byte);
  if (s.key) s.keys = static_cast<std::uint32_t>(mix(s.keys, byte));
  return s.key ? key_alive(s) && may_differ(s) : string_alive(s);
}

/// Advances by a character. Returns 0, or how many characters from `code` on are refused, because they begin with the
/// same bytes.
std::uint32_t JsonMachine::refused(State& s, std::uint32_t code) {
  char bytes[4];
  const std::size_t n = utf8::encode(code, bytes);
  ++s.chars;
  for (std::size_t i = 0; i < n; ++i) {
    if (!content(s, static_cast<std::uint8_t>(bytes[i]))) return (code | ((1u << 6 * (n - 1 - i)) - 1)) + 1 - code;
  }
  return 0;
}

/// Whether the string may go on with some character that an escape can still become.
bool JsonMachine::may_become(const State& s, std::uint32_t first, std::uint32_t last) {
  if (is_free(s, 1)) {
    return chars_left(s) > 0 && (first < 0xD800 || last > 0xDFFF || (first < 0xDC00 && last >= 0xD800));
  }
  const auto one_of = [&](std::uint32_t code, std::uint32_t end) {
    while (code <= end) {
      if (code >= 0xD800 && code < 0xE000) {
        code = 0xE000;
        continue;
      }
      State next = s;
      const std::uint32_t n = refused(next, code);
      if (n == 0) return true;
      code += n;
    }
    return false;
  };
  if (one_of(first, last)) return true;
  // High surrogates stand for what follows the basic plane.
  const std::uint32_t low = std::max(first, 0xD800u), high = std::min(last, 0xDBFFu);
  return last <= 0xFFFF && low <= high && one_of(0x10000 + ((low - 0xD800) << 10), 0x103FF + ((high - 0xD800) << 10));
}

/// Whether some end of the text is possible while a string or number is at these verdicts.
bool JsonMachine::text_possible(const State& s, Type type, const Verdicts& v, std::uint32_t chars) const {
  const Profile& p = (*profiles_)[s.profile];
  const auto kind = static_cast<std::uint8_t>(2 + static_cast<std::uint32_t>(type));
  const auto find = [&] {
    std::array<Status3, kMaxRoots> roots;
    Facts facts;
    facts.type = type;
    (type == Type::string ? facts.strings : facts.numbers) = v;
    facts.chars = chars;
    profiles_->evaluate(p, facts, roots.data());
    return supports(s.frame, roots.data(), s.strict);
  };
  return p.lengths ? find() : answer({v.yes, v.no, s.frame, s.profile, kind, false}, find);
}

bool JsonMachine::string_alive(const State& s) {
  const Profile& p = (*profiles_)[s.profile];
  const Verdicts& v = checks_->verdicts(s.text);
  if (s.strict && p.joint) return v.no == 0 && (unlimited || s.chars <= p.most_chars);
  return any_name_possible(s);
}

/// Whether some end of the text is possible while a string with sets of names in its conditions is read: one of the
/// names that it begins, or another text. The verdicts on the sets alone would allow a text that none of them can end.
bool JsonMachine::any_name_possible(const State& s) {
  constexpr std::uint32_t kMostTried = 64;
  const Verdicts& now = checks_->verdicts(s.text);
  std::uint64_t sets = 0;
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < checks_->list_size(s.text); ++i) {
    if (((now.yes | now.no) >> i & 1) != 0 || (*checks_)[checks_->listed(s.text, i)].kind != CheckKind::names) continue;
    const Checks::Names at = checks_->names_at(s.text, i);
    sets |= std::uint64_t{1} << i;
    n += at.last - at.first;
  }
  Verdicts other = now;
  if (n <= kMostTried) other.no |= sets;
  if (text_possible(s, Type::string, other, s.chars)) return true;
  if (sets == 0 || n > kMostTried) return false;
  for (std::uint32_t i = 0; sets != 0; ++i, sets >>= 1) {
    if ((sets & 1) == 0) continue;
    const Checks::Names at = checks_->names_at(s.text, i);
    for (std::uint32_t name = at.first; name < at.last; ++name) {
      State end = s;
      for (const char byte : checks_->name(name).substr(at.shared)) {
        end.text = checks_->step(end.text, static_cast<std::uint8_t>(byte));
        end.chars += (static_cast<std::uint8_t>(byte) & 0xC0) != 0x80 ? 1 : 0;
      }
      if (text_ends(end)) return true;
    }
  }
  return false;
}

/// Writes the status of each root if the string ends here.
void JsonMachine::string_roots(const State& s, Status3* roots) const {
  Facts facts;
  facts.type = Type::string;
  facts.final = true;
  facts.strings = checks_->verdicts(s.text);
  facts.chars = s.chars;
  profiles_->evaluate((*profiles_)[s.profile], facts, roots);
}

/// Whether some end of the text is possible if the string ends here.
bool JsonMachine::text_ends(const State& s) const {
  std::array<Status3, kMaxRoots> roots;
  string_roots(s, roots.data());
  return supports(s.frame, roots.data(), s.strict);
}

bool JsonMachine::end_string(State& s) {
  std::array<Status3, kMaxRoots> roots;
  string_roots(s, roots.data());
  return complete(s, roots.data());
}

bool JsonMachine::is_free(const State& s, std::uint32_t chars) const {
  if (s.key) {
    bool any = s.open;
    const std::uint32_t n = (*profiles_)[frames_[s.frame].profile].n_patterns;
    for (std::uint32_t i = 1; i <= n && !any; ++i) any = checks_->follows_any(s.text, i);
    return any && any_patterns_possible(s.frame);
  }
  const Profile& p = (*profiles_)[s.profile];
  const bool strict = s.strict && p.joint;
  if (checks_->free(s.text) && (strict || !p.lengths)) return true;
  if (p.lengths && !strict && (p.most_chars != kNoLimit && s.chars + chars > p.most_chars)) return false;
  // The conditions that are open now may turn out either way, except that no set of names is surely fulfilled before a
  // text ends. If all ways are possible, so is any text.
  const Verdicts& now = checks_->verdicts(s.text);
  std::array<std::uint32_t, 4> either{};
  std::uint32_t n = 0;
  Verdicts tried = now;
  for (std::uint32_t i = 0; i < checks_->list_size(s.text); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (((now.yes | now.no) & bit) != 0 || (strict && checks_->follows_any(s.text, i))) continue;
    tried.no |= bit;
    if ((*checks_)[checks_->listed(s.text, i)].kind == CheckKind::names) continue;
    if (n == either.size()) return false;
    either[n++] = i;
  }
  if (strict) return tried.no == 0;
  for (std::uint32_t ways = 0; ways < 1u << n; ++ways) {
    Verdicts v = tried;
    for (std::uint32_t j = 0; j < n; ++j) {
      if ((ways >> j & 1) == 0) continue;
      v.no &= ~(std::uint64_t{1} << either[j]);
      v.yes |= std::uint64_t{1} << either[j];
    }
    if (!text_possible(s, Type::string, v, s.chars)) return false;
    // A string becomes long enough for one condition after the other.
    const std::uint32_t end = p.lengths ? std::min(s.chars + chars, p.least_chars) : 0;
    for (std::uint32_t n = s.chars + 1; n <= end; ++n) {
      if (!text_possible(s, Type::string, v, n)) return false;
    }
  }
  return true;
}

void JsonMachine::pass(State& s, std::string_view bytes) {
  for (const char byte : bytes) {
    s.text = checks_->step(s.text, static_cast<std::uint8_t>(byte));
    if (s.key) s.keys = static_cast<std::uint32_t>(mix(s.keys, static_cast<std::uint8_t>(byte)));
  }
}

std::uint32_t JsonMachine::chars_left(const State& s) const {
  const Profile& p = (*profiles_)[s.profile];
  return s.key || !s.strict || !p.joint || p.most_chars == kNoLimit ? kNoLimit : p.most_chars - s.chars;
}

bool JsonMachine::is_local(const State& s) const {
  const Profile& p = (*profiles_)[s.key ? frames_[s.frame].profile : s.profile];
  if (s.key) return !s.open && p.n_names == 0 && !p.keys_differ && any_patterns_possible(s.frame);
  return s.strict && p.joint;
}

// Numbers

bool JsonMachine::number_alive(const State& s) {
  if (s.strict && (*profiles_)[s.profile].joint) return checks_->number_alive(s.text);
  return answer({s.text, 0, s.frame, s.profile, kOfNumbers, false}, [&] { return find_number(s); });
}

/// Whether some number from this state on fulfills the conditions together. A search that grows too long says yes.
bool JsonMachine::find_number(const State& s) {
  constexpr std::size_t kMostStates = 256;
  constexpr std::string_view kBytes = "0123456789.-";
  std::array<std::uint32_t, kMostStates> found;
  std::size_t n = 0;
  const auto add = [&](std::uint32_t text) {
    if (text == 0 || (checks_->verdicts(text).no & 1) != 0) return;
    if (std::find(found.begin(), found.begin() + n, text) != found.begin() + n) return;
    if (text_possible(s, Type::number, checks_->verdicts(text).from(1), 0)) found[n++] = text;
  };
  add(s.text);
  std::array<Status3, kMaxRoots> roots;
  for (std::size_t i = 0; i < n; ++i) {
    if (number_roots(s, found[i], roots.data()) && supports(s.frame, roots.data(), s.strict)) return true;
    for (const char byte : kBytes) {
      if (n == kMostStates) return true;
      add(checks_->step(found[i], static_cast<std::uint8_t>(byte)));
    }
  }
  return false;
}

/// Writes the status of each root if the number ends at a state. Returns false if it cannot.
bool JsonMachine::number_roots(const State& s, std::uint32_t text, Status3* roots) const {
  const Verdicts& v = checks_->verdicts(text);
  if ((v.now & 1) == 0) return false;
  Facts facts;
  facts.type = Type::number;
  facts.final = true;
  facts.numbers = v.from(1);
  profiles_->evaluate((*profiles_)[s.profile], facts, roots);
  return true;
}

bool JsonMachine::end_number(State& s) {
  std::array<Status3, kMaxRoots> roots;
  return number_roots(s, s.text, roots.data()) && complete(s, roots.data());
}

}  // namespace qsf::grammar
