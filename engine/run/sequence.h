// One sequence of tokens and the generation on it: the tokens to feed, the sampled token, and the reason for the end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/pass.h"
#include "qsf/base/checksum.h"
#include "qsf/engine.h"
#include "run/guesser.h"
#include "run/sampler.h"
#include "text/text_stream.h"

namespace qsf {

struct Model;

/// The memory in which hidden states become an embedding.
struct Pool {
  std::span<double> sums;      // [dim]
  std::span<float> embedding;  // [dim]
};

class Sequence {
 public:
  static constexpr std::size_t kArenaBytes = 4608;
  /// The state of a generation. Only a feeding one takes part in the next pass. Only showing, choosing and ending ones
  /// have a step to return, and settling ones if one token is allowed; else these become feeding ones.
  enum class State : std::uint8_t { idle, feeding, passing, showing, choosing, settling, ending };

  void init(std::uint32_t id, std::span<std::uint32_t> room, const Pool& pool) {
    id_ = id;
    room_ = room;
    pool_ = pool;
  }

  /// Checks the prompt, adds its tokens to the sequence and begins to feed them. No generation may be active.
  Status start(Model& model, const Prompt& prompt);
  /// The same for an embedding, for which the sequence begins again.
  Status embed(Model& model, const EmbedPrompt& prompt);
  /// Ends the generation for the caller's reason, and discards an unfinished pass.
  void stop(SequenceMemory& memory, End why);
  /// Keeps only the first n tokens. No generation may be active. Fails with bad_argument if there are fewer.
  Status rewind(SequenceMemory& memory, std::uint32_t n);

  std::uint32_t id() const { return id_; }
  State state() const { return state_; }
  bool is_idle() const { return state_ == State::idle; }
  /// Returns the number of tokens that are fed.
  std::uint32_t position() const { return position_; }
  /// Returns a number that every change of the tokens or of their memory changes.
  std::uint32_t changes() const { return changes_; }
  /// States that the sequence's memory has moved.
  void memory_moved() { ++changes_; }
  /// Forgets all tokens. No generation may be active.
  void clear(SequenceMemory& memory);
  /// Writes the tokens of an empty sequence one by one. They are its own once settle() states how many are known and
  /// how many of those are in the memory.
  void set_token(std::uint32_t i, std::uint32_t token) { room_[i] = token; }
  void settle(std::uint32_t n_tokens, std::uint32_t position);
  /// Returns the number of tokens that have not been fed.
  std::uint32_t n_unfed() const { return n_tokens_ - position_; }
  /// Whether it feeds the tokens of an answer, or the last one of a prompt. A recurrence is fed those again that were
  /// right guesses.
  bool decodes() const { return state_ == State::feeding && (n_unfed() == 1 || n_generated_ != 0); }
  /// Writes the next columns of a pass into `room` and returns their number: 0 if the rest of a text must be one pass
  /// and does not fit. The sequence's rows of logits begin at `first_row`, its hidden states at `first_hidden`. A
  /// generation that has begun its answer adds at most `guesses` columns of guessed tokens.
  std::uint32_t enter(std::span<Column> room, std::uint32_t guesses, std::uint32_t first_row,
                      std::uint32_t first_hidden);
  /// Returns the number of guesses that a source could give for the next pass.
  std::uint32_t guesses_wanted(GuessSource from) const;
  /// Takes the host's guesses, as many as are wanted and up to one that is not in the vocabulary.
  void give(std::span<const std::uint32_t> guesses);
  /// Writes the columns of a pass that guesses into `room` and returns their number. One wants logits if a guess is
  /// wanted, which `most` limits in number. A pass of the model's own layer also has the known tokens that follow those
  /// of the last pass. With `states`, a pass of the first layers also has all tokens that a state has not.
  std::uint32_t enter_guesses(std::span<Column> room, std::uint32_t most, bool states);
  /// Takes the token that column `column` of such a pass guesses, unless the sequence has changed since.
  void add_guess(std::uint32_t token, std::uint32_t column);
  /// States that the columns which enter() wrote are the pass's from `column` on, and that it keeps their hidden
  /// states.
  void keep_hidden(std::uint32_t column);
  /// States that a pass has replaced the hidden states.
  void forget_hidden() {
    n_kept_ = 0;
    guess_row_ = {};
  }
  /// Return the rows of the sequence in its pass.
  std::uint32_t n_pass_rows() const { return n_rows_ + n_guesses_; }
  std::uint32_t n_hidden() const { return n_hidden_; }
  std::uint32_t n_guesses() const { return n_guesses_; }
  /// Returns the rows of logits of known tokens, from first_row() on.
  std::uint32_t n_rows() const { return n_rows_; }
  /// Takes the results of the model's pass. Fails with not_finite if a number is not finite; the pass then does not
  /// count.
  Status leave(Model& model);
  /// Returns logits, embedding, token or done; working if there is nothing to report.
  Step next(Model& model);

