#include "native/host/draft.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "native/made/open_model.h"
#include "qsf/base/budget.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::uint32_t kUsualContext = 2048;
constexpr std::string_view kUsualDraftType = "q4_0";  // docs/notes/2026-11-29-guesses-of-its-own.md

/// Returns an error as the draft's.
Error of_draft(const Error& error) { return make_error(error.code, "the draft model: {}", error.sentence); }

/// Returns the options with which the draft is opened, except its budget and its context.
HostOptions options_of_draft(const HostOptions& options) {
  HostOptions out;
  out.threads = options.threads;
  out.pin = options.pin;
  out.deepen = false;  // at most half of the budget is the draft's
  out.source = options.source;
  out.source.kind = {};  // of the model
  out.source.quant_type = options.draft_type;
  out.open.isa = options.open.isa;
  out.open.sequences = options.open.sequences;
  out.open.text_bytes = 1;  // it has no conversations
  return out;
}

}  // namespace

Status set_speculation(std::string_view what, std::uint32_t most, HostOptions& options) {
  const std::size_t colon = what.find(':');
  const std::string_view name = what.substr(0, colon);
  const std::string_view argument = colon == what.npos ? std::string_view() : what.substr(colon + 1);
  const auto kind = static_cast<std::size_t>(std::ranges::find(kSpeculation, name) - kSpeculation.begin());
  enum Kind : std::size_t { none, ngram, layers, lowbit };
  OpenOptions& open = options.open;
  open.guesses = kind == none ? 0 : most;
  open.guess_by_layers = kind == layers;
  open.guess_layers = 0;
  options.draft = options.draft_type = {};
  if (kind == layers && colon != what.npos) {
    const auto read = std::from_chars(argument.data(), argument.data() + argument.size(), open.guess_layers);
    if (read.ec != std::errc() || read.ptr != argument.data() + argument.size() || open.guess_layers == 0) {
      return make_error(ErrorCode::bad_argument, "layers:{:.40} names no number of layers", argument);
    }
  } else if (kind == lowbit) {
    options.draft_type = colon == what.npos ? kUsualDraftType : argument;
  } else if (kind == none || kind == ngram) {
    if (colon != what.npos) return make_error(ErrorCode::bad_argument, "{} takes no argument: {:.60}", name, what);
  } else if (kind == kSpeculation.size()) {
    options.draft = what;
  }
  return {};
}

Draft::Draft(std::unique_ptr<Host> host, std::uint64_t bytes, std::uint32_t sequences)
    : host_(std::move(host)), bytes_(bytes), sequences_(sequences) {
  const Stats s = session().stats();
  max_seq_len_ = s.max_seq_len;
  vocab_size_ = s.vocab_size;
}

Result<std::unique_ptr<Draft>> Draft::open(const std::string& model, const HostOptions& options,
                                           const std::atomic<bool>& cancel) {
  HostOptions own = options_of_draft(options);
  SourceOptions finding = own.source;
  finding.budget = options.budget;
  const Result<FoundModel> found = find_model(options.draft.empty() ? model : std::string(options.draft), finding);
  if (!found) return of_draft(found.error());
  // A plan states the budget that keeps all weights, and reads none of them.
  own.open.max_seq_len = options.open.max_seq_len != 0 ? options.open.max_seq_len : kUsualContext;
  own.budget = options.budget;
  std::uint64_t share = 0;
  for (bool is_known = false; !is_known;) {
    const Result<std::unique_ptr<Host>> plan = Host::open(*found, own, cancel);
    if (!plan) return of_draft(plan.error());
    const Stats s = (*plan)->session().stats();
    is_known = options.open.max_seq_len != 0 || own.open.max_seq_len <= s.model_seq_len;
    if (!is_known) own.open.max_seq_len = s.model_seq_len;
    share = std::min(s.resident_budget, options.budget / 2);
  }
  own.budget = share;
  own.kernels = options.kernels;
  Result<std::unique_ptr<Host>> host = Host::open(*found, own, cancel);
  if (!host) return of_draft(host.error());
  return std::unique_ptr<Draft>(new Draft(std::move(*host), share, own.open.sequences));
}

Status Draft::suits(Session& model, std::vector<std::string>& notes) const {
  const Stats of_model = model.stats(), of_own = host_->session().stats();
  if (of_model.guesses == 0) {
    return make_error(ErrorCode::unsupported,
                      "a draft model is of no use: this model, with these options, cannot go back over wrong guesses");
  }
  const Session& own = host_->session();
  const std::uint32_t n = std::max(of_model.vocab_size, of_own.vocab_size);
  bool has_texts = false;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::string_view here = model.detokenize(i, true), there = own.detokenize(i, true);
    has_texts = has_texts || !here.empty();
    if (here == there) continue;
    return make_error(ErrorCode::bad_argument,
                      "the draft model has another vocabulary: its token {} is '{:.60}', and the model's is '{:.60}'",
                      i, there, here);
  }
  if (!has_texts && of_model.vocab_size != of_own.vocab_size) {
    return make_error(ErrorCode::bad_argument,
                      "the draft model has another vocabulary: {} tokens, and the model {}; neither has texts",
                      of_own.vocab_size, of_model.vocab_size);
  }
  const auto mib = [](std::uint64_t bytes) { return Budget::mib(bytes); };
  if (of_own.weight_bytes >= of_model.weight_bytes) {
    notes.emplace_back(make_error(ErrorCode::none,
                                  "the draft model is not smaller than the model: {:.2f} MiB of weights, and {:.2f}; "
                                  "its guesses save no time",
                                  mib(of_own.weight_bytes), mib(of_model.weight_bytes))
                           .sentence);
  }
  if (of_own.ring_slots != 0) {
    notes.emplace_back(
        make_error(ErrorCode::none,
                   "the draft model is streamed too, because its weights need {:.2f} MiB and half of the "
                   "budget is {:.2f} MiB",
                   Budget::enough_mib(of_own.resident_budget), mib(of_model.budget / 2))
            .sentence);
  }
  return {};
}

Status Draft::guess(Session& model) {
  for (std::uint32_t i = 0; i < sequences_; ++i) {
    const std::uint32_t wanted = model.guesses_wanted(i);
    if (wanted == 0) continue;
    if (const Status guessed = guess(model, i, wanted); !guessed) return of_draft(guessed.error());
  }
  return {};
}

Status Draft::guess(Session& model, std::uint32_t sequence, std::uint32_t wanted) {
  const std::span<const std::uint32_t> tokens = model.tokens(sequence);
  const auto is_unknown = [this](std::uint32_t token) { return token >= vocab_size_; };
  if (tokens.size() >= max_seq_len_ || std::ranges::any_of(tokens, is_unknown)) return {};
  Prompt prompt;
  prompt.tokens = tokens;
  prompt.anew = true;
  prompt.max_tokens = std::min(wanted, max_seq_len_ - static_cast<std::uint32_t>(tokens.size()));
  prompt.ignore_eos = true;
  prompt.sampler.temperature = 0;
  QSF_TRY(session().start(prompt, sequence));
  std::array<std::uint32_t, kMostGuesses> guesses{};
  for (std::uint32_t n = 0; true;) {
    QSF_LET(step, host_->next());
    if (step == Step::token && n < guesses.size()) guesses[n++] = session().token();
    if (step != Step::done) continue;
    model.guess(std::span(guesses).first(n), sequence);
    return {};
  }
}

}  // namespace qsf
