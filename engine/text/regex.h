// Regular expressions as tables, made at compile time. The language has only the features that pre-tokenizers need:
// alternatives of character sets with greedy counts, (?: ) and (?i: ) around words, and (?!\S) or $ at an alternative's
// end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/base/utf8.h"
#include "text/unicode.h"

namespace qsf::regex {

inline constexpr std::uint8_t kUnlimited = 255;

struct Range {
  char32_t first, last;

  constexpr bool operator==(const Range&) const = default;
};

/// Characters by category or range. ASCII's characters have a bit each.
struct Set {
  std::array<std::uint64_t, 2> ascii{};
  std::uint32_t categories = 0;
  std::uint16_t first_range = 0, n_ranges = 0;
  bool negated = false;

  constexpr bool operator==(const Set&) const = default;
  constexpr bool has_ascii(std::uint32_t c) const { return (ascii[c >> 6] >> (c & 63u) & 1u) != 0; }
};

/// `min` to `max` characters of a set, as many as match. With words: one of them, or none if min is 0.
struct Element {
  std::uint8_t set = 0, min = 1, max = 1;
  std::uint8_t first_word = 0, n_words = 0;  // alternatives without an ending
};

enum class Ending : std::uint8_t {
  free,
  no_text_behind,  // (?!\S)
  at_end,          // $, after one element without a limit
};

struct Alternative {
  std::uint8_t first = 0, count = 0;  // elements
  Ending ending = Ending::free;
};

/// One expression: alternatives that are tried in order. The masks state which of them can begin with a character.
struct Expression {
  std::string_view text;
  std::uint8_t first = 0, count = 0;
  std::array<std::uint16_t, 128> with_ascii{};
  std::array<std::uint16_t, unicode::kCategories> with_category{};
  std::uint16_t with_range = 0;  // by a range of characters, which the category alone does not decide
};

/// All expressions; equal sets are stored once.
struct Machine {
  std::array<Set, 64> sets{};
  std::array<Range, 112> ranges{};
  std::array<Element, 224> elements{};
  std::array<Alternative, 128> alternatives{};
  std::array<Expression, 24> expressions{};
  std::size_t n_sets = 0, n_ranges = 0, n_elements = 0, n_alternatives = 0, n_expressions = 0;
};

/// Is not constexpr, so that an expression outside of the language does not compile.
void not_in_the_language();

namespace detail {

/// ASCII's characters in each category.
inline constexpr auto kAscii = [] {
  std::array<std::array<std::uint64_t, 2>, unicode::kCategories> bits{};
  for (char32_t c = 0; c < 128; ++c) {
    bits[static_cast<std::size_t>(unicode::ascii_category(c))][c >> 6] |= std::uint64_t{1} << (c & 63u);
  }
  return bits;
}();

/// A property's name and its categories.
struct Property {
  std::string_view name;
  std::uint32_t categories;
};
inline constexpr auto kProperties = [] {
  using unicode::bit, unicode::Category;
  constexpr std::uint32_t kCased = bit(Category::upper) | bit(Category::lower) | bit(Category::title);
  return std::array{Property{"L", kCased | bit(Category::modifier) | bit(Category::letter)},
                    Property{"Lu", bit(Category::upper)},
                    Property{"Ll", bit(Category::lower)},
                    Property{"Lt", bit(Category::title)},
                    Property{"Lm", bit(Category::modifier)},
                    Property{"Lo", bit(Category::letter)},
                    Property{"M", bit(Category::nonspacing) | bit(Category::spacing) | bit(Category::enclosing)},
                    Property{"N", bit(Category::number)},
                    Property{"P", bit(Category::punctuation)},
                    Property{"S", bit(Category::symbol)}};
}();

}  // namespace detail

/// Adds an expression to a machine.
class Compiler {
 public:
  constexpr Compiler(Machine& machine, std::string_view text) : m_(machine), text_(text) {}

  constexpr void compile() {
    std::array<Alternative, 16> own{};
    std::size_t n_own = 0;
    do {
      own[n_own++] = alternative();
    } while (take("|"));
    if (at_ != text_.size()) not_in_the_language();
    Expression& expression = m_.expressions[m_.n_expressions++];
    expression.text = text_;
    expression.first = small(m_.n_alternatives);
    expression.count = small(n_own);
    for (std::size_t i = 0; i < n_own; ++i) {
      m_.alternatives[m_.n_alternatives++] = own[i];
      mark_beginnings(own[i], static_cast<std::uint16_t>(1u << i), expression);
    }
  }

 private:
  static constexpr std::uint8_t small(std::size_t n) {
    if (n >= kUnlimited) not_in_the_language();
    return static_cast<std::uint8_t>(n);
  }
  constexpr bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  constexpr char32_t character() {
    const utf8::Decoded next = utf8::decode(text_, at_);
    at_ += next.size;
    return next.code;
  }
  constexpr bool over() const { return at_ == text_.size() || text_[at_] == '|' || text_[at_] == ')'; }

