// A draft: a second, smaller model, which guesses the tokens that a model will choose.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/host.h"

namespace qsf {

/// The kinds of guessing that have names. Any other text is the place of a draft, as Host::open() takes models.
inline constexpr std::array<std::string_view, 4> kSpeculation{"none", "ngram", "layers", "lowbit"};
inline constexpr std::uint32_t kUsualGuesses = 7;  // of a pass
/// Sets the options of guesses by such a text, with at most `most` of them in a pass: "layers" or "layers:N" for the
/// model's first N, "lowbit" or "lowbit:TYPE" for a draft that is the model itself in a format of fewer bits. Returns
/// bad_argument for a number that does not exist.
Status set_speculation(std::string_view what, std::uint32_t most, HostOptions& options);

class Draft {
 public:
  /// Opens the draft of a model in a part of the budget: as much as keeps its weights in memory, at most half. Its
  /// context is the one that is asked for, or up to 2,048 tokens. Errors: those of Host::open(), as the draft's.
  static Result<std::unique_ptr<Draft>> open(const std::string& model, const HostOptions& options,
                                             const std::atomic<bool>& cancel);

  Session& session() { return host_->session(); }
  /// Returns the draft's part of the budget, in bytes.
  std::uint64_t bytes() const { return bytes_; }
  /// Checks that the draft can guess for this session, and adds sentences about what will not be fast. Errors:
  /// unsupported for a model whose text cannot be guessed; bad_argument for another vocabulary.
  Status suits(Session& model, std::vector<std::string>& notes) const;
  /// Gives guesses to every sequence of the session that wants them. Each of the draft's sequences follows one of the
  /// session's: it goes back to the tokens that they have in common, and is fed the others. Errors: those of
  /// Host::next(), as the draft's.
  Status guess(Session& model);

 private:
  Draft(std::unique_ptr<Host> host, std::uint64_t bytes, std::uint32_t sequences);
  Status guess(Session& model, std::uint32_t sequence, std::uint32_t wanted);

  std::unique_ptr<Host> host_;
  std::uint64_t bytes_;
  std::uint32_t sequences_, max_seq_len_, vocab_size_;
};

}  // namespace qsf
