#include "native/host/draft.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "native/made/open_model.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::string_view kUsualDraftType = "q4_0";  // docs/notes/2026-11-29-guesses-of-its-own.md

/// Returns an error as the draft's.
Error of_draft(const Error& error) { return make_error(error.code, "the draft model: {}", error.sentence); }

/// Returns the options with which the draft is opened, except those of DraftOpening.
HostOptions options_of_draft(const HostOptions& options) {
  HostOptions out;
  out.threads = options.threads;
  out.pin = options.pin;
  out.deepen = false;  // at most half of the budget is the draft's
  out.source = options.source;
  out.source.kind = {};  // of the model
  out.source.quant_type = options.draft_type;
  return out;
}

}  // namespace

Status set_speculation(std::string_view what, std::uint32_t most, HostOptions& options) {
  if (what.empty()) return make_error(ErrorCode::bad_argument, "an empty text names no way of guessing, and no model");
  const std::size_t colon = what.find(':');
  const std::string_view name = what.substr(0, colon);
  const std::string_view argument = colon == what.npos ? std::string_view() : what.substr(colon + 1);
  const auto kind = static_cast<std::size_t>(std::ranges::find(kSpeculation, name) - kSpeculation.begin());
  enum Kind : std::size_t { none, ngram, layers, head, lowbit };  // as in kSpeculation
  OpenOptions& open = options.open;
  open.guesses = kind == none ? 0 : most;
  open.guess_by_layers = kind == layers;
  open.guess_by_head = kind == head;
  open.guess_layers = 0;
  options.draft = options.draft_type = {};
  if (kind == layers && colon != what.npos) {
    const auto read = std::from_chars(argument.data(), argument.data() + argument.size(), open.guess_layers);
    if (read.ec != std::errc() || read.ptr != argument.data() + argument.size() || open.guess_layers == 0) {
      return make_error(ErrorCode::bad_argument, "layers:{:.40} names no number of layers", argument);
    }
  } else if (kind == lowbit) {
    options.draft_type = colon == what.npos ? kUsualDraftType : argument;
    if (options.draft_type.empty()) return make_error(ErrorCode::bad_argument, "lowbit: names no type");
  } else if (kind == none || kind == ngram || kind == head) {
    if (colon != what.npos) return make_error(ErrorCode::bad_argument, "{} takes no argument: {:.60}", name, what);
  } else if (kind == kSpeculation.size()) {
    options.draft = what;
  }
  return {};
}

Result<std::unique_ptr<Draft>> Draft::open(const std::string& model, const HostOptions& options,
                                           const std::atomic<bool>& cancel) {
  HostOptions own = options_of_draft(options);
  SourceOptions finding = own.source;
  finding.budget = options.budget;
  const Result<FoundModel> found = find_model(options.draft.empty() ? model : std::string(options.draft), finding);
  if (!found) return of_draft(found.error());
  for (DraftOpening opening(options.budget, options.open);;) {
    own.budget = opening.budget();
    own.open = opening.options();
    if (opening.is_last()) own.kernels = options.kernels;
    Result<std::unique_ptr<Host>> host = Host::open(*found, own, cancel);
    if (!host) return of_draft(opening.refusal(host.error()));
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
