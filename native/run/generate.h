// One generation, from start() to its end, and its results.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/host.h"
#include "native/host/prompt_cache.h"
#include "qsf/chat/answer_parts.h"
#include "qsf/chat/guide.h"

namespace qsf::run {

struct Generation {
  std::vector<std::uint32_t> prompt_ids, generated_ids;
  std::uint32_t n_reused = 0;  // tokens of the prompt that were computed before
  std::string text;
  End ended = End::none;
  std::string logits_hash;     // empty unless requested
  double restore_seconds = 0;  // of the prompt's beginning from the cache
  /// The log-probabilities of each shown token, as Session::logprobs() gives them; empty unless requested.
  std::vector<std::vector<TokenLogprob>> logprobs;
  double prompt_seconds = 0;
  double generation_seconds = 0;
  Profile prompt_profile, generation_profile;  // if the host profiles
};

struct Sinks {
  std::function<Status(std::string_view)> text = {};              // pieces as they come
  std::function<Status(std::span<const float>)> all_logits = {};  // rows of the prompt's positions, in order
  std::function<Status(const chat::Part&)> part = {};             // parts that `parts` reads
  std::function<Status()> end = {};                               // after the last piece or part
  chat::AnswerParts* parts = nullptr;
};

struct Extras {
  /// Begins with the generation and replaces Prompt::allowed; the model's ends are then never ignored.
  chat::Guide* guide = nullptr;
  /// Gives the beginning of a prompt that begins a sequence anew, and gets the computed prompt.
  const PromptCache* cache = nullptr;
};

/// One of several texts that continue a prompt.
struct Continuation {
  Sinks sinks = {};
  chat::Guide* guide = nullptr;  // as in Extras
};

/// Starts a generation and runs it to its end. A cancelled one is stopped and is not an error. An error of a sink ends
/// it.
Result<Generation> generate(Host& host, const Prompt& prompt, const Sinks& sinks, const Extras& extras = {});
/// Does the same with texts of one prompt, in as many sequences of the session, whose passes they share. Text i has the
/// seed of the prompt plus i. The first sequence computes the prompt, and the others copy its memory as far as they can
/// go back. Only the first text has logits of the prompt's positions. Returns the texts in their order.
Result<std::vector<Generation>> generate(Host& host, const Prompt& prompt, std::span<const Continuation> texts,
                                         const PromptCache* cache);

/// Returns the seconds from the end of the prompt to the end of the last text.
double generation_seconds(std::span<const Generation> texts);
/// Returns the sentence on a text that --max-tokens cut, which it calls `what`.
std::string cut_sentence(std::string_view what, std::uint32_t max_tokens);

/// Whether a conversation can go on after this error of one of its lines.
bool is_of_a_line(ErrorCode code);
/// Returns context_full for a line that was not read, because it is longer than the context.
Error too_long_line(const Session& session);
/// Adds the changes that would help to an error of context_full.
Error with_advice(const Session& session, const Error& error);

}  // namespace qsf::run
