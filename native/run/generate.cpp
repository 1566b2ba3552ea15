#include "native/run/generate.h"

#include <algorithm>

#include "native/cli/terminal.h"
#include "native/sources/clock.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

/// Gives the parts of an answer to a sink that may fail.
class PartReader {
 public:
  explicit PartReader(const Sinks& sinks) : sinks_(sinks) {}

  Status token(std::uint32_t id) {
    if (sinks_.parts != nullptr) sinks_.parts->token(id, sink());
    return status_;
  }
  Status end() {
    if (sinks_.parts != nullptr) sinks_.parts->end(sink());
    return status_;
  }

 private:
  chat::PartSink sink() {
    return {this, [](void* to, const chat::Part& part) {
              PartReader& at = *static_cast<PartReader*>(to);
              if (at.status_) at.status_ = at.sinks_.part(part);
            }};
  }

  const Sinks& sinks_;
  Status status_;
};

/// Starts a prompt, after its beginning was restored if the cache has more of it than the session. Returns the seconds
/// that restoring took.
Result<double> start(Session& session, const Prompt& prompt, const PromptCache* cache) {
  QSF_TRY(session.start(prompt));
  if (cache == nullptr || !prompt.anew || prompt.all_logits) return 0.0;
  const Clock::time_point begin = Clock::now();
  const std::vector<std::uint32_t> ids(session.tokens().begin(), session.tokens().end());
  session.stop();
  QSF_LET(is_restored, cache->restore(session, ids, session.sequence_stats().reused_tokens));
  const double seconds = is_restored ? seconds_since(begin) : 0.0;
  QSF_TRY(session.start(prompt));
  return seconds;
}

}  // namespace

Result<Generation> generate(Host& host, const Prompt& asked, const Sinks& sinks, const Extras& extras) {
  Session& session = host.session();
  Prompt prompt = asked;
  chat::Guide* const guide = extras.guide;
  if (guide != nullptr) {
    QSF_TRY(guide->begin(prompt.end_tokens, sinks.parts));
    prompt.allowed = guide->allowed();
    prompt.expected = guide->expected();
    prompt.ignore_eos = false;
  }
  const std::size_t known = prompt.anew ? 0 : session.tokens().size();
  Generation out;
  const Result<double> started = start(session, prompt, extras.cache);
  if (!started) {
    if (started.error().code != ErrorCode::cancelled) return started.error();
    out.ended = End::cancelled;
    return out;
  }
  out.restore_seconds = *started;
  const std::size_t with_prompt = session.tokens().size();
  const SequenceStats fed = session.sequence_stats();
  out.n_reused = fed.reused_tokens;
  std::uint64_t rows_left = fed.prompt_tokens - fed.reused_tokens;
  host.take_profile();
  Clock::time_point begin = Clock::now();
  bool in_prompt = true;
  const auto show = [&](std::string_view piece) -> Status {
    out.text += piece;
    if (sinks.text && !piece.empty()) return sinks.text(piece);
    return {};
  };
  PartReader parts(sinks);
  while (out.ended == End::none) {
    const Result<Step> step = host.next();
    if (!step) {
      if (step.error().code != ErrorCode::cancelled) return step.error();
      session.stop();
      out.ended = session.end();
      break;
    }
    if (*step == Step::logits && rows_left > 0 && sinks.all_logits) {
      const std::span<const float> rows = session.logits();
      const std::uint64_t n = std::min<std::uint64_t>(rows.size() / session.stats().vocab_size, rows_left);
      rows_left -= n;
      QSF_TRY(sinks.all_logits(rows.first(n * session.stats().vocab_size)));
    }
    if (in_prompt && *step != Step::logits) {  // the first token, or the end
      in_prompt = false;
      out.prompt_seconds = seconds_since(begin);
      out.prompt_profile = host.take_profile();
      if (extras.cache != nullptr && prompt.anew) {
        const auto n = static_cast<std::uint32_t>(with_prompt);
        const Status saved = extras.cache->save(session, n, n - out.n_reused);
        if (!saved) note(saved.error().sentence);
      }
      begin = Clock::now();
    }
    if (*step == Step::token && prompt.logprobs) {
      const std::span<const TokenLogprob> found = session.logprobs();
      out.logprobs.emplace_back(found.begin(), found.end());
    }
    if (*step == Step::token) QSF_TRY(parts.token(session.token()));
    if (*step == Step::token && guide != nullptr) QSF_TRY(guide->follow(session.token()));
    if (*step == Step::token || *step == Step::done) QSF_TRY(show(session.piece()));
    if (*step == Step::done) out.ended = session.end();
  }
  QSF_TRY(parts.end());
  (in_prompt ? out.prompt_seconds : out.generation_seconds) = seconds_since(begin);
  (in_prompt ? out.prompt_profile : out.generation_profile) = host.take_profile();
  const std::span<const std::uint32_t> ids = session.tokens();
  out.prompt_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(known),
                        ids.begin() + static_cast<std::ptrdiff_t>(with_prompt));
  out.generated_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(with_prompt), ids.end());
  if (prompt.hash_logits) out.logits_hash = session.logits_hash();
  return out;
}

Error with_advice(const Session& session, const Error& error) {
  if (error.code != ErrorCode::context_full) return error;
  return make_error(error.code, "{}: {} would help", error.sentence, session.stats().more_context);
}

Error too_long_line(const Session& session) {
  return with_advice(session, make_error(ErrorCode::context_full, "it is longer than the context of {} tokens can hold",
                                         session.stats().max_seq_len));
}

bool is_of_a_line(ErrorCode code) {
  return code == ErrorCode::bad_text || code == ErrorCode::bad_argument || code == ErrorCode::bad_token ||
         code == ErrorCode::unsupported || code == ErrorCode::context_full || code == ErrorCode::template_refusal;
}

}  // namespace qsf::run
