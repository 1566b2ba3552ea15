// Sets of characters as sorted ranges.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "grammar/terms.h"

namespace qsf::grammar {

/// A set of characters. One that has more than kMax ranges is refused by its maker, which asks full().
class CharClass {
 public:
  static constexpr std::uint32_t kMax = 2048;

  void clear() {
    count_ = 0;
    full_ = false;
  }
  void add(char32_t first, char32_t last) {
    if (count_ < kMax) {
      ranges_[count_++] = {first, last};
    } else {
      full_ = true;
    }
  }
  void add(const CharClass& other);
  /// Replaces the set by all other characters.
  void invert();
  /// Adds the class of `\d`, `\w` or `\s`, or of its capital letter.
  void add_escape(char letter);
  /// Adds the characters of a general category such as L, Lu or Nd, as far as the engine's table knows them. Returns
  /// false for others.
  bool add_category(std::string_view name, bool inverted);

  bool full() const { return full_; }
  std::span<const CharRange> ranges() const { return {ranges_.data(), count_}; }

 private:
  void sort();

  std::array<CharRange, kMax> ranges_;
  std::uint32_t count_ = 0;
  bool full_ = false;
};

}  // namespace qsf::grammar
