// Grapheme clusters, found character by character.
#pragma once

#include <cstdint>

namespace qsf {

/// The borders of extended grapheme clusters by rules GB3 to GB5 and GB9 to GB9b of https://unicode.org/reports/tr29.
/// The others, which join Hangul's letters, flags, emoji and Indic consonants, are left out: those characters take
/// three or more bytes, so that the clusters of them are longer than those that a map replaces as a whole.
class Clusters {
 public:
  /// Returns whether a cluster begins with the character that follows those of the previous calls.
  bool begins(char32_t c);

 private:
  enum class Kind : std::uint8_t { none, other, carriage_return, control, mark, prefix };

  static Kind kind_of(char32_t c);

  Kind last_ = Kind::none;
};

}  // namespace qsf
