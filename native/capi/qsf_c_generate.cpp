// The C API's generations, and the parts and log-probabilities that their callbacks get.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "native/capi/qsf_c.h"
#include "native/host/saved_file.h"
#include "qsf/base/try.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

struct Limits {
  int max_tokens;
  float temperature, top_p;
};

/// The host's functions and their argument. Either may be NULL.
struct Callbacks {
  QSFTokenCallback token = nullptr;
  QSFPartCallback part = nullptr;
  void* user_data = nullptr;

  void give(int id, const std::string& text) const {
    if (token != nullptr) token(id, text.c_str(), user_data);
  }
  void give(const chat::Part& given) const {
    const std::string text(given.text), kind(kPartNames[static_cast<std::size_t>(given.kind)]);
    if (part != nullptr) part(kind.c_str(), text.c_str(), user_data);
  }
  chat::PartSink sink() const {
    return {const_cast<Callbacks*>(this),
            [](void* to, const chat::Part& given) { static_cast<const Callbacks*>(to)->give(given); }};
  }
};

void keep_logprobs(QSFEngine& engine) {
  engine.logprobs.clear();
  for (const TokenLogprob& one : engine.host->session().logprobs()) {
    engine.logprobs.push_back({static_cast<int>(one.token), one.logprob});
  }
}

/// Continues the sequence by the prompt until the generation ends. `parts` reads the answer, if it is one.
Status generate(QSFEngine& engine, Prompt& start, const Limits& limits, const Callbacks& callbacks,
                chat::AnswerParts* parts) {
  Session& session = engine.host->session();
  start.max_tokens = static_cast<std::uint32_t>(limits.max_tokens);
  start.sampler = engine.sampler_lists.with(engine.sampler);
  start.sampler.temperature = limits.temperature;
  start.sampler.top_p = limits.top_p;
  start.sampler.seed = engine.config.seed;
  start.logprobs = engine.config.logprobs >= 0;
  start.top_logprobs = start.logprobs ? static_cast<std::uint32_t>(engine.config.logprobs) : 0;
  chat::Guide* const guide = engine.grammar || (parts != nullptr && engine.guide) ? &*engine.guide : nullptr;
  if (guide != nullptr) {
    QSF_TRY(guide->begin(start.end_tokens, parts));
    start.allowed = guide->allowed();
    start.expected = guide->expected();
  }
  QSF_TRY(session.start(start));
  engine.rest.clear();
  Started started(session);
  const double begin = now();
  double first = 0;
  std::string text;
  Status status;
  for (Step step = Step::working; status && step != Step::done;) {
    const Result<Step> next = engine.host->next();
    if (first == 0) first = now();
    if (!next) {
      status = next.error();
      break;
    }
    step = *next;
    text = session.piece();
    if (step == Step::done) started.ended();
    if (step == Step::token) {
      const std::uint32_t id = session.token();
      keep_logprobs(engine);
      if (parts != nullptr) parts->token(id, callbacks.sink());
      callbacks.give(static_cast<int>(id), text);
      if (guide != nullptr) status = guide->follow(id);
    }
    if (step == Step::done && !text.empty()) callbacks.give(-1, text);
  }
  if (parts != nullptr) parts->end(callbacks.sink());
  engine.logprobs.clear();
  engine.prompt_seconds = first - begin;
  engine.generation_seconds = now() - first;
  return status;
}

void generate_text(QSFEngine* engine, const char* prompt, int max_tokens, float temperature, float top_p,
                   QSFTokenCallback callback, void* user_data) {
  if (engine == nullptr || prompt == nullptr || max_tokens < 0) {
    return fail(wrong("an engine, a prompt and max_tokens of 0 or more are needed"));
  }
  if (!is_idle(*engine)) return;
  const Run run(*engine);
  Prompt start;
  start.text = prompt;
  start.anew = true;
  tell(generate(*engine, start, {max_tokens, temperature, top_p}, {callback, nullptr, user_data}, nullptr));
}

void chat_generate(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, const Limits& limits,
                   const Callbacks& callbacks) {
  if (engine == nullptr || limits.max_tokens < 0) {
    return fail(wrong("an engine and max_tokens of 0 or more are needed"));
  }
  if (!is_idle(*engine)) return;
  const Run run(*engine);
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return;
  const auto answer = [&]() -> Status {
    QSF_LET(read, read_messages(messages, num_messages));
    if (!engine->tool_choice.empty()) QSF_TRY(hold_calls(*engine));
    const std::array stop{chat->answers().stop()};
    const std::span<const std::string_view> stops = stop[0].empty() ? std::span<const std::string_view>() : stop;
    QSF_LET(question, chat->ask(engine->host->session(), read, stops));
    Prompt start;
    start.tokens = question.ids;
    start.anew = true;
    start.end_tokens = chat->answers().end_tokens();
    start.stops = stops;
    return generate(*engine, start, limits, callbacks, &question.parts);
  };
  tell(answer());
}

}  // namespace

void qsf_generate(QSFEngine* engine, const char* prompt, int max_tokens, float temperature, float top_p,
                  QSFTokenCallback callback, void* user_data) {
  call([&] { generate_text(engine, prompt, max_tokens, temperature, top_p, callback, user_data); });
}

void qsf_chat_generate(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int max_tokens,
                       float temperature, float top_p, QSFTokenCallback callback, void* user_data) {
  call([&] {
    chat_generate(engine, messages, num_messages, {max_tokens, temperature, top_p}, {callback, nullptr, user_data});
  });
}

void qsf_chat_answer(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int max_tokens,
                     float temperature, float top_p, QSFPartCallback callback, void* user_data) {
  call([&] {
    chat_generate(engine, messages, num_messages, {max_tokens, temperature, top_p}, {nullptr, callback, user_data});
  });
}

const QSFLogprob* qsf_logprobs(const QSFEngine* engine, int* num_tokens) {
  const std::size_t n = engine == nullptr ? 0 : engine->logprobs.size();
  if (num_tokens != nullptr) *num_tokens = static_cast<int>(n);
  return n == 0 ? nullptr : engine->logprobs.data();
}
