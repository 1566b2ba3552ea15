#include "native/host/draft.h"

#include <utility>

#include "native/made/open_model.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

/// Returns an error as the draft's.
Error of_draft(const Error& error) { return make_error(error.code, "the draft model: {}", error.sentence); }

/// Returns the options with which the draft is opened, except those of DraftOpening.
HostOptions options_of_draft(const HostOptions& options) {
  HostOptions out;
  out.threads = options.threads;
  out.pin = options.pin;
  out.deepen = false;  // at most half of the budget is the draft's
  out.source = options.source;
  out.source.kind = out.source.quant_type = {};  // of the model
  return out;
}

}  // namespace

void set_speculation(std::string_view what, std::uint32_t most, HostOptions& options) {
  options.open.guesses = what == kGuessedByNone ? 0 : most;
  options.draft = what == kGuessedByNone || what == kGuessedByText ? std::string_view() : what;
}

Result<std::unique_ptr<Draft>> Draft::open(const HostOptions& options, const std::atomic<bool>& cancel) {
  HostOptions own = options_of_draft(options);
  SourceOptions finding = own.source;
  finding.budget = options.budget;
  const Result<FoundModel> found = find_model(std::string(options.draft), finding);
  if (!found) return of_draft(found.error());
  for (DraftOpening opening(options.budget, options.open);;) {
    own.budget = opening.budget();
    own.open = opening.options();
    if (opening.is_last()) own.kernels = options.kernels;
    Result<std::unique_ptr<Host>> host = Host::open(*found, own, cancel);
    if (!host) return of_draft(host.error());
    if (opening.is_last()) return std::unique_ptr<Draft>(new Draft(std::move(*host), own.budget));
    opening.planned((*host)->session().stats());
  }
}

Status Draft::follow(Session& model, std::vector<std::string>& notes) {
  QSF_TRY(check_draft(model, session()));
  for (const Error& note : draft_notes(model, session())) {
    if (const std::string_view sentence = note.sentence; !sentence.empty()) notes.emplace_back(sentence);
  }
  guesses_.emplace(model, session());
  return {};
}

Status Draft::guess() {
  const Status made = make_guesses();
  return made ? made : Status(of_draft(made.error()));
}

Status Draft::make_guesses() {
  for (;;) {
    QSF_LET(begun, guesses_->begin());
    if (!begun) return {};
    for (bool is_complete = false; !is_complete;) {
      QSF_LET(step, host_->next());
      is_complete = guesses_->take(step);
    }
  }
}

}  // namespace qsf
