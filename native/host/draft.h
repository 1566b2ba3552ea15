// A draft model as a host in the host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/host.h"
#include "qsf/run/draft.h"

namespace qsf {

/// The kinds of guessing that have names. Any other text is the place of a draft, as Host::open() takes models.
inline constexpr std::array<std::string_view, 5> kSpeculation{"none", "ngram", "layers", "head", "lowbit"};
/// Sets the options of guesses by such a text, with at most `most` of them in a pass: "layers" or "layers:N" for the
/// model's first N, "head" for the model's own layer for further tokens, "lowbit" or "lowbit:TYPE" for a draft that is
/// the model itself in a format of fewer bits. Returns bad_argument for a number that does not exist,
/// and for an empty text.
Status set_speculation(std::string_view what, std::uint32_t most, HostOptions& options);

class Draft {
 public:
  /// Opens the draft of a model as DraftOpening says. Errors: those of Host::open(), as the draft's.
  static Result<std::unique_ptr<Draft>> open(const std::string& model, const HostOptions& options,
                                             const std::atomic<bool>& cancel);

  Session& session() { return host_->session(); }
  /// Returns the draft's part of the budget, in bytes.
  std::uint64_t bytes() const { return bytes_; }
  /// Checks that the draft can guess for this session, which it follows from now on, and adds sentences about what will
  /// not be fast. Errors: those of check_draft().
  Status follow(Session& model, std::vector<std::string>& notes);
  /// Gives guesses to every sequence of the session that wants them. Errors: those of Host::next(), as the draft's.
  Status guess();

 private:
  Draft(std::unique_ptr<Host> host, std::uint64_t bytes) : host_(std::move(host)), bytes_(bytes) {}
  Status make_guesses();

  std::unique_ptr<Host> host_;
  std::uint64_t bytes_;
  std::optional<DraftGuesses> guesses_;
};

}  // namespace qsf