  std::uint32_t token() const { return token_; }
  std::string_view piece() const { return piece_; }
  std::uint32_t first_row() const { return first_row_; }
  std::span<const float> embedding() const { return shown_; }
  std::span<const std::uint32_t> tokens() const { return room_.first(n_tokens_); }
  End end() const { return end_; }
  SequenceStats stats() const { return {position_, n_prompt_, n_generated_, n_reused_, n_guessed_, n_right_}; }
  std::string_view logits_hash();

 private:
  Result<std::uint32_t> read_prompt(Model& model, const Prompt& prompt, std::span<std::uint32_t> out, bool begins);
  void begin_anew(Model& model, std::span<const std::uint32_t> prompt, std::uint32_t most);
  /// Returns the rows that the pass computed for an embedding, [n_hidden_, width].
  std::span<float> given(const Model& model) const;
  std::uint32_t given_width(const Model& model) const;
  Status check_given(const Model& model) const;
  void add_hidden(std::span<float> rows);
  void finish_pool();
  void finish_score(const Model& model, float score);
  std::uint32_t most_guesses() const;
  std::uint32_t guess(std::uint32_t most);
  std::optional<Column> guessing(std::uint32_t most) const;
  std::span<float> row(Model& model) const;
  Step choose(Model& model);
  Step settle_token(Model& model);
  Step sample(Model& model);
  State go_on(Model& model, bool guessed);
  Step finish(End why);
  static constexpr std::uint32_t kNoLogits = ~std::uint32_t{0};  // after the last position

  std::span<std::uint32_t> room_;  // [max_seq_len]
  std::uint32_t id_ = 0;
  std::uint32_t n_tokens_ = 0;  // known tokens, fed or not
  std::uint32_t position_ = 0;  // tokens fed, which are in `SequenceMemory`
  std::uint32_t changes_ = 0;
  State state_ = State::idle;

  // The generation or embedding, and its current pass.
  std::uint32_t n_columns_ = 0, first_row_ = 0, n_rows_ = 0, first_hidden_ = 0, n_hidden_ = 0;
  bool embeds_ = false, one_pass_ = false, normalize_ = false;
  std::uint32_t second_from_ = 0;  // the first position of a pair's second text
  // Guessed tokens of the pass, which room_ has after the known ones. Their rows of logits follow those of known
  // tokens.
  std::uint32_t n_guesses_ = 0;        // that may still be right
  std::uint32_t n_right_in_pass_ = 0;  // of this pass
  bool expects_ = false;               // the guesses are those of expected_
  const ExpectedTokens* expected_ = nullptr;
  Guesser guesser_;
  // The last pass has the hidden states of positions [kept_from_, kept_from_ + n_kept_) from row kept_row_ on, or of
  // the last guess.
  std::uint32_t kept_from_ = 0, n_kept_ = 0, kept_row_ = 0;
  std::optional<std::uint32_t> guess_row_;
  std::uint32_t guessed_at_ = 0;  // changes_ when the pass that guesses began
  Pooling pooling_ = Pooling::mean;
  Pool pool_;
  std::span<const float> shown_;
  std::uint32_t max_tokens_ = 0, n_generated_ = 0, n_prompt_ = 0, n_reused_ = 0;
  std::uint32_t n_guessed_ = 0, n_right_ = 0;
  std::array<std::uint32_t, kMaxEndTokens> end_tokens_{};
  std::uint32_t n_end_tokens_ = 0;
  std::span<const std::uint64_t> allowed_;
  std::uint32_t vocab_size_ = 0;
  std::uint32_t logits_from_ = kNoLogits;  // first position whose logits are returned
  bool hash_logits_ = false, ignore_eos_ = false, logprobs_ = false;
  std::uint32_t top_logprobs_ = 0;
  End end_ = End::none;
  std::uint32_t token_ = 0;
  std::string_view piece_;
  Sampler sampler_;
  TextStream text_;
  Sha256 logits_sha_;
  std::array<char, 65> logits_hash_{};
};

}  // namespace qsf
