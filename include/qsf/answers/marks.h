// The marks in answers around thoughts and calls, and those that the answers of one model may have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qsf::answers {

/// The number of marks in the table of engine/answers/syntaxes.h, two in each row: the one that opens, then the one
/// that closes. A mark may be empty.
inline constexpr std::size_t kMarks = 74;

/// Returns the text of a mark.
std::string_view mark_text(std::size_t mark);

struct Marks {
  static constexpr std::uint32_t kAsText = 0xFFFFFFFF;

  /// The token of each mark that was added to the vocabulary, found only as such; else kAsText, found in the text.
  std::array<std::uint32_t, kMarks> tokens;
  std::uint64_t rows = 0;  // a bit for each row of the table that the answers may have

  Marks() { tokens.fill(kAsText); }
  /// Adds the rows whose sign is in a template, and those whose mark is such a token. Call it with the tokens known.
  void add_rows(std::string_view chat_template);
  bool has(std::size_t row) const { return (rows >> row & 1) != 0; }
  /// Returns the mark that a token is in a row that applies, or kMarks.
  std::size_t find(std::uint32_t token) const;
};

}  // namespace qsf::answers
