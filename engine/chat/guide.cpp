#include "qsf/chat/guide.h"

#include <algorithm>
#include <utility>

#include "chat/block.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::chat {
namespace {

/// The longest text whose tokens are expected, in bytes: more than 15 usual tokens have.
constexpr std::size_t kMostExpected = 96;

/// Bytes for conversations that a guide leaves at least.
constexpr std::size_t kLeastFree = 256 << 10;

bool is_blank(std::string_view text) {
  return !text.empty() && text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Error too_little(std::size_t needed, std::size_t bytes) {
  return make_error(ErrorCode::out_of_memory,
                    "a grammar over this vocabulary needs {} bytes for texts, and there are {}: see text_bytes", needed,
                    bytes);
}

/// Returns the bytes of a set of tokens.
std::size_t set_bytes(std::uint32_t vocab_size) {
  return grammar::mask_words(vocab_size) * sizeof(std::uint64_t) + kAlignment;
}

}  // namespace

using grammar::Grammar;
using grammar::TokenTrie;

Result<Grammar> make_grammar(const GrammarText& text, std::span<std::byte> memory) {
  switch (text.kind) {
    case GrammarKind::gbnf:
      return Grammar::gbnf(text.text, memory);
    case GrammarKind::regex:
      return Grammar::regex(text.text, memory);
    case GrammarKind::json_schema:
      break;
  }
  return Grammar::json_schema(text.text, memory);
}

Result<Guide> Guide::build_for_thoughts(Session& session, std::span<std::byte> memory, std::size_t texts) {
  Guide made(session);
  const std::uint32_t n = session.stats().vocab_size;
  const std::size_t words = grammar::mask_words(n), of_set = set_bytes(n), kept = texts * of_set;
  if (memory.size() < kept) return too_little(kept, memory.size());
  made.allowed_ = Block(memory.last(of_set)).take<std::uint64_t>(words);
  made.others_ = memory.last(kept).first(kept - of_set);
  made.free_ = memory.first(memory.size() - kept);
  for (std::uint32_t id = 0; id < n; ++id) {
    if (session.is_end(id) && made.n_own_ends_ < kMaxEndTokens) made.ends_[made.n_own_ends_++] = id;
  }
  return made;
}

Result<Guide> Guide::build(Session& session, std::span<std::byte> memory, std::size_t texts) {
  Guide made(session);
  const std::uint32_t n = session.stats().vocab_size;
  Block all(memory);
  const std::span<std::string_view> tokens = all.take<std::string_view>(n);
  if (tokens.size() != n) return too_little(n * sizeof(std::string_view), memory.size());
  bool any = false;
  for (std::uint32_t id = 0; id < n; ++id) {
    tokens[id] = {};
    if (!session.is_end(id)) tokens[id] = session.detokenize(id);
    any = any || !tokens[id].empty();
  }
  if (!any) return make_error(ErrorCode::bad_text, "the file has no tokenizer, so no text can follow a grammar");
  const std::size_t words = grammar::mask_words(n);
  const std::size_t trie_bytes = TokenTrie::memory_for(tokens);
  const std::size_t kept = trie_bytes + 2 * words * sizeof(std::uint64_t) + 3 * kAlignment;
  const std::size_t least =
      kLeastFree + texts * Grammar::kLeastMemory + (texts - 1) * (set_bytes(n) + kAlignment) + kept;
  // The trie is built after the texts of the tokens, and they are not needed afterwards.
  if (memory.size() < std::max(least, kept + n * sizeof(std::string_view) + kAlignment)) {
    return too_little(std::max(least, kept + n * sizeof(std::string_view) + kAlignment), memory.size());
  }
  const std::span<std::byte> front = memory.first(memory.size() - kept);
  Block end(memory.last(kept));
  made.allowed_ = end.take<std::uint64_t>(words);
  made.blanks_ = end.take<std::uint64_t>(words);
  std::ranges::fill(made.blanks_, 0);
  for (std::uint32_t id = 0; id < n; ++id) {
    if (is_blank(tokens[id])) made.blanks_[id / 64] |= std::uint64_t{1} << id % 64;
    if (session.is_end(id) && made.n_own_ends_ < kMaxEndTokens) made.ends_[made.n_own_ends_++] = id;
  }
  QSF_LET(trie, TokenTrie::build(tokens, end.take<std::byte>(end.rest().size())));
  made.trie_ = trie;
  made.most_expected_ = session.stats().guesses;
  made.trie_bytes_ = trie_bytes;
  const std::size_t of_sets = (texts - 1) * set_bytes(n);
  std::size_t of_grammar = std::min(Grammar::kMemory, (front.size() - kLeastFree - of_sets) / texts);
  if (texts > 1) of_grammar = of_grammar / kAlignment * kAlignment;
  const std::size_t of_all = texts * of_grammar + of_sets;
  made.free_ = front.first(front.size() - of_all);
  made.memory_ = front.last(of_grammar);
  made.others_ = front.last(of_all).first(of_all - of_grammar);
  return made;
}

Guide Guide::other(std::size_t i) const {
  Guide made = *this;
  const std::size_t of_set = set_bytes(session_->stats().vocab_size), each = of_set + memory_.size();
  const std::span<std::byte> place = others_.subspan((i - 1) * each, each);
  made.allowed_ = Block(place.first(of_set)).take<std::uint64_t>(allowed_.size());
  made.memory_ = place.subspan(of_set);
  made.others_ = {};
  made.grammar_ = {};
  made.held_ = Held::nothing;
  made.calls_ = nullptr;
  return made;
}

Status Guide::set(const GrammarText& text) {
  Block all(memory_);
  const std::span<char> copy = all.take<char>(text.text.size());
  if (copy.size() != text.text.size()) return too_little(text.text.size(), memory_.size());
  std::ranges::copy(text.text, copy.begin());
  all.take<std::uint64_t>(0);
  const std::span<std::byte> rest = all.rest();
  const std::string_view source(copy.data(), copy.size());
  text_is_json_ = text.kind == GrammarKind::json_schema;
  QSF_LET(made, text_is_json_ ? Grammar::json_schema(source, rest, grammar::Integers::without_point)
                              : make_grammar({text.kind, source}, rest));
  grammar_ = made;
  held_ = Held::text;
  calls_ = nullptr;
  return {};
}

Status Guide::begin(std::span<const std::uint32_t> end_tokens, const AnswerParts* parts) {
  if (end_tokens.size() > kMaxEndTokens) {
    return make_error(ErrorCode::bad_argument, "{} end tokens; {} are possible", end_tokens.size(), kMaxEndTokens);
  }
  n_ends_ = n_own_ends_ + end_tokens.size();
  std::ranges::copy(end_tokens, ends_.begin() + static_cast<std::ptrdiff_t>(n_own_ends_));
  parts_ = parts;
  stage_ = Stage::any;
  n_thought_ = bodies_ = 0;
  n_forced_ = at_forced_ = n_exits_ = n_name_ = 0;
  called_ = leads_ = bare_ = false;
  opening_.reset();
  QSF_TRY(settle());
  QSF_TRY(update());
  expect();
  return {};
}

Status Guide::follow(std::uint32_t token) {
  if (std::ranges::find(ends(), token) != ends().end()) return {};
  const Stage before = stage_;
  bool follows = token / 64 < allowed_.size();
  if (follows) QSF_TRY(grow(token, follows));
  if (!follows) return make_error(ErrorCode::bad_token, "token {} is not one that the grammar allows", token);
  QSF_TRY(settle());
  QSF_TRY(update());
  if (expected_.n > 1 && expected_.ids[0] == token && stage_ == before) {
    std::shift_left(expected_.ids.begin(), expected_.ids.begin() + expected_.n--, 1);
  } else {
    expect();
  }
  return {};
}

/// Finds the tokens of the text that has no choice. A mistake in them costs time only.
void Guide::expect() {
  expected_.n = 0;
  if (most_expected_ == 0 || stage_ == Stage::any || stage_ == Stage::forced || opening_ || leads_) return;
  std::array<char, kMostExpected> bytes{};
  std::string_view text(bytes.data(), grammar_.forced(bytes));
  text = text.substr(0, utf8::valid_prefix(text));
  std::array<std::uint32_t, kMostExpected + 8> ids{};  // a tokenizer may add a token to those of bytes
  if (text.empty()) return;
  const Result<std::uint32_t> n = ids_of(text, false, ids);
  if (!n) return;
  expected_.n = std::min(*n, most_expected_);
  std::copy_n(ids.begin(), expected_.n, expected_.ids.begin());
}

/// Adds a token in its stage. `follows` becomes false if it was not allowed.
Status Guide::grow(std::uint32_t token, bool& follows) {
  const std::string_view bytes = session_->detokenize(token);
  const std::optional<std::uint32_t> opening = std::exchange(opening_, {});
  if (opening && token == *opening) {
    stage_ = Stage::any;
    return {};
  }
  switch (stage_) {
    case Stage::any:
      return {};
    case Stage::forced:
      follows = token == forced_[at_forced_];
      if (!follows || ++at_forced_ < n_forced_) return {};
      stage_ = next_;
      return go_on();
    case Stage::name: {
      const std::span<const std::uint32_t> exits = std::span(exits_).first(n_exits_);
      if (grammar_.can_end() && std::ranges::find(exits, token) != exits.end()) {
        stage_ = next_;
        if (n_forced_ <= 1) return go_on();
        stage_ = Stage::forced;  // the exit is the first of these tokens
        at_forced_ = 1;
        return {};
      }
      QSF_LET(accepted, grammar_.accept(bytes));
      follows = accepted && bytes.size() <= name_.size() - n_name_;
      if (follows) n_name_ += bytes.copy(name_.data() + n_name_, bytes.size());
      return {};
    }
    case Stage::text:
    case Stage::arguments:
      break;
  }
  QSF_LET(accepted, grammar_.accept(bytes));
  const bool is_blank_token = (blanks_[token / 64] >> token % 64 & 1) != 0;
  follows = accepted || (leads_ && is_blank_token);
  leads_ = false;
  after_blank_ = is_blank_token;
  if (stage_ != Stage::arguments || !grammar_.can_end()) return {};
  called_ = true;
  stage_ = Stage::any;
  bodies_ = place().bodies;
  return {};
}

void Guide::mask_all(bool with_ends) {
  std::ranges::fill(allowed_, ~std::uint64_t{0});
  if (!with_ends) forbid_ends();
}

void Guide::forbid_ends() {
  for (const std::uint32_t id : ends()) forbid(id);
}

Status Guide::update() {
  switch (stage_) {
    case Stage::any: {
      const answers::Place at = place();
      const bool waits = held_ == Held::text || (held_ == Held::calls && !called_ && required());
      mask_all(!waits);
      guard(at);
      return {};
    }
    case Stage::forced:
      std::ranges::fill(allowed_, 0);
      allow(forced_[at_forced_]);
      if (opening_) allow(*opening_);
      return {};
    case Stage::name:
      QSF_TRY(grammar_.mask(trie_, allowed_));
      forbid_ends();
      for (std::size_t i = 0; grammar_.can_end() && i < n_exits_; ++i) allow(exits_[i]);
      return {};
    case Stage::text:
    case Stage::arguments:
      break;
  }
  QSF_TRY(mask_grammar());
  if (opening_ && allows(*opening_)) opening_.reset();
  if (opening_) allow(*opening_);
  return {};
}

Status Guide::mask_grammar() {
  QSF_TRY(grammar_.mask(trie_, allowed_));
  if (!grammar_.can_end() && std::ranges::all_of(allowed_, [](std::uint64_t word) { return word == 0; })) {
    return make_error(ErrorCode::bad_input, "the grammar allows no token after this text, and no end of it");
  }
  const bool can_end = stage_ == Stage::text && grammar_.can_end();
  for (const std::uint32_t id : ends()) {
    forbid(id);
    if (can_end) allow(id);
  }
  if (leads_) {
    for (std::size_t w = 0; w < allowed_.size(); ++w) allowed_[w] |= blanks_[w];
    return {};
  }
  if (!is_json_ || !after_blank_) return {};
  bool others = false;
  for (std::size_t w = 0; w < allowed_.size(); ++w) others = others || (allowed_[w] & ~blanks_[w]) != 0;
  for (std::size_t w = 0; others && w < allowed_.size(); ++w) allowed_[w] &= ~blanks_[w];
  return {};
}

}  // namespace qsf::chat
