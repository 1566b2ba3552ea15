// The cut of a text at its added tokens, in two rounds: the tokens that are found in the text as it is, then those of
// TokenAttribute::normalized in the texts between.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/utf8.h"
#include "qsf/text/tokenizer.h"
#include "text/normalizer.h"
#include "text/prefix.h"
#include "text/text_work.h"
#include "text/tokn.h"
#include "text/unicode.h"

namespace qsf {

class AddedTokens {
 public:
  /// The arguments are those of Tokenizer::encode(); `text` must be UTF-8. `work` counts the work. All must outlive
  /// this object.
  AddedTokens(const Tokenizer& tokenizer, std::string_view text, bool special, std::span<const TextRange> plain,
              TextWork& work);

  /// Calls between(text) for each text without added tokens that is not empty, and found(id) for each added token, in
  /// their order. Returns false if a call does, or if the work is spent.
  template <class Between, class Found>
  bool cut(const Between& between, const Found& found) {
    return cut_range({0, text_.size()}, false, between, found);
  }

 private:
  static constexpr std::uint32_t kNone = tokn::kNone;

  struct Match {
    std::uint32_t place = kNone;  // in the table `added`
    std::size_t size = 0;         // bytes of the text
  };

  template <class Between, class Found>
  bool cut_range(TextRange range, bool normalized, const Between& between, const Found& found) {
    const bool as_it_is = !normalized || is_normal(t_.normalizer_, part(range.begin, range.end), work_);
    std::size_t begin = range.begin;
    const auto rest = [&](std::size_t end) {
      if (begin >= end) return true;
      if (!normalized && longest_normalized_ != 0) return cut_range({begin, end}, true, between, found);
      return between(part(begin, end));
    };
    for (std::size_t at = range.begin; at < range.end;) {
      if (!work_.spend(1)) return false;
      const Match match = match_at(at, range.end, normalized, as_it_is);
      if (match.place == kNone) {
        ++at;
        continue;
      }
      const std::size_t first = at, last = at + match.size;
      at = last;
      if (has(match.place, TokenAttribute::single_word) && touches_word(range, first, last)) continue;
      // As in Hugging Face's library, the search goes on after the token, although white space may be taken already.
      const bool strips = has(match.place, TokenAttribute::lstrip);
      if (!rest(strips ? without_white_end(begin, first) : first) || !found(id_at(match.place))) return false;
      begin = has(match.place, TokenAttribute::rstrip) ? after_white(last, range.end) : last;
    }
    return rest(range.end);
  }

  std::uint32_t id_at(std::uint32_t place) const { return tokn::u32_at(t_.added_, place); }
  std::string_view token_at(std::uint32_t place) const { return t_.stored(id_at(place)); }
  std::string_view part(std::size_t begin, std::size_t end) const { return text_.substr(begin, end - begin); }
  bool has(std::uint32_t place, TokenAttribute attribute) const {
    return t_.attributes_ != nullptr &&
           (static_cast<std::uint32_t>(t_.attributes_[place]) & static_cast<std::uint32_t>(attribute)) != 0;
  }

  Match match_at(std::size_t at, std::size_t end, bool normalized, bool as_it_is);
  Match longest(std::string_view text, bool special, bool normalized, bool as_it_is);
  Match longest_of_form(std::string_view text, bool special);
  std::uint32_t search(std::string_view text, bool special, bool normalized);
  bool is_normalized(std::uint32_t place);
  bool stands_outside(std::uint32_t id);
  bool touches_word(TextRange range, std::size_t first, std::size_t last) const;
  std::size_t without_white_end(std::size_t begin, std::size_t end);
  std::size_t after_white(std::size_t begin, std::size_t end);

  /// A token's number, and whether something holds for it.
  struct Known {
    std::uint32_t key = kNone;
    bool is = false;
  };

  const Tokenizer& t_;
  std::string_view text_;
  bool special_;
  std::span<const TextRange> all_plain_;
  std::array<std::span<const TextRange>, 2> plain_;  // by round: those that do not end before its position
  TextWork& work_;
  std::array<std::bitset<256>, 2> begins_{};  // by round: the first bytes of its tokens, and of others
  std::size_t longest_normalized_ = 0;        // bytes of the longest token of the second round; 0: there is none
  std::array<Known, 16> outside_{};           // by id: the token occurs outside the plain ranges
  std::array<Known, 16> normal_{};            // by place: the token is its own normal form
};

}  // namespace qsf
