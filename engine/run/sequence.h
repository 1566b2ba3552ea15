// One sequence of tokens, and the generation that runs on it: which tokens are to be fed, which is chosen, why it ends.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/pass.h"
#include "qsf/base/checksum.h"
#include "qsf/engine.h"
#include "run/sampler.h"
#include "text/text_stream.h"

namespace qsf {

struct Model;

/// Where hidden states become an embedding.
struct Pool {
  std::span<double> sums;      // [dim]
  std::span<float> embedding;  // [dim]
};

class Sequence {
 public:
  static constexpr std::size_t kArenaBytes = 4608;
  /// Where a generation is. Only a feeding one takes part in the next pass; only showing, choosing and ending ones have
  /// something to tell.
  enum class State : std::uint8_t { idle, feeding, passing, showing, choosing, ending };

  void init(std::uint32_t id, std::span<std::uint32_t> room, const Pool& pool) {
    id_ = id;
    room_ = room;
    pool_ = pool;
  }

  /// Checks the prompt, adds its tokens to the sequence and begins to feed them. Nothing runs.
  Status start(Model& model, const Prompt& prompt);
  /// The same for an embedding, with which the sequence begins anew.
  Status embed(Model& model, const EmbedPrompt& prompt);
  /// Ends the generation for the caller's reason; an unfinished pass does not count.
  void stop(Lanes& lanes, End why);
  /// Forgets all but the first n tokens. Nothing runs.
  Status rewind(Lanes& lanes, std::uint32_t n);

  State state() const { return state_; }
  /// Tokens that are known but not fed.
  std::uint32_t n_unfed() const { return n_tokens_ - position_; }
  /// Puts the next columns into a pass, at most `room`; `first_row` is where its rows of logits begin, `first_hidden`
  /// the same of hidden states. Gives how many: none where the rest of a text must be one pass and does not fit.
  std::uint32_t enter(std::span<Column> room, std::uint32_t first_row, std::uint32_t first_hidden);
  std::uint32_t n_rows() const { return n_rows_; }
  std::uint32_t n_hidden() const { return n_hidden_; }
  /// The model's pass is done.
  void leave(Model& model);
  /// logits, embedding, token or done; working where there is nothing to tell.
  Step next(Model& model);

  std::uint32_t token() const { return token_; }
  std::string_view piece() const { return piece_; }
  std::uint32_t first_row() const { return first_row_; }
  std::span<const float> embedding() const { return shown_; }
  std::span<const std::uint32_t> tokens() const { return room_.first(n_tokens_); }
  End end() const { return end_; }
  SequenceStats stats() const { return {position_, n_prompt_, n_generated_}; }
  std::string_view logits_hash();

 private:
  Result<std::uint32_t> read_prompt(Model& model, const Prompt& prompt);
  void add_hidden(std::span<float> rows);
  void finish_pool();
  Step choose(Model& model);
  Step finish(End why);
  static constexpr std::uint32_t kNoLogits = ~std::uint32_t{0};  // behind the last position

  std::span<std::uint32_t> room_;  // [max_seq_len]
  std::uint32_t id_ = 0;
  std::uint32_t n_tokens_ = 0;  // known: fed, or still to be fed
  std::uint32_t position_ = 0;  // fed: in the lanes
  State state_ = State::idle;

  // The generation or embedding, and the pass that it is in.
  std::uint32_t n_columns_ = 0, first_row_ = 0, n_rows_ = 0, first_hidden_ = 0, n_hidden_ = 0;
  bool embeds_ = false, one_pass_ = false, normalize_ = false;
  Pooling pooling_ = Pooling::mean;
  Pool pool_;
  std::span<const float> shown_;
  std::uint32_t max_tokens_ = 0, n_generated_ = 0, n_prompt_ = 0;
  std::array<std::uint32_t, kMaxEndTokens> end_tokens_{};
  std::uint32_t n_end_tokens_ = 0;
  std::uint32_t logits_from_ = kNoLogits;  // positions whose logits are told
  bool hash_logits_ = false, ignore_eos_ = false;
  End end_ = End::none;
  std::uint32_t token_ = 0;
  std::string_view piece_;
  Sampler sampler_;
  TextStream text_;
  Sha256 logits_sha_;
  std::array<char, 65> logits_hash_{};
};

}  // namespace qsf
