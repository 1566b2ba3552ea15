// Regular expressions as tables, made at compile time. The language has only the features that pre-tokenizers need:
// alternatives of character sets with greedy or possessive counts, (?: ) and (?i: ) around words, such groups in rows
// at an alternative's end, && with a negated set, and (?!\S) or $ at an alternative's end.
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

/// Characters by category or range. ASCII's characters have a bit each. Ranges that are excluded are no members,
/// whatever their category is.
struct Set {
  std::array<std::uint64_t, 2> ascii{};
  std::uint32_t categories = 0;
  std::uint16_t first_range = 0, n_ranges = 0;
  bool negated = false, excludes = false;

  constexpr bool operator==(const Set&) const = default;
  constexpr bool has_ascii(std::uint32_t c) const { return (ascii[c >> 6] >> (c & 63u) & 1u) != 0; }
};

/// `min` to `max` characters of a set, as many as match; if it is possessive, the rest cannot have fewer. With words:
/// one of them, none if min is 0, as many as match if max is kUnlimited.
struct Element {
  std::uint8_t set = 0, min = 1, max = 1;
  std::uint8_t first_word = 0, n_words = 0;  // alternatives without an ending
  bool possessive = false;

  constexpr bool operator==(const Element&) const = default;
};

enum class Ending : std::uint8_t {
  free,
  no_text_behind,  // (?!\S)
  at_end,          // $, after one element without a limit
};

struct Alternative {
  std::uint8_t first = 0, count = 0;  // elements
  Ending ending = Ending::free;

  constexpr bool operator==(const Alternative&) const = default;
};

/// One expression: alternatives that are tried in order. The masks state which of them can begin with a character.
struct Expression {
  std::uint8_t first = 0, count = 0;
  std::array<std::uint16_t, 128> with_ascii{};
  std::array<std::uint16_t, unicode::kCategories> with_category{};
  std::uint16_t with_range = 0;  // by a range of characters, which the category alone does not decide
};

/// All expressions; equal sets, and equal rows of the others, are stored once.
struct Machine {
  std::array<Set, 56> sets{};
  std::array<Range, 168> ranges{};
  std::array<Element, 144> elements{};
  std::array<Alternative, 144> alternatives{};
  std::array<Expression, 32> expressions{};
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

/// The characters of the script Han.
inline constexpr std::array kHan{
    Range{0x2E80, 0x2E99},   Range{0x2E9B, 0x2EF3},   Range{0x2F00, 0x2FD5},   Range{0x3005, 0x3005},
    Range{0x3007, 0x3007},   Range{0x3021, 0x3029},   Range{0x3038, 0x303B},   Range{0x3400, 0x4DBF},
    Range{0x4E00, 0x9FFF},   Range{0xF900, 0xFA6D},   Range{0xFA70, 0xFAD9},   Range{0x16FE2, 0x16FE3},
    Range{0x16FF0, 0x16FF1}, Range{0x20000, 0x2A6DF}, Range{0x2A700, 0x2B739}, Range{0x2B740, 0x2B81D},
    Range{0x2B820, 0x2CEA1}, Range{0x2CEB0, 0x2EBE0}, Range{0x2EBF0, 0x2EE5D}, Range{0x2F800, 0x2FA1D},
    Range{0x30000, 0x3134A}, Range{0x31350, 0x323AF}};

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
    expression.first = store(own, n_own, m_.alternatives, m_.n_alternatives);
    expression.count = small(n_own);
    for (std::size_t i = 0; i < n_own; ++i) {
      mark_beginnings(own[i], static_cast<std::uint16_t>(1u << i), expression);
    }
  }

 private:
  static constexpr std::uint8_t small(std::size_t n) {
    if (n >= kUnlimited) not_in_the_language();
    return static_cast<std::uint8_t>(n);
  }
  /// Returns the place of a row of entries, which are added if they are not there yet.
  template <class Row, class All>
  static constexpr std::uint8_t store(const Row& row, std::size_t n_row, All& all, std::size_t& n_all) {
    for (std::size_t first = 0; first + n_row <= n_all; ++first) {
      std::size_t n = 0;
      while (n < n_row && all[first + n] == row[n]) ++n;
      if (n == n_row) return small(first);
    }
    for (std::size_t i = 0; i < n_row; ++i) all[n_all++] = row[i];
    return small(n_all - n_row);
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
        // After groups in a row nothing is tried again with fewer of them.
        if (own[n_own - 1].n_words != 0 && own[n_own - 1].max == kUnlimited && !over()) not_in_the_language();
      }
    }
    out.first = store(own, n_own, m_.elements, m_.n_elements);
    out.count = small(n_own);
    return out;
  }

  constexpr Element element() {
    Element out;
    if (text_.substr(at_).starts_with("(?")) {
      group(out);
    } else {
      out.set = set();
    }
    if (take("?")) {
      out.min = 0;
    } else if (take("*")) {
      out.min = 0;
      out.max = kUnlimited;
    } else if (take("+")) {
      out.max = kUnlimited;
    } else if (take("{1,3}")) {
      out.max = 3;
    } else {
      take("{1}");
      return out;
    }
    out.possessive = take("+");
    return out;
  }

  /// Reads words, and groups of them within.
  constexpr void group(Element& out) {
    const bool folded = fold_;
    if (take("(?i:")) {
      fold_ = true;
    } else if (!take("(?:")) {
      not_in_the_language();
    }
    std::array<Alternative, 16> words{};
    std::size_t n_words = 0;
    do {
      words[n_words++] = alternative();
    } while (take("|"));
    if (!take(")")) not_in_the_language();
    fold_ = folded;
    out.first_word = store(words, n_words, m_.alternatives, m_.n_alternatives);
    out.n_words = small(n_words);
  }

  constexpr std::uint8_t set() {
    Set out;
    out.first_range = static_cast<std::uint16_t>(m_.n_ranges);
    if (take("[")) {
      const bool negated = take("^");
      items(out);
      if (negated) {
        out.negated = true;
        for (std::uint64_t& word : out.ascii) word = ~word;
      }
    } else {
      item(out);
    }
    share_ranges(out);
    for (std::size_t i = 0; i < m_.n_sets; ++i) {
      if (m_.sets[i] == out) return small(i);
    }
    m_.sets[m_.n_sets] = out;
    return small(m_.n_sets++);
  }

  /// Reads to the end of a set. A set within is part of it; "&&[^" at the end begins ranges that it excludes.
  constexpr void items(Set& out) {
    while (!take("]")) {
      if (take("&&[^")) {
        if (out.n_ranges != 0) not_in_the_language();
        items(out);
        out.excludes = true;
      } else if (take("[")) {
        items(out);
      } else {
        item(out);
      }
    }
  }

  /// Takes the place of the same ranges in an earlier set.
  constexpr void share_ranges(Set& out) {
    for (std::size_t first = 0; first + out.n_ranges <= out.first_range; ++first) {
      std::size_t n = 0;
      while (n < out.n_ranges && m_.ranges[first + n] == m_.ranges[out.first_range + n]) ++n;
      if (n < out.n_ranges) continue;
      m_.n_ranges -= n;
      out.first_range = static_cast<std::uint16_t>(first);
      return;
    }
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
      if (name == "Han") {
        for (const Range& range : detail::kHan) add(out, range);
        return;
      }
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
    if (set.n_ranges != 0 && !set.excludes) out.with_range |= mask;
  }

  Machine& m_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool fold_ = false;
};

}  // namespace qsf::regex
