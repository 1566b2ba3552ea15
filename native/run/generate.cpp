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

/// One generation, in a sequence of its own.
class Running {
 public:
  Running(Host& host, std::uint32_t sequence, const Prompt& asked, const Continuation& text)
      : host_(host), id_(sequence), prompt_(asked), sinks_(text.sinks), guide_(text.guide), parts_(sinks_) {
    prompt_.sampler.seed += sequence;
    prompt_.all_logits = prompt_.all_logits && sequence == 0;
  }

  /// Begins the text, after the beginning of its prompt was restored if the cache has more of it than the session. A
  /// cancelled one has ended.
  Status start(const PromptCache* cache) {
    if (guide_ != nullptr) {
      QSF_TRY(guide_->begin(prompt_.end_tokens, sinks_.parts));
      prompt_.allowed = guide_->allowed();
      prompt_.expected = guide_->expected();
      prompt_.ignore_eos = false;
    }
    known_ = prompt_.anew ? 0 : session().tokens(id_).size();
    const Status started = begin(cache);
    if (!started) {
      if (started.error().code != ErrorCode::cancelled) return started;
      out_.ended = End::cancelled;
      return {};
    }
    cache_ = cache;
    with_prompt_ = session().tokens(id_).size();
    const SequenceStats fed = session().sequence_stats(id_);
    out_.n_reused = fed.reused_tokens;
    rows_left_ = fed.prompt_tokens - fed.reused_tokens;
    has_begun_ = true;
    begin_ = Clock::now();
    return {};
  }

  /// Takes a step of its sequence.
  Status take(Step step) {
    if (step == Step::logits && rows_left_ > 0 && sinks_.all_logits) {
      const std::span<const float> rows = session().logits();
      const std::uint64_t n = std::min<std::uint64_t>(rows.size() / session().stats().vocab_size, rows_left_);
      rows_left_ -= n;
      QSF_TRY(sinks_.all_logits(rows.first(n * session().stats().vocab_size)));
    }
    if (in_prompt_ && step != Step::logits) end_prompt();  // the first token, or the end
    if (step == Step::token && prompt_.logprobs) {
      const std::span<const TokenLogprob> found = session().logprobs();
      out_.logprobs.emplace_back(found.begin(), found.end());
    }
    if (step == Step::token) QSF_TRY(parts_.token(session().token()));
    if (step == Step::token && guide_ != nullptr) QSF_TRY(guide_->follow(session().token()));
    if (step == Step::token || step == Step::done) QSF_TRY(show(session().piece()));
    if (step != Step::done) return {};
    out_.ended = session().end(id_);
    return end();
  }

  /// Ends a text that has not ended yet.
  Status cancel() {
    if (has_ended()) return {};
    session().stop(id_);
    out_.ended = has_begun_ ? session().end(id_) : End::cancelled;
    return end();
  }

  bool has_ended() const { return out_.ended != End::none; }
  bool in_prompt() const { return in_prompt_; }
  Generation take_result() { return std::move(out_); }

 private:
  Session& session() { return host_.session(); }

  Status begin(const PromptCache* cache) {
    QSF_TRY(session().start(prompt_, id_));
    if (cache == nullptr || !prompt_.anew || prompt_.all_logits) return {};
    const Clock::time_point begin = Clock::now();
    const std::vector<std::uint32_t> ids(session().tokens(id_).begin(), session().tokens(id_).end());
    session().stop(id_);
    QSF_LET(is_restored, cache->restore(session(), ids, session().sequence_stats(id_).reused_tokens));
    if (is_restored) out_.restore_seconds = seconds_since(begin);
    return session().start(prompt_, id_);
  }

  void end_prompt() {
    in_prompt_ = false;
    out_.prompt_seconds = seconds_since(begin_);
    out_.prompt_profile = host_.take_profile();
    if (cache_ != nullptr && prompt_.anew) {
      const auto n = static_cast<std::uint32_t>(with_prompt_);
      const Status saved = cache_->save(session(), n, n - out_.n_reused);
      if (!saved) note(saved.error().sentence);
    }
    begin_ = Clock::now();
  }

  Status show(std::string_view piece) {
    out_.text += piece;
    if (sinks_.text && !piece.empty()) return sinks_.text(piece);
    return {};
  }

  Status end() {
    if (!has_begun_) return {};
    QSF_TRY(parts_.end());
    if (sinks_.end) QSF_TRY(sinks_.end());
    (in_prompt_ ? out_.prompt_seconds : out_.generation_seconds) = seconds_since(begin_);
    (in_prompt_ ? out_.prompt_profile : out_.generation_profile) = host_.take_profile();
    const std::span<const std::uint32_t> ids = session().tokens(id_);
    out_.prompt_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(known_),
                           ids.begin() + static_cast<std::ptrdiff_t>(with_prompt_));
    out_.generated_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(with_prompt_), ids.end());
    if (prompt_.hash_logits) out_.logits_hash = session().logits_hash(id_);
    return {};
  }

  Host& host_;
  std::uint32_t id_;
  Prompt prompt_;
  const Sinks& sinks_;
  chat::Guide* guide_;
  PartReader parts_;
  const PromptCache* cache_ = nullptr;
  std::size_t known_ = 0, with_prompt_ = 0;  // tokens of the sequence before the prompt, and with it
  std::uint64_t rows_left_ = 0;              // of the prompt's logits
  bool in_prompt_ = true, has_begun_ = false;
  Clock::time_point begin_;  // of the prompt, then of the text
  Generation out_;
};

}  // namespace

Result<Generation> generate(Host& host, const Prompt& prompt, const Sinks& sinks, const Extras& extras) {
  const Continuation text{sinks, extras.guide};
  QSF_LET(made, generate(host, prompt, std::span(&text, 1), extras.cache));
  return std::move(made.front());
}

Result<std::vector<Generation>> generate(Host& host, const Prompt& prompt, std::span<const Continuation> texts,
                                         const PromptCache* cache) {
  std::vector<Running> all;
  all.reserve(texts.size());
  for (const Continuation& text : texts) all.emplace_back(host, static_cast<std::uint32_t>(all.size()), prompt, text);
  const auto is_running = [](const Running& one) { return !one.has_ended(); };
  QSF_TRY(all.front().start(cache));
  host.take_profile();
  bool waits = all.size() > 1;  // others wait for the prompt
  while (std::ranges::any_of(all, is_running)) {
    const Result<Step> step = host.next();
    if (!step && step.error().code != ErrorCode::cancelled) return step.error();
    if (!step) {
      for (Running& one : all) QSF_TRY(one.cancel());
      break;
    }
    Running& of_step = all[host.session().sequence()];
    QSF_TRY(of_step.take(*step));
    if (!waits || all.front().in_prompt()) continue;
    waits = false;
    for (Running& one : std::span(all).subspan(1)) QSF_TRY(one.start(nullptr));
  }
  std::vector<Generation> out;
  for (Running& one : all) out.push_back(one.take_result());
  return out;
}

double generation_seconds(std::span<const Generation> texts) {
  double longest = 0;
  for (const Generation& one : texts) {
    // The others begin where the first one's prompt ends.
    const double own = one.generation_seconds + (&one == texts.data() ? 0 : one.prompt_seconds);
    longest = std::max(longest, own);
  }
  return longest;
}

std::string cut_sentence(std::string_view what, std::uint32_t max_tokens) {
  return std::string(
      make_error(ErrorCode::none, "the {} was cut after {} tokens (see --max-tokens)", what, max_tokens).sentence);
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
