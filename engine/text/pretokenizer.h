// Pre-tokenizers, which cut a text before it is merged. Each is a row of kPretokenizers, with expressions that are
// compiled with the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/text/tokenizer_patterns.h"
#include "text/regex.h"

namespace qsf {

/// Cuts a text from its beginning to its end, in time linear in its length. Each expression cuts the pieces of the
/// previous one into its matches and the texts between them.
class Cutter {
 public:
  /// `pretokenizer` is a row of kPretokenizers.
  Cutter(std::uint32_t pretokenizer, std::string_view text);

  /// Returns the end of the next pre-token. Must not be called at the text's end.
  std::size_t next();
  /// Returns the number of characters examined so far.
  std::uint64_t steps() const { return steps_; }

 private:
  struct Pass {
    const regex::Expression* expression;
    std::size_t end = 0;                         // of this pass's last piece
    std::size_t match_begin = 0, match_end = 0;  // the next match, if the last piece is the text before
    std::size_t tail_begin = 0, tail_end = 0;    // white space at the end of the piece to be cut
  };

  struct Character {
    std::size_t at = ~std::size_t{0};
    char32_t code = 0;
    unicode::Category category = unicode::Category::other;
    std::uint8_t size = 0;
  };

  void cut(Pass& pass, std::size_t limit);
  std::size_t match(Pass& pass, std::size_t at, std::size_t limit);
  std::size_t match_from(const regex::Alternative& alternative, std::size_t i, std::size_t at, std::size_t limit);
  std::size_t match_words(const regex::Element& element, const regex::Alternative& alternative, std::size_t i,
                          std::size_t at, std::size_t limit);
  std::size_t match_rows(const regex::Element& element, std::size_t at, std::size_t limit);
  std::size_t size_in(const regex::Set& set, std::size_t at, std::size_t limit);
  std::size_t tail_of(Pass& pass, std::size_t limit);
  const Character& character(std::size_t at, std::size_t limit);

  std::string_view text_;
  std::size_t at_ = 0;
  std::array<Pass, kMaxPasses> passes_{};
  std::size_t n_passes_ = 0;
  Character last_;
  std::uint64_t steps_ = 0;
};

}  // namespace qsf