  constexpr Alternative alternative() {
    std::array<Element, 16> own{};
    std::size_t n_own = 0;
    Alternative out;
    while (!over()) {
      if (take("(?!\\S)")) {
        out.ending = Ending::no_text_behind;
      } else if (take("$")) {
        out.ending = Ending::at_end;
      } else {
        own[n_own++] = element();
      }
    }
    out.first = small(m_.n_elements);
    out.count = small(n_own);
    for (std::size_t i = 0; i < n_own; ++i) m_.elements[m_.n_elements++] = own[i];
    return out;
  }

  constexpr Element element() {
    Element out;
    if (text_.substr(at_).starts_with("(?")) {
      fold_ = take("(?i:");
      if (!fold_ && !take("(?:")) not_in_the_language();
      std::array<Alternative, 16> words{};
      std::size_t n_words = 0;
      do {
        words[n_words++] = alternative();
      } while (take("|"));
      if (!take(")")) not_in_the_language();
      fold_ = false;
      out.first_word = small(m_.n_alternatives);
      out.n_words = small(n_words);
      for (std::size_t i = 0; i < n_words; ++i) m_.alternatives[m_.n_alternatives++] = words[i];
      if (take("?")) out.min = 0;
      return out;
    }
    out.set = set();
    if (take("?")) {
      out.min = 0;
    } else if (take("*")) {
      out = {out.set, 0, kUnlimited};
    } else if (take("+")) {
      out.max = kUnlimited;
    } else if (take("{1,3}")) {
      out.max = 3;
    }
    return out;
  }

  constexpr std::uint8_t set() {
    Set out;
    out.first_range = static_cast<std::uint16_t>(m_.n_ranges);
    if (take("[")) {
      const bool negated = take("^");
      while (!take("]")) item(out);
      if (negated) {
        out.negated = true;
        for (std::uint64_t& word : out.ascii) word = ~word;
      }
    } else {
      item(out);
    }
    if (out.n_ranges == 0) out.first_range = 0;
    for (std::size_t i = 0; i < m_.n_sets; ++i) {
      if (m_.sets[i] == out) return small(i);
    }
    m_.sets[m_.n_sets] = out;
    return small(m_.n_sets++);
  }

  static constexpr void add(Set& out, std::uint32_t categories) {
    out.categories |= categories;
    for (std::size_t c = 0; c < unicode::kCategories; ++c) {
      if ((categories >> c & 1u) == 0) continue;
      for (std::size_t i = 0; i < 2; ++i) out.ascii[i] |= detail::kAscii[c][i];
    }
  }
  constexpr void add(Set& out, Range range) {
    for (char32_t c = range.first; c <= range.last && c < 128; ++c) out.ascii[c >> 6] |= std::uint64_t{1} << (c & 63u);
    if (range.last < 128) return;
    m_.ranges[m_.n_ranges++] = range;
    ++out.n_ranges;
  }

  constexpr void item(Set& out) {
    if (take("\\s")) {
      add(out, unicode::bit(unicode::Category::white));
      return;
    }
    if (take("\\p{")) {
      const std::size_t end = text_.find('}', at_);
      const std::string_view name = text_.substr(at_, end - at_);
      at_ = end + 1;
      for (const detail::Property& each : detail::kProperties) {
        if (each.name == name) {
          add(out, each.categories);
          return;
        }
      }
      not_in_the_language();
    }
    const char32_t first = one();
    if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
      ++at_;
      add(out, Range{first, one()});
      return;
    }
    add(out, Range{first, first});
    if (!fold_ || first < 'a' || first > 'z') return;
    add(out, Range{first - 'a' + 'A', first - 'a' + 'A'});
    if (first == 's') add(out, Range{0x17F, 0x17F});  // of the words' letters, only s has a third form
  }
  /// Reads a character of a set, which may be an escape.
  constexpr char32_t one() {
    if (take("\\r")) return '\r';
    if (take("\\n")) return '\n';
    if (take("\\") && ((text_[at_] >= 'a' && text_[at_] <= 'z') || (text_[at_] >= 'A' && text_[at_] <= 'Z'))) {
      not_in_the_language();
    }
    return character();
  }

  constexpr void mark_beginnings(const Alternative& alternative, std::uint16_t mask, Expression& out) const {
    for (std::size_t i = 0; i < alternative.count; ++i) {
      const Element& element = m_.elements[alternative.first + i];
      for (std::size_t word = 0; word < element.n_words; ++word) {
        mark_beginnings(m_.alternatives[element.first_word + word], mask, out);
      }
      if (element.n_words == 0) mark(m_.sets[element.set], mask, out);
      if (element.min != 0) return;
    }
    not_in_the_language();  // the alternative could be empty
  }
  static constexpr void mark(const Set& set, std::uint16_t mask, Expression& out) {
    for (std::uint32_t c = 0; c < 128; ++c) {
      if (set.has_ascii(c)) out.with_ascii[c] |= mask;
    }
    for (std::size_t c = 0; c < unicode::kCategories; ++c) {
      if ((set.categories >> c & 1u) != (set.negated ? 1u : 0u)) out.with_category[c] |= mask;
    }
    if (set.n_ranges != 0) out.with_range |= mask;
  }

  Machine& m_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool fold_ = false;
};

}  // namespace qsf::regex
