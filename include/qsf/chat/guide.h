// Generations that follow a grammar: the tokens that may come next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/engine.h"
#include "qsf/grammar/grammar.h"

namespace qsf::chat {

struct GrammarText {
  GrammarKind kind = GrammarKind::gbnf;
  std::string_view text = {};
};

/// Makes a grammar in `memory`, which must outlive it, as must the text.
Result<grammar::Grammar> make_grammar(const GrammarText& text, std::span<std::byte> memory);

/// In JSON, a token of white space comes first or after another one only if no other token can, and integers have no
/// point, because models may go on with white space or zeros for ever.
class Guide {
 public:
  /// Builds the trie of the vocabulary in `memory`, whose beginning stays free. The session and the memory must outlive
  /// the guide. Errors: bad_text if the file has no tokenizer; out_of_memory.
  static Result<Guide> build(const Session& session, std::span<std::byte> memory);

  /// Returns the part of the memory that the guide does not use.
  std::span<std::byte> free() const { return free_; }
  /// Makes the grammar of later texts, with a copy of its text. Errors: those of Grammar.
  Status set(const GrammarText& text);
  /// Begins a text, which ends with one of `end_tokens`, at most kMaxEndTokens, or of the model's own.
  Status begin(std::span<const std::uint32_t> end_tokens);
  /// Adds a token that was allowed. Fails as Grammar::accept() does.
  Status follow(std::uint32_t token);
  /// Returns the set for Prompt::allowed, which begin() and follow() change.
  std::span<const std::uint64_t> allowed() const { return allowed_; }

 private:
  explicit Guide(const Session& session) : session_(&session) {}
  std::span<const std::uint32_t> ends() const { return std::span(ends_).first(n_ends_); }
  Status update();

  const Session* session_;
  std::span<std::byte> free_, memory_;  // memory_: of the grammar and its text
  grammar::TokenTrie trie_;
  grammar::Grammar grammar_;
  std::span<std::uint64_t> allowed_;
  std::span<std::uint64_t> blanks_;  // tokens of white space
  bool is_json_ = false;
  bool after_blank_ = true;                              // the text is empty or ends with such a token
  std::array<std::uint32_t, 2 * kMaxEndTokens> ends_{};  // the model's, then those of this text
  std::size_t n_ends_ = 0, n_own_ends_ = 0;
};

}  // namespace qsf::chat
