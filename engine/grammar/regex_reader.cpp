#include "grammar/regex_reader.h"

#include <algorithm>

#include "grammar/char_class.h"
#include "grammar/text_cursor.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kMaxDepth = 100;
constexpr std::uint32_t kMaxNodes = 20000;
constexpr std::uint32_t kMaxList = 2000;  // parts in a row, each a level of recursion

enum class Op : std::uint8_t { term, list, choice, repeat, ahead, not_ahead, begin, end, name };

/// A part of an expression. Lists and choices have their parts in a chain, as do all names of groups.
struct Node {
  Op op = Op::term;
  bool asserts = false;     // contains an anchor or a look ahead
  bool nullable = false;    // may match nothing
  bool apart = false;       // of a name: its alternative is not the one that is read now
  std::uint32_t value = 0;  // of op term, the term; of a part that asserts, the byte of its first anchor or look ahead
  std::uint32_t first = 0;  // the first part; 0: none
  std::uint32_t next = 0;   // the next part of the same list; 0: none
  std::uint32_t min = 0, max = 0;  // of repeat; of a name, its first byte and that after its last one
};

class RegexReader : TextCursor {
 public:
  RegexReader(std::string_view text, Terms& terms, std::span<Node> nodes)
      : TextCursor{text}, terms_(terms), nodes_(nodes) {}

  Result<std::uint32_t> read(Match match) {
    if (!utf8::is_valid(text_)) return wrong("it is not valid UTF-8");
    QSF_LET(root, choice(0));
    if (at_ != text_.size()) return wrong("a ')' has no '('");
    if (match == Match::whole) return checked(build(root, kEmpty, true));
    const std::uint32_t here = build(root, kAll, true);
    const std::uint32_t later = build(root, kAll, false);
    if (here == later) return checked(terms_.cat(kAll, later));
    return checked(terms_.alt(here, terms_.cat(kAll, later)));
  }

 private:
  Error wrong(std::string_view sentence) const { return wrong(sentence, at_); }
  Error wrong(std::string_view sentence, std::size_t at) const {
    return make_error(ErrorCode::bad_input, "the regular expression '{:.60}' is wrong at byte {}: {}", text_, at,
                      sentence);
  }
  /// Refuses a feature that begins at the byte `at`.
  Error unknown(std::string_view feature, std::size_t at) const {
    return make_error(ErrorCode::unsupported,
                      "the regular expression '{:.60}' has {} at byte {}, which is not supported", text_, feature, at);
  }
  Result<std::uint32_t> checked(std::uint32_t term) const {
    if (refused_ != kNowhere) {
      return unknown("an anchor or a look ahead inside of a repetition, or after a part of any length,", refused_);
    }
    if (terms_.failed()) return terms_.error();
    return term;
  }
  Result<std::uint32_t> node(const Node& node) {
    if (n_nodes_ >= nodes_.size()) return wrong("it has too many parts");
    nodes_[n_nodes_] = node;
    return n_nodes_++;
  }
  /// Notes that a list or choice `made` contains a part.
  void contain(Node& made, std::uint32_t part) const {
    if (nodes_[part].asserts && !made.asserts) made.value = nodes_[part].value;
    made.asserts |= nodes_[part].asserts;
  }
  Result<std::uint32_t> node_of(std::uint32_t term) {
    Node made;
    made.value = term;
    return node(made);
  }

  Result<std::uint32_t> choice(std::uint32_t depth) {
    if (depth > kMaxDepth) return wrong("it is nested too deep");
    Node made;
    made.op = Op::choice;
    std::uint32_t last = 0;
    const std::uint32_t names = names_;
    do {
      for (std::uint32_t i = names_; i != names; i = nodes_[i].next) nodes_[i].apart = true;
      QSF_LET(part, sequence(depth));
      contain(made, part);
      made.nullable |= nodes_[part].nullable;
      (last == 0 ? made.first : nodes_[last].next) = part;
      last = part;
    } while (take("|"));
    for (std::uint32_t i = names_; i != names; i = nodes_[i].next) nodes_[i].apart = false;
    return node(made);
  }

