#include "text/added_tokens.h"

namespace qsf {
namespace {

bool is_white(char32_t code) { return unicode::category_of(code) == unicode::Category::white; }

/// Whether the character is one of words: a letter, mark, number, connecting punctuation or joiner.
bool is_of_word(char32_t code) {
  using unicode::Category;
  constexpr std::uint32_t kWords =
      unicode::bit(Category::upper) | unicode::bit(Category::lower) | unicode::bit(Category::title) |
      unicode::bit(Category::modifier) | unicode::bit(Category::letter) | unicode::bit(Category::nonspacing) |
      unicode::bit(Category::spacing) | unicode::bit(Category::enclosing) | unicode::bit(Category::number);
  constexpr std::u32string_view kOthers = U"_\u203f\u2040\u2054\ufe33\ufe34\ufe4d\ufe4e\ufe4f\uff3f\u200c\u200d";
  return (unicode::bit(unicode::category_of(code)) & kWords) != 0 || kOthers.find(code) != kOthers.npos;
}

/// Returns the start of the character that ends at `end`.
std::size_t character_before(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<std::uint8_t>(text[end]) & 0xC0u) == 0x80);
  return end;
}

}  // namespace

AddedTokens::AddedTokens(const Tokenizer& tokenizer, std::string_view text, bool special,
                         std::span<const TextRange> plain, TextWork& work)
    : t_(tokenizer), text_(text), special_(special), all_plain_(plain), plain_{plain, plain}, work_(work) {
  for (std::uint32_t place = 0; place < t_.n_added_; ++place) {
    const std::string_view token = token_at(place);
    begins_[0].set(static_cast<std::uint8_t>(token[0]));
    if (!has(place, TokenAttribute::normalized)) continue;
    begins_[1].set(static_cast<std::uint8_t>(token[0]));
    longest_normalized_ = std::max(longest_normalized_, token.size());
  }
}

/// Whether an added token belongs to the second round. One that is not its own normal form is found as it is written,
/// because no text's normal form has it.
bool AddedTokens::is_normalized(std::uint32_t place) {
  if (!has(place, TokenAttribute::normalized)) return false;
  Known& known = normal_[place % normal_.size()];
  if (known.key != place) known = {place, is_normal(t_.normalizer_, token_at(place), work_)};
  return known.is;
}

/// Returns the added token at text_[at]. `at` must not fall between two calls of a round.
AddedTokens::Match AddedTokens::match_at(std::size_t at, std::size_t end, bool normalized, bool as_it_is) {
  std::span<const TextRange>& plain = plain_[normalized ? 1 : 0];
  while (!plain.empty() && plain.front().end <= at) plain = plain.subspan(1);
  const bool own = plain.empty() || at < plain.front().begin;
  const Match match = longest(part(at, end), special_ && own, normalized, as_it_is);
  if (plain.empty() || match.place == kNone || at + match.size <= plain.front().begin) return match;
  if (own) return longest(part(at, plain.front().begin), special_, normalized, as_it_is);
  const bool white = token_at(match.place).find_first_not_of(" \t\r\n") == std::string_view::npos;
  return white || !stands_outside(id_at(match.place)) ? match : Match{};
}

/// Returns the longest added token of the round that `text` begins with.
AddedTokens::Match AddedTokens::longest(std::string_view text, bool special, bool normalized, bool as_it_is) {
  const auto byte = static_cast<std::uint8_t>(text[0]);
  if (!as_it_is) return (byte & 0xC0u) == 0x80 ? Match{} : longest_of_form(text, special);
  if (!begins_[normalized ? 1 : 0][byte]) return {};
  const std::uint32_t place = search(text, special, normalized);
  return place == kNone ? Match{} : Match{place, token_at(place).size()};
}

/// Returns the longest added token that the normal form of `text` begins with, and the fewest bytes of the text that
/// have the token as their normal form. There is none if the token ends within a character's form.
AddedTokens::Match AddedTokens::longest_of_form(std::string_view text, bool special) {
  Normalizer normalizer(t_.normalizer_, text, work_);
  std::array<char, tokn::kMaxTokenBytes + 4> form{};
  std::size_t n = 0;
  for (char32_t c = 0; n < longest_normalized_ && normalizer.next(c);) {
    n += utf8::encode(c, form.data() + n);
    if (!begins_[1][static_cast<std::uint8_t>(form[0])]) return {};
  }
  const std::uint32_t place = n != 0 ? search({form.data(), n}, special, true) : kNone;
  if (place == kNone) return {};
  const std::string_view token = token_at(place);
  const std::size_t most = std::min(text.size(), 4 * token.size() + 4 * Normalizer::kMaxMarks);
  for (std::size_t size = 0; size < most && !work_.spent();) {
    size += utf8::decode(text, size).size;
    if (has_form(t_.normalizer_, text.substr(0, size), token, work_)) return {place, size};
  }
  return {};
}

std::uint32_t AddedTokens::search(std::string_view text, bool special, bool normalized) {
  std::uint32_t found = kNone;
  work_.spend(each_prefix(
      t_.n_added_, text, [&](std::uint32_t place) { return token_at(place); },
      [&](std::uint32_t place) {
        if (is_normalized(place) != normalized) return;
        if (special || t_.type(id_at(place)) == TokenType::user_defined) found = place;
      }));
  return found;
}

/// Whether an added token occurs outside the plain ranges, all of which is searched. The results for a few tokens are
/// kept, because texts repeat the same few.
bool AddedTokens::stands_outside(std::uint32_t id) {
  Known& sought = outside_[id % outside_.size()];
  if (sought.key == id) return sought.is;
  const std::string_view token = t_.stored(id);
  sought = {id, false};
  std::size_t begin = 0;
  const auto look_in = [&](std::size_t end) {
    const std::string_view own = part(begin, end);
    sought.is = sought.is || (work_.spend(own.size()) && own.find(token) != own.npos);
  };
  for (const TextRange& range : all_plain_) {
    look_in(range.begin);
    begin = range.end;
  }
  look_in(text_.size());
  return sought.is;
}

/// Whether a character of a word is next to the bytes [first, last) in the range.
bool AddedTokens::touches_word(TextRange range, std::size_t first, std::size_t last) const {
  return (first > range.begin && is_of_word(utf8::decode(text_, character_before(text_, first)).code)) ||
         (last < range.end && is_of_word(utf8::decode(text_, last).code));
}

std::size_t AddedTokens::without_white_end(std::size_t begin, std::size_t end) {
  while (end > begin && work_.spend(1)) {
    const std::size_t before = character_before(text_, end);
    if (!is_white(utf8::decode(text_, before).code)) break;
    end = before;
  }
  return end;
}

std::size_t AddedTokens::after_white(std::size_t begin, std::size_t end) {
  while (begin < end && work_.spend(1)) {
    const utf8::Decoded next = utf8::decode(text_, begin);
    if (!is_white(next.code)) break;
    begin += next.size;
  }
  return begin;
}

}  // namespace qsf
