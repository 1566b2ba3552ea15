#include "grammar/char_class.h"

#include <algorithm>

#include "qsf/base/heap_sort.h"
#include "text/unicode.h"

namespace qsf::grammar {
namespace {

constexpr char32_t kLastChar = 0x10FFFF;

struct Name {
  std::string_view name;
  std::uint32_t categories;
};

constexpr std::array kNames = [] {
  using unicode::bit, unicode::Category;
  constexpr std::uint32_t kCased = bit(Category::upper) | bit(Category::lower) | bit(Category::title);
  constexpr std::uint32_t kLetter = kCased | bit(Category::modifier) | bit(Category::letter);
  constexpr std::uint32_t kMark = bit(Category::nonspacing) | bit(Category::spacing) | bit(Category::enclosing);
  return std::array{Name{"L", kLetter},
                    Name{"Letter", kLetter},
                    Name{"Lu", bit(Category::upper)},
                    Name{"Uppercase_Letter", bit(Category::upper)},
                    Name{"Ll", bit(Category::lower)},
                    Name{"Lowercase_Letter", bit(Category::lower)},
                    Name{"Lt", bit(Category::title)},
                    Name{"Lm", bit(Category::modifier)},
                    Name{"Lo", bit(Category::letter)},
                    Name{"M", kMark},
                    Name{"Mn", bit(Category::nonspacing)},
                    Name{"Mc", bit(Category::spacing)},
                    Name{"Me", bit(Category::enclosing)},
                    Name{"N", bit(Category::number)},
                    Name{"P", bit(Category::punctuation)},
                    Name{"S", bit(Category::symbol)}};
}();

}  // namespace

void CharClass::add(const CharClass& other) {
  for (const CharRange& range : other.ranges()) add(range.first, range.last);
  full_ = full_ || other.full_;
}

void CharClass::sort() {
  heap_sort(std::span(ranges_).first(count_), {}, &CharRange::first);
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (n != 0 && ranges_[i].first <= ranges_[n - 1].last + 1) {
      ranges_[n - 1].last = std::max(ranges_[n - 1].last, ranges_[i].last);
    } else {
      ranges_[n++] = ranges_[i];
    }
  }
  count_ = n;
}

void CharClass::invert() {
  sort();
  char32_t from = 0;
  std::uint32_t n = 0;
  const std::uint32_t count = count_;
  for (std::uint32_t i = 0; i < count; ++i) {
    const CharRange range = ranges_[i];
    if (range.first > from) ranges_[n++] = {from, range.first - 1};  // n <= i
    from = range.last + 1;
  }
  count_ = n;
  if (from <= kLastChar) add(from, kLastChar);
}

void CharClass::add_escape(char letter) {
  if (letter < 'a') {  // a capital: the others
    CharClass others;
    others.add_escape(static_cast<char>(letter + ('a' - 'A')));
    others.invert();
    add(others);
    return;
  }
  if (letter == 's') {
    constexpr CharRange kSpaces[]{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                  {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                  {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    for (const CharRange& range : kSpaces) add(range.first, range.last);
    return;
  }
  add('0', '9');
  if (letter == 'd') return;
  add('A', 'Z');
  add('_', '_');
  add('a', 'z');
}

bool CharClass::add_category(std::string_view name, bool inverted) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return n.name == name; });
  if (found == kNames.end()) return false;
  char32_t first = 0;
  bool in = false;
  for (char32_t c = 0; c <= kLastChar + 1; ++c) {
    const bool has = c <= kLastChar &&
                     ((found->categories >> static_cast<std::uint32_t>(unicode::category_of(c)) & 1u) != 0) != inverted;
    if (has && !in) first = c;
    if (!has && in) add(first, c - 1);
    in = has;
  }
  return true;
}

}  // namespace qsf::grammar
