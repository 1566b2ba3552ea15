// Generations that are held to a grammar, to calls of tools, or to a length of thoughts: the tokens that may come next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/chat/answer_parts.h"
#include "qsf/engine.h"
#include "qsf/grammar/grammar.h"

namespace qsf::chat {

struct GrammarText {
  GrammarKind kind = GrammarKind::gbnf;
  std::string_view text = {};
};

/// Makes a grammar in `memory`, which must outlive it, as must the text.
Result<grammar::Grammar> make_grammar(const GrammarText& text, std::span<std::byte> memory);

/// Which calls an answer may have, all of which follow the schemas of their tools.
struct CallRules {
  bool required = false;       // the answer begins with a call, after its thoughts
  std::string_view only = {};  // the one tool that may be called; empty: any
};

/// In JSON, a token of white space comes first or after another one only if no other token can, and integers have no
/// point, because models may go on with white space or zeros for ever.
class Guide {
 public:
  static constexpr std::uint32_t kUnlimited = 0xFFFFFFFF;

  /// Builds the trie of the vocabulary in `memory`, whose beginning stays free, with room for the guides of as many
  /// `texts` at once. The session and the memory must outlive the guide. Errors: bad_text if the file has no tokenizer;
  /// out_of_memory.
  static Result<Guide> build(Session& session, std::span<std::byte> memory, std::size_t texts = 1);
  /// Builds a guide without a grammar or calls, which needs a bit for each token only. Errors: out_of_memory.
  static Result<Guide> build_for_thoughts(Session& session, std::span<std::byte> memory, std::size_t texts = 1);

  /// Returns a guide of another text with the same trie and limit of thoughts, without a grammar or calls. It has the
  /// i-th place of build(), 1 to texts - 1, and must not be used by two threads at once with the others.
  Guide other(std::size_t i) const;

  /// Returns the part of the memory that the guide does not use.
  std::span<std::byte> free() const { return free_; }
  /// Makes the grammar of later texts, with a copy of its text. Errors: those of Grammar.
  Status set(const GrammarText& text);
  /// Holds the calls of later answers to this conversation's tools, which takes the place of a grammar. Errors:
  /// unsupported if the template writes no calls; bad_argument if there is no tool to call; those of render() and of
  /// Grammar.
  Status set_calls(const Conversation& conversation, const CallRules& rules);
  /// Allows any text, which takes the place of a grammar.
  void allow_all() { held_ = Held::nothing; }
  /// Ends the thoughts of later answers after that many tokens; 0: at once; kUnlimited: never.
  void limit_thoughts(std::uint32_t tokens) { most_thought_ = tokens; }

  /// Begins a text, which ends with one of `end_tokens`, at most kMaxEndTokens, or of the model's own.
  Status begin(std::span<const std::uint32_t> end_tokens) { return begin(end_tokens, nullptr); }
  /// Begins an answer, which `parts` has begun and reads; it must outlive the answer. A grammar begins after the
  /// thoughts.
  Status begin(std::span<const std::uint32_t> end_tokens, const AnswerParts* parts);
  /// Adds a token that was allowed, and that the parts of an answer were given. Fails as Grammar::accept() does.
  Status follow(std::uint32_t token);
  /// Returns the set for Prompt::allowed, which begin() and follow() change.
  std::span<const std::uint64_t> allowed() const { return allowed_; }
  /// Returns the tokens of a text without a choice, for Prompt::expected, which begin() and follow() change. Its
  /// division into tokens is the tokenizer's, and a model may choose another one. None in a session without guesses.
  const ExpectedTokens* expected() const { return &expected_; }

 private:
  enum class Held : std::uint8_t { nothing, text, calls };
  /// The kind of the tokens that may come next.
  enum class Stage : std::uint8_t {
    any,
    text,       // of the grammar's text
    forced,     // those of forced_
    name,       // of a tool's name, then exits_
    arguments,  // of a call or its arguments in JSON
  };
  struct Calls;  // in memory_

  explicit Guide(Session& session) : session_(&session) {}
  std::span<const std::uint32_t> ends() const { return std::span(ends_).first(n_ends_); }
  bool has_grammars() const { return trie_bytes_ != 0; }
  bool required() const;
  answers::Place place() const { return parts_ != nullptr ? parts_->place() : answers::Place(); }

  Status settle();
  Status settle_thought(const answers::Place& place);
  Status settle_text(const answers::Place& place);
  Status settle_calls(const answers::Place& place);
  void offer_thought(const answers::Place& place);
  Status begin_body(const answers::Place& place);
  Status begin_bare_body(const answers::Place& place);
  Status begin_name(std::string_view after_name, bool in_header);
  Status begin_arguments(std::string_view tool);
  Status begin_call();
  Status go_on();
  Status force(std::string_view text, Stage next);
  Result<std::uint32_t> ids_of(std::string_view text, bool special, std::span<std::uint32_t> ids);
  Status grow(std::uint32_t token, bool& follows);

  Status update();
  void expect();
  Status mask_grammar();
  void mask_all(bool with_ends);
  void allow(std::uint32_t id) { allowed_[id / 64] |= std::uint64_t{1} << id % 64; }
  void forbid(std::uint32_t id) { allowed_[id / 64] &= ~(std::uint64_t{1} << id % 64); }
  bool allows(std::uint32_t id) const { return (allowed_[id / 64] >> id % 64 & 1) != 0; }
  void forbid_ends();
  void forbid_beyond(std::string_view text, std::string_view mark);
  void forbid_other_calls();
  void guard(const answers::Place& place);

  Session* session_;
  std::span<std::byte> free_, memory_;  // memory_: of the grammar and its text, or of the calls
  std::span<std::byte> others_;         // the places of other(), each with a set of tokens and as much memory
  std::size_t trie_bytes_ = 0;          // 0: there is no grammar
  grammar::TokenTrie trie_;
  grammar::Grammar grammar_;
  std::span<std::uint64_t> allowed_;
  std::span<std::uint64_t> blanks_;  // tokens of white space
  bool is_json_ = false;
  bool after_blank_ = true;                              // the text is empty or ends with such a token
  std::array<std::uint32_t, 2 * kMaxEndTokens> ends_{};  // the model's, then those of this text
  std::size_t n_ends_ = 0, n_own_ends_ = 0;

  Held held_ = Held::nothing;
  bool text_is_json_ = false;
  std::uint32_t most_thought_ = kUnlimited;
  Calls* calls_ = nullptr;
  const AnswerParts* parts_ = nullptr;
  Stage stage_ = Stage::any, next_ = Stage::any;  // next_: after the forced tokens
  std::uint32_t n_thought_ = 0;                   // tokens of the thought
  std::uint32_t bodies_ = 0;                      // of the parts, that were seen
  bool called_ = false;                           // a call is whole
  bool leads_ = false;                            // white space after a thought is no part of the text
  bool bare_ = false;                             // the grammar follows a value that may be a call
  std::array<std::uint32_t, 96> forced_{};
  std::size_t n_forced_ = 0, at_forced_ = 0;
  std::array<std::uint32_t, 4> exits_{};  // tokens that may follow a name
  std::size_t n_exits_ = 0;
  std::array<char, 128> name_{};  // the name so far
  std::size_t n_name_ = 0;
  ExpectedTokens expected_;
  std::uint32_t most_expected_ = 0;       // guesses of the session
  std::optional<std::uint32_t> opening_;  // the token that begins a thought in place of the text
};

}  // namespace qsf::chat
