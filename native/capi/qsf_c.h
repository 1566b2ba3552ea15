// The engine of the C API, and the functions by which its calls fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/chat.h"
#include "native/host/host.h"
#include "native/host/sampler_lists.h"
#include "native/sources/refused_memory.h"
#include "qsf.h"
#include "qsf/base/json.h"

struct QSFConfig {
  std::size_t megabytes = 200;
  int threads = 0;
  int max_seq_len = 0;
  std::optional<std::string> kv;  // none: the plan's choice
  std::string kv_policy = "all", speculate = "none";
  std::size_t least_megabytes = 0;  // of available memory
  float quality = 1.0f;
  std::uint64_t seed = 0;
  std::size_t text_bytes = 0;
  int logprobs = -1;  // the likeliest tokens that are reported; below 0: none, nor the chosen one
};

struct QSFEngine {
  QSFConfig config;
  std::atomic<bool> cancel{false}, running{false};
  std::unique_ptr<qsf::Host> host;
  std::optional<qsf::Chat> chat;  // opened by chat_of() as the settings are
  qsf::ChatSettings chat_settings;
  std::string tool_choice;  // empty: calls are free
  std::optional<std::pair<qsf::GrammarKind, std::string>> grammar;
  std::optional<qsf::chat::Guide> guide;  // if a grammar or a choice of tools holds answers
  std::vector<QSFLogprob> logprobs;       // of the callback's token
  qsf::SamplerOptions sampler;            // without its lists, seed, temperature and top_p
  qsf::SamplerLists sampler_lists;
  std::string rest;  // text that follows the tokens of a loaded sequence
  double prompt_seconds = 0, generation_seconds = 0;
};

namespace qsf::c_api {

/// Clears the calling thread's last error.
void begin_call();
void fail(const Error& error);

/// Returns the result of body(), which is the whole of an API function that may need memory. Returns `failed`, and sets
/// an error, if the system refuses memory.
template <class Given, class Body>
Given call(Given failed, Body&& body) {
  begin_call();
  Given given = failed;
  const Status status = with_memory([&] { given = body(); });
  if (status) return given;
  fail(status.error());
  return failed;
}
template <class Body>
void call(Body&& body) {
  call(0, [&] {
    body();
    return 0;
  });
}
/// Sets the last error to the outcome of a call, whatever its callbacks have called in between.
void tell(const Status& status);
Error wrong(const char* what);
/// Sets the error of reading a long text. A stop that ended the reading is cleared, unless it is meant for an active
/// Run.
void fail_to_read(QSFEngine& engine, const Error& error);
/// Returns text that the caller releases; nullptr, with an error, if there is no memory.
char* owned(std::string_view text);
/// Returns token ids that the caller releases; nullptr, with an error, if there is no memory.
int* owned(std::span<const std::uint32_t> ids);
/// Return the engine's chat template, opened once. chat_of() returns nullptr, with an error, if it cannot be used.
Result<Chat*> open_chat(QSFEngine& engine);
Chat* chat_of(QSFEngine* engine);
/// Returns the messages, which view the caller's. Errors: bad_argument, bad_input for members that are no object.
Result<std::vector<ChatMessage>> read_messages(const QSFChatMessage* messages, int n);
/// Checks that a text is JSON of a kind. Fails with bad_input, naming the text as `what`.
Status check_json(const char* what, std::string_view text, json::Kind kind);
/// Holds calls as the settings say, with an open chat. Errors: those of Chat::hold_calls().
Status hold_calls(QSFEngine& engine);
/// Appends the ids to `out`. Returns false, and sets an error, if there are none or one is not in the vocabulary.
bool read_tokens(const QSFEngine& engine, const int* tokens, int n, std::vector<std::uint32_t>& out);

/// A call that runs the engine's sequence and that qsf_stop() ends. A stop is cleared when the call returns, not when
/// it begins.
class Run {
 public:
  explicit Run(QSFEngine& engine) : engine_(engine) { engine.running = true; }
  ~Run() {
    engine_.cancel = false;
    engine_.running = false;
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  QSFEngine& engine_;
};

/// A generation or embedding of a session, which the destructor stops unless ended() was called.
class Started {
 public:
  explicit Started(Session& session) : session_(session) {}
  ~Started() {
    if (!ended_) session_.stop();
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  void ended() { ended_ = true; }

 private:
  Session& session_;
  bool ended_ = false;
};
/// Returns false, with bad_state, inside a Run, where only its callback can call. Must precede a Run and any other
/// function that changes the sequence or frees the engine.
bool is_idle(const QSFEngine& engine);
/// Makes a call that changes settings, whose body returns a Status. Returns 0, or -1 after a failure.
template <class Body>
int setting(QSFEngine* engine, Body&& body) {
  return call<int>(-1, [&] {
    if (engine == nullptr) {
      fail(wrong("an engine is needed"));
      return -1;
    }
    if (!is_idle(*engine)) return -1;
    const Status status = body();
    if (status) return 0;
    fail_to_read(*engine, status.error());
    return -1;
  });
}

}  // namespace qsf::c_api
