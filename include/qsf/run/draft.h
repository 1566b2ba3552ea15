// A draft: the session of a second, smaller model, which guesses the tokens that a model will choose. A host opens the
// draft first, checks it once the model has opened, and then lets it guess before each step of the model. The host
// reads for both sessions and steps both.
#pragma once

#include <array>
#include <cstdint>

#include "qsf/engine.h"

namespace qsf {

inline constexpr std::uint32_t kUsualGuesses = 7;  // of a pass

/// The openings of a draft. Plans in the whole budget, which read no weight, state its context and the bytes that keep
/// its weights in memory. The last opening has that many bytes, at most half of the budget.
class DraftOpening {
 public:
  /// Takes the budget of both models and the options of the model. Those that concern a draft are its own too; its
  /// context is the one that is asked for, or 2,048 tokens, but not longer than its own model's.
  DraftOpening(std::uint64_t budget, const OpenOptions& model);

  /// Returns the budget and the options of the next opening.
  std::uint64_t budget() const { return budget_; }
  const OpenOptions& options() const { return options_; }
  bool is_last() const { return is_last_; }
  /// Takes the plan that an opening before the last has made.
  void planned(const Stats& plan);
  /// Returns an error of the next opening, which states a part of the budget if it is about one.
  Error refusal(const Error& error) const;

 private:
  std::uint64_t budget_;
  std::uint32_t wanted_;  // context
  OpenOptions options_;   // with no context in the first opening, which states the model's own
  bool is_last_ = false;
};

/// Returns the reason why a session with passes of that many columns guesses nothing, as part of a sentence.
constexpr const char* no_guesses(std::uint32_t chunk) {
  return chunk == 1 ? "passes have one column (chunk), and no room for a guess"
                    : "this model, with these options, cannot go back over wrong guesses";
}

/// Checks that a draft can guess for a model, after both have opened. Errors: unsupported for a model whose text cannot
/// be guessed; bad_argument for another vocabulary.
Status check_draft(const Session& model, const Session& draft);

/// Returns sentences about what will not be fast, and then errors without a sentence.
std::array<Error, 2> draft_notes(const Session& model, const Session& draft);

/// The guesses of a draft. Each of its sequences follows one of the model's: it goes back to the tokens that they have
/// in common, and is fed the others. Both sessions must be open and outlive the object.
class DraftGuesses {
 public:
  DraftGuesses(Session& model, Session& draft);

  /// Begins to guess for the next sequence of the model that wants guesses. Returns whether there is one; the host then
  /// steps the draft. Errors: those of Session::start().
  Result<bool> begin();
  /// Takes a step of the draft. Returns whether the guesses are complete, and the model has them. A draft that was
  /// stopped gives those that it has made.
  bool take(Step step);

 private:
  Session* model_;
  Session* draft_;
  std::uint32_t sequences_, max_seq_len_, vocab_size_;
  std::uint32_t sequence_ = 0;
  std::size_t n_tokens_ = 0;  // of the sequence
  std::array<std::uint32_t, kMostGuesses> guesses_{};
  std::size_t n_guesses_ = 0;
};

}  // namespace qsf
