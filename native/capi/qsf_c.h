// The engine of the C API, and the functions by which its calls fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/host/chat.h"
#include "native/host/host.h"
#include "native/host/sampler_lists.h"
#include "native/sources/refused_memory.h"
#include "qsf.h"

struct QSFConfig {
  std::size_t megabytes = 200;
  int threads = 0;
  int max_seq_len = 0;
  std::string kv_policy = "all";
  float quality = 1.0f;
  std::uint64_t seed = 0;
};

struct QSFEngine {
  QSFConfig config;
  std::atomic<bool> cancel{false}, running{false};
  std::unique_ptr<qsf::Host> host;
  std::optional<qsf::Chat> chat;
  qsf::SamplerOptions sampler;  // without its lists, seed, temperature and top_p
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

}  // namespace qsf::c_api
