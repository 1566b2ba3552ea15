#include "grammar/gbnf.h"

#include <algorithm>

#include "grammar/char_class.h"
#include "grammar/text_cursor.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kMaxDepth = 100;
constexpr std::uint32_t kMaxRules = 4000;
constexpr std::uint32_t kMaxBeginnings = 200;  // rules that begin with rules that begin with rules

enum class Op : std::uint8_t { term, list, choice, repeat, rule };

struct Node {
  Op op = Op::term;
  std::uint32_t value = 0;  // a term or a rule
  std::uint32_t first = 0, next = 0;
  std::uint32_t min = 0, max = 0;
};

struct Rule {
  std::string_view name = {};
  std::uint32_t body = 0;  // a node; 0: not defined yet
  bool nullable = false, productive = false;
  std::uint8_t visit = 0;  // 1: on the way, 2: done
  std::uint32_t depth = 0;
};

bool names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfReader : TextCursor {
 public:
  GbnfReader(std::string_view text, Terms& terms) : TextCursor{text}, terms_(terms) {}

  Result<std::uint32_t> read() {
    if (!utf8::is_valid(text_)) return wrong("it is not valid UTF-8");
    if (!nodes_.init(terms_.store()) || !rules_.init(terms_.store()) || !by_name_.init(terms_.store())) {
      return terms_.error();
    }
    for (skip(true); !over(); skip(true)) QSF_TRY(definition());
    if (terms_.failed()) return terms_.error();
    for (std::uint32_t i = 1; i < rules_.size(); ++i) {
      if (rules_[i].body == 0) {
        return make_error(ErrorCode::bad_input, "the grammar uses the rule '{:.60}', which it does not define",
                          rules_[i].name);
      }
    }
    const std::uint32_t n = rules_.size();
    const std::uint32_t root = rule_of("root");
    if (root >= n) return make_error(ErrorCode::bad_input, "the grammar has no rule 'root'");
    analyse();
    if (terms_.failed()) return terms_.error();
    for (std::uint32_t i = 1; i < n; ++i) QSF_TRY(check_beginnings(i, 0));
    for (std::uint32_t i = 1; i < n; ++i) terms_.set_body(i, rules_[i].productive ? build(rules_[i].body) : kNothing);
    if (terms_.failed()) return terms_.error();
    if (!rules_[root].productive) {
      return make_error(ErrorCode::bad_input, "the grammar has no text: its rules never come to an end");
    }
    return terms_.rule(root, rules_[root].nullable);
  }

 private:
  Error wrong(std::string_view sentence) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    return make_error(ErrorCode::bad_input, "the grammar is wrong in line {}: {}", line, sentence);
  }
  /// Passes white space and comments, and lines if `lines`.
  void skip(bool lines) {
    while (!over()) {
      const char c = peek();
      if (c == '#') {
        while (!over() && peek() != '\n' && peek() != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view name() {
    const std::size_t begin = at_;
    while (!over() && names(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::uint32_t rule_of(std::string_view name) {
    std::uint64_t hash = 0;
    for (const char c : name) hash = mix(hash, static_cast<std::uint8_t>(c));
    return by_name_.find_or(
        hash, [&](std::uint32_t i) { return rules_[i].name == name; },
        [&] {
          Rule made;
          made.name = name;
          return rules_.add(made);
        });
  }

  Status definition() {
    const std::string_view title = name();
    if (title.empty()) return wrong("a rule's name is expected");
    const std::uint32_t rule = rule_of(title);
    if (rules_.size() > kMaxRules) return wrong("it has more than 4000 rules");
    skip(false);
    if (!take("::=")) return wrong("'::=' is expected after a rule's name");
    if (rules_[rule].body != 0) return wrong("a rule is defined twice");
    skip(true);
    QSF_LET(body, choice(0));
    rules_[rule].body = body;
    if (!over() && peek() != '\n' && peek() != '\r') return wrong("a rule ends here, but the line does not");
    return terms_.failed() ? Status(terms_.error()) : Status();
  }

  Result<std::uint32_t> choice(std::uint32_t depth) {
    if (depth > kMaxDepth) return wrong("it is nested too deep");
    Node made;
    made.op = Op::choice;
    std::uint32_t last = 0;
    while (true) {
      QSF_LET(part, sequence(depth));
      (last == 0 ? made.first : nodes_[last].next) = part;
      last = part;
      const std::size_t end = at_;
      skip(true);
      if (!take("|")) {
        if (depth == 0) at_ = end;
        break;
      }
      skip(true);
    }
    return nodes_.add(made);
  }

  Result<std::uint32_t> sequence(std::uint32_t depth) {
    Node made;
    made.op = Op::list;
    std::uint32_t last = 0;
    for (skip(depth > 0); !over(); skip(depth > 0)) {
      const char c = peek();
      if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
      std::uint32_t first = 0, end = 0;
      QSF_TRY(atom(depth, first, end));
      if (first == 0) continue;
      (last == 0 ? made.first : nodes_[last].next) = first;
      last = end;
    }
    return nodes_.add(made);
  }

  std::uint32_t node_of(std::uint32_t term) {
    Node made;
    made.value = term;
    return nodes_.add(made);
  }

  Status atom(std::uint32_t depth, std::uint32_t& first, std::uint32_t& last) {
    if (take("\"")) {
      while (!take("\"")) {  // a count after a text counts its last character only in no grammar: it counts the text
        char32_t code = 0;
        QSF_TRY(character(code, "a text has no end"));
        char bytes[4];
        const std::uint32_t term = terms_.text({bytes, utf8::encode(code, bytes)});
        const std::uint32_t node = node_of(term);
        (last == 0 ? first : nodes_[last].next) = node;
        last = node;
      }
      if (first == 0) first = last = node_of(kEmpty);
      if (first != last) {
        Node list;
        list.op = Op::list;
        list.first = first;
        first = last = nodes_.add(list);
      }
    } else if (take("[")) {
      QSF_TRY(characters());
      first = last = node_of(terms_.characters(set_.ranges()));
    } else if (take(".")) {
      const CharRange any{0, 0x10FFFF};
      first = last = node_of(terms_.characters({&any, 1}));
    } else if (take("(")) {
      QSF_LET(inner, choice(depth + 1));
      if (!take(")")) return wrong("a '(' has no ')'");
      first = last = inner;
    } else {
      const std::string_view title = name();
      if (title.empty()) return wrong("a text, a class, a group or a rule's name is expected");
      Node made;
      made.op = Op::rule;
      made.value = rule_of(title);
      first = last = nodes_.add(made);
    }
    return counts(first, last);
  }

  bool count(std::uint32_t& out) {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kMaxCount + 1);
    }
    out = static_cast<std::uint32_t>(value);
    return at_ > begin;
  }

  Status counts(std::uint32_t& first, std::uint32_t& last) {
    while (true) {
      std::uint32_t min = 0, max = kUnlimited;
      if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (take("{")) {
        skip(false);
        if (!count(min)) return wrong("a number is expected after '{'");
        skip(false);
        max = min;
        if (take(",")) {
          skip(false);
          if (!count(max)) max = kUnlimited;
          skip(false);
        }
        if (!take("}")) return wrong("a '{' has no '}'");
        if (min > kMaxCount || (max > kMaxCount && max != kUnlimited)) return wrong("a count is above 1000000");
        if (max < min) return wrong("a count ends before it begins");
      } else if (!take("*")) {
        return {};
      }
      Node made;
      made.op = Op::repeat;
      made.first = first;
      made.min = min;
      made.max = max;
      first = last = nodes_.add(made);
      skip(false);
    }
  }

  Status characters() {
    set_.clear();
    const bool inverted = take("^");
    while (!take("]")) {
      char32_t low = 0;
      QSF_TRY(character(low, "a '[' has no ']'"));
      char32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        QSF_TRY(character(high, "a '[' has no ']'"));
      }
      if (high < low) return wrong("a range ends before it begins");
      set_.add(low, high);
    }
    if (inverted) set_.invert();
    if (set_.full()) return wrong("a class has too many ranges");
    return {};
  }

  Status character(char32_t& code, std::string_view without_end) {
    if (over()) return wrong(without_end);
    if (!take("\\")) {
      const utf8::Decoded decoded = utf8::decode(text_, at_);
      at_ += decoded.size;
      code = decoded.code;
      return {};
    }
    constexpr std::string_view kNames = "tnr\\\"[]-^", kMeanings = "\t\n\r\\\"[]-^", kHex = "xuU";
    const char c = peek();
    if (const std::size_t i = kNames.find(c); !over() && i != kNames.npos) {
      ++at_;
      code = static_cast<char32_t>(kMeanings[i]);
      return {};
    }
    const std::size_t kind = over() ? kHex.npos : kHex.find(c);
    if (kind == kHex.npos) return wrong("an escape is not known");
    ++at_;
    code = 0;
    for (std::size_t i = 0; i < std::size_t{2} << kind; ++i, ++at_) {
      const char d = peek();
      const char low = static_cast<char>(d | 0x20);
      if (d >= '0' && d <= '9') {
        code = code * 16 + static_cast<char32_t>(d - '0');
      } else if (low >= 'a' && low <= 'f') {
        code = code * 16 + static_cast<char32_t>(low - 'a' + 10);
      } else {
        return wrong("an escape has too few hexadecimal digits");
      }
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return wrong("an escape is no character");
    return {};
  }

  /// Finds which rules may be empty and which have a text, again until nothing changes.
  void analyse() {
    const std::uint32_t n = rules_.size();
    bool changed = true;
    for (bool up = false; changed && !terms_.failed(); up = !up) {  // rules mostly use those before or after them
      changed = false;
      for (std::uint32_t k = 1; k < n; ++k) {
        Rule& rule = rules_[up ? k : n - k];
        const bool nullable = is_nullable(rule.body), productive = is_productive(rule.body);
        changed = changed || nullable != rule.nullable || productive != rule.productive;
        rule.nullable = nullable;
        rule.productive = productive;
      }
    }
  }
  bool is_nullable(std::uint32_t id) const {
    const Node& node = nodes_[id];
    if (!terms_.spend()) return false;
    if (node.op == Op::term) return terms_.nullable(node.value);
    if (node.op == Op::rule) return rules_[node.value].nullable;
    if (node.op == Op::repeat) return node.min == 0 || is_nullable(node.first);
    return node.op == Op::list ? every(node.first, &GbnfReader::is_nullable)
                               : some(node.first, &GbnfReader::is_nullable);
  }
  bool is_productive(std::uint32_t id) const {
    const Node& node = nodes_[id];
    if (!terms_.spend()) return false;
    if (node.op == Op::term) return node.value != kNothing;
    if (node.op == Op::rule) return rules_[node.value].productive;
    if (node.op == Op::repeat) return node.min == 0 || is_productive(node.first);
    return node.op == Op::list ? every(node.first, &GbnfReader::is_productive)
                               : some(node.first, &GbnfReader::is_productive);
  }
  using Is = bool (GbnfReader::*)(std::uint32_t) const;
  bool every(std::uint32_t id, Is is) const {
    while (id != 0 && (this->*is)(id)) id = nodes_[id].next;
    return id == 0;
  }
  bool some(std::uint32_t id, Is is) const {
    while (id != 0 && !(this->*is)(id)) id = nodes_[id].next;
    return id != 0;
  }

  /// Refuses a rule that begins with itself.
  Status check_beginnings(std::uint32_t number, std::uint32_t depth) {
    Rule& rule = rules_[number];
    if (rule.visit == 2) return {};
    if (rule.visit == 1) {
      return make_error(ErrorCode::unsupported,
                        "the grammar's rule '{:.60}' begins with itself; write the repetition with * or after a part",
                        rule.name);
    }
    if (depth > kMaxBeginnings) {
      return make_error(ErrorCode::unsupported, "the grammar's rule '{:.60}' begins with rules in more than {} levels",
                        rule.name, kMaxBeginnings);
    }
    rule.visit = 1;
    QSF_TRY(check_node(rule.body, depth));
    rule.visit = 2;
    return {};
  }
  Status check_node(std::uint32_t id, std::uint32_t depth) {
    const Node& node = nodes_[id];
    if (node.op == Op::term) return {};
    if (node.op == Op::rule) return check_beginnings(node.value, depth + 1);
    for (std::uint32_t i = node.first; i != 0; i = nodes_[i].next) {
      QSF_TRY(check_node(i, depth));
      if (node.op == Op::list && !is_nullable(i)) break;
      if (node.op == Op::repeat) break;
    }
    return {};
  }

  std::uint32_t build(std::uint32_t id) {
    const Node& node = nodes_[id];
    const std::uint32_t begin = terms_.mark();
    switch (node.op) {
      case Op::term:
        return node.value;
      case Op::rule:
        return rules_[node.value].productive ? terms_.rule(node.value, rules_[node.value].nullable) : kNothing;
      case Op::repeat:
        return terms_.repeat(build(node.first), node.min, node.max);
      case Op::choice:
        for (std::uint32_t i = node.first; i != 0; i = nodes_[i].next) terms_.push(build(i));
        return terms_.join(begin);
      case Op::list: {
        for (std::uint32_t i = node.first; i != 0; i = nodes_[i].next) terms_.push(build(i));
        return terms_.chain(begin);
      }
    }
    return kNothing;
  }

  Terms& terms_;
  Table<Node> nodes_;
  Table<Rule> rules_;
  Index by_name_;
  CharClass set_;
};

}  // namespace

Result<std::uint32_t> read_gbnf(std::string_view text, Terms& terms) { return GbnfReader(text, terms).read(); }

}  // namespace qsf::grammar