  Result<std::uint32_t> sequence(std::uint32_t depth) {
    Node made;
    made.op = Op::list;
    made.nullable = true;
    std::uint32_t last = 0;
    for (std::uint32_t n = 0; !over() && peek() != '|' && peek() != ')'; ++n) {
      if (n == kMaxList) return wrong("it has too many parts in a row");
      QSF_LET(atom, atom_at(depth));
      QSF_LET(part, counted(atom));
      contain(made, part);
      made.nullable &= nodes_[part].nullable;
      (last == 0 ? made.first : nodes_[last].next) = part;
      last = part;
    }
    return node(made);
  }

  bool count(std::uint32_t& out) {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; !over() && peek() >= '0' && peek() <= '9'; ++at_) {
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kMaxCount + 1);
    }
    out = static_cast<std::uint32_t>(value);
    return at_ > begin;
  }

  /// Reads a count in braces. Returns false, and stays where it is, if the brace begins none.
  bool braces(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t begin = at_;
    bool closed = take("{") && count(min);
    max = min;
    if (closed && take(",") && !count(max)) max = kUnlimited;
    closed = closed && take("}");
    if (!closed) at_ = begin;
    return closed;
  }

  Result<std::uint32_t> counted(std::uint32_t atom) {
    std::uint32_t min = 0, max = kUnlimited;
    if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (!take("*") && !braces(min, max)) {
      return atom;
    }
    if (min > kMaxCount || (max > kMaxCount && max != kUnlimited)) return wrong("a count is above 1000000");
    if (max < min) return wrong("a count ends before it begins");
    (void)take("?");  // matches as few as it can: the same texts
    const Node& inner = nodes_[atom];
    if (inner.op == Op::begin || inner.op == Op::end) return wrong("an anchor cannot be repeated");
    Node made;
    made.op = Op::repeat;
    made.first = atom;
    made.min = min;
    made.max = max;
    made.nullable = inner.nullable || min == 0;
    contain(made, atom);
    return node(made);
  }

  /// Reads the name of the group that begins at the byte `group`, and its '>'. Groups have the same name only if one
  /// match never has both.
  Status name(std::size_t group) {
    const std::size_t begin = at_;
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
             static_cast<unsigned char>(c) >= 0x80;
    };
    while (!over() && is_part(peek())) ++at_;
    Node made;
    made.op = Op::name;
    made.min = static_cast<std::uint32_t>(begin);
    made.max = static_cast<std::uint32_t>(at_);
    const bool is_name = at_ > begin && (text_[begin] < '0' || text_[begin] > '9');
    if (!is_name || !take(">")) return wrong("a group has no name that ends with '>'");
    for (std::uint32_t i = names_; i != 0; i = nodes_[i].next) {
      const Node& other = nodes_[i];
      if (other.apart || text_name(other) != text_name(made)) continue;
      return wrong("a group has the name of another group", group);
    }
    made.next = names_;
    QSF_LET(id, node(made));
    names_ = id;
    return {};
  }

  std::string_view text_name(const Node& name) const { return text_.substr(name.min, name.max - name.min); }

  Result<std::uint32_t> group(std::uint32_t depth) {
    Op op = Op::term;
    const std::size_t begin = at_ - 1;
    if (take("?=")) {
      op = Op::ahead;
    } else if (take("?!")) {
      op = Op::not_ahead;
    } else if (take("?<=") || take("?<!")) {
      return unknown("a look behind", begin);
    } else if (take("?<") || take("?P<")) {
      QSF_TRY(name(begin));
    } else if (!take("?:") && peek() == '?') {
      return unknown("a group with flags", begin);
    }
    QSF_LET(inner, choice(depth + 1));
    if (!take(")")) return wrong("a '(' has no ')'");
    if (op == Op::term) return inner;
    Node made;
    made.op = op;
    made.first = inner;
    made.asserts = true;
    made.nullable = true;
    made.value = static_cast<std::uint32_t>(begin);
    return node(made);
  }

  Result<std::uint32_t> atom_at(std::uint32_t depth) {
    const char c = peek();
    if (c == '^' || c == '$') {
      ++at_;
      Node made;
      made.op = c == '^' ? Op::begin : Op::end;
      made.value = static_cast<std::uint32_t>(at_ - 1);
      made.asserts = true;
      made.nullable = true;
      return node(made);
    }
    if (take("(")) return group(depth);
    std::uint32_t min = 0, max = 0;
    const std::size_t begin = at_;
    if (c == '*' || c == '+' || c == '?' || braces(min, max)) {
      at_ = begin;
      return wrong("a count has nothing before it that it can repeat");
    }
    set_.clear();
    if (take("[")) {
      QSF_TRY(characters());
    } else if (take(".")) {
      for (const char32_t end : {U'\n', U'\r'}) set_.add(end, end);
      set_.add(0x2028, 0x2029);
      set_.invert();
    } else if (take("\\")) {
      QSF_TRY(escape(false));
    } else {
      char32_t code = next();
      set_.add(code, code);
    }
    if (set_.full()) return wrong("a class has too many ranges");
    return node_of(terms_.characters(set_.ranges()));
  }

  char32_t next() {
    const utf8::Decoded decoded = utf8::decode(text_, at_);
    at_ += decoded.size;
    return decoded.code;
  }

  Status characters() {
    const bool inverted = take("^");
    while (!take("]")) {
      if (over()) return wrong("a '[' has no ']'");
      char32_t first = 0, last = 0;
      QSF_LET(one, class_char(first));
      const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        if (one) set_.add(first, first);
        continue;
      }
      ++at_;
      QSF_LET(other, class_char(last));
      if (one && other) {
        if (last < first) return wrong("a range ends before it begins");
        set_.add(first, last);
        continue;
      }
      // A hyphen next to a class such as \d is itself a character.
      set_.add('-', '-');
      if (one) set_.add(first, first);
      if (other) set_.add(last, last);
    }
    if (inverted) set_.invert();
    return {};
  }

  /// Reads one character of a class, or adds a whole class and returns false.
  Result<bool> class_char(char32_t& code) {
    if (!take("\\")) {
      if (over()) return wrong("a '[' has no ']'");
      code = next();
      return true;
    }
    char32_t only = kNoChar;
    QSF_TRY(escape(true, &only));
    if (only == kNoChar) return false;
    code = only;
    return true;
  }

  bool hex(std::uint32_t least, std::uint32_t most, char32_t& code) {
    code = 0;
    std::uint32_t n = 0;
    for (; n < most && !over(); ++n, ++at_) {
      const char c = peek();
      if (c >= '0' && c <= '9') {
        code = code * 16 + static_cast<char32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        code = code * 16 + static_cast<char32_t>((c & ~0x20) - 'A' + 10);
      } else {
        break;
      }
    }
    return n >= least && code <= 0x10FFFF;
  }

  /// Reads what follows a backslash: adds its characters to the set, or stores the only one in `only`.
  Status escape(bool in_class, char32_t* only = nullptr) {
    if (over()) return wrong("a backslash is the last character");
    const char c = peek();
    const std::size_t begin = at_ - 1;
    const auto one = [&](char32_t code) -> Status {
      if (only != nullptr) {
        *only = code;
      } else {
        set_.add(code, code);
      }
      return {};
    };
    constexpr std::string_view kNames = "tnrfv", kMeanings = "\t\n\r\f\v";
    if (const std::size_t i = kNames.find(c); i != kNames.npos) {
      ++at_;
      return one(static_cast<char32_t>(kMeanings[i]));
    }
    if (std::string_view("dwsDWS").find(c) != std::string_view::npos) {
      ++at_;
      set_.add_escape(c);
      return {};
    }
    if (c == 'b' && in_class) {
      ++at_;
      return one('\b');
    }
    if (c == 'b' || c == 'B') return unknown("a word boundary", begin);
    if (c == 'p' || c == 'P') return property();
    if (c == 'k' || (c >= '1' && c <= '9')) return unknown("a reference to a group", begin);
    if (!in_class && (c == 'A' || c == 'Z' || c == 'z' || c == 'G')) {
      return unknown("an anchor of another language", begin);
    }
    char32_t code = 0;
    if (c == '0') {
      ++at_;
      if (peek() >= '0' && peek() <= '9') return unknown("an octal escape", begin);
      return one(0);
    }
    if (take("x")) {
      if (!hex(2, 2, code)) return wrong("\\x needs two hexadecimal digits");
      return one(code);
    }
    if (take("u{")) {
      if (!hex(1, 8, code) || !take("}")) return wrong("\\u{ needs a character's number and a '}'");
      return one(code);
    }
    if (take("u")) {
      if (!hex(4, 4, code)) return wrong("\\u needs four hexadecimal digits");
      char32_t low = 0;
      if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
        if (!hex(4, 4, low) || low < 0xDC00 || low > 0xDFFF) return wrong("a surrogate is alone");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      return one(code);
    }
    if (take("c")) {
      const char letter = peek();
      if ((letter | 0x20) < 'a' || (letter | 0x20) > 'z') return wrong("\\c needs a letter");
      ++at_;
      return one(static_cast<char32_t>(letter) & 31u);
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return wrong("an escape is not known");
    return one(next());
  }

  Status property() {
    const bool inverted = peek() == 'P';
    const std::size_t escape = at_ - 1;
    ++at_;
    if (!take("{")) return wrong("\\p needs a name in braces");
    const std::size_t begin = at_;
    while (!over() && peek() != '}') ++at_;
    std::string_view name = text_.substr(begin, at_ - begin);
    if (!take("}")) return wrong("\\p{ has no '}'");
    for (const std::string_view prefix : {"General_Category=", "gc="}) {
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    if (!set_.add_category(name, inverted)) {
      return unknown("a property of characters that the engine's table lacks", escape);
    }
    return {};
  }

  /// Returns the texts that match a part and then `rest`. `first`: the part is at the text's beginning.
  std::uint32_t build(std::uint32_t id, std::uint32_t rest, bool first) {
    const Node& part = nodes_[id];
    if (rest == kNothing) return kNothing;
    switch (part.op) {
      case Op::term:
        return terms_.cat(part.value, rest);
      case Op::begin:
        return first ? rest : kNothing;
      case Op::end:
        return terms_.nullable(rest) ? kEmpty : kNothing;
      case Op::ahead:
        return terms_.both(build(part.first, kAll, first), rest);
      case Op::not_ahead:
        return terms_.both(terms_.other(build(part.first, kAll, first)), rest);
      case Op::choice: {
        const std::uint32_t begin = terms_.mark();
        for (std::uint32_t i = part.first; i != 0; i = nodes_[i].next) terms_.push(build(i, rest, first));
        return terms_.join(begin);
      }
      case Op::list:
        return build_list(part.first, rest, first);
      case Op::repeat:
        if (!nodes_[part.first].asserts) {
          return terms_.cat(terms_.repeat(build(part.first, kEmpty, false), part.min, part.max), rest);
        }
        if (part.min == 0 && part.max == 1) return terms_.alt(build(part.first, rest, first), rest);
        refuse(part.value);
        return kNothing;
      case Op::name:
        return kNothing;  // no part of any list
    }
    return kNothing;
  }

  std::uint32_t build_list(std::uint32_t id, std::uint32_t rest, bool first) {
    if (id == 0) return rest;
    const Node& part = nodes_[id];
    // A later anchor is at the text's beginning if nothing is before it.
    const bool empty = part.op == Op::begin || part.op == Op::ahead || part.op == Op::not_ahead || part.op == Op::end;
    if (first && !empty && part.nullable) refuse(first_begin(part.next));
    const std::uint32_t after = build_list(part.next, rest, first && empty);
    return build(id, after, first);
  }

  /// Returns the byte of the first anchor for the beginning in the parts from `id` on, or kNowhere.
  std::uint32_t first_begin(std::uint32_t id) const {
    for (; id != 0; id = nodes_[id].next) {
      if (nodes_[id].op == Op::begin) return nodes_[id].value;
      const std::uint32_t inside = nodes_[id].asserts ? first_begin(nodes_[id].first) : kNowhere;
      if (inside != kNowhere) return inside;
    }
    return kNowhere;
  }
  void refuse(std::uint32_t at) { refused_ = std::min(refused_, at); }

  static constexpr char32_t kNoChar = 0xFFFFFFFF;
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  Terms& terms_;
  std::span<Node> nodes_;
  CharClass set_;
  std::uint32_t n_nodes_ = 1;         // node 0 is none
  std::uint32_t names_ = 0;           // the name that was read last
  std::uint32_t refused_ = kNowhere;  // the byte of the first anchor or look ahead that no term stands for
};

}  // namespace

Result<std::uint32_t> read_regex(std::string_view text, Match match, Terms& terms) {
  const std::size_t size = std::min<std::size_t>(kMaxNodes, 4 * text.size() + 8);
  Node* const nodes = terms.store().take_values<Node>(size);
  if (nodes == nullptr) return terms.error();
  return RegexReader(text, terms, {nodes, size}).read(match);
}

}  // namespace qsf::grammar
