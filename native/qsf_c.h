// What the files of the C API share: an engine, and how a call fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "native/chat.h"
#include "native/host.h"
#include "qsf.h"

struct QSFConfig {
  std::size_t megabytes = 200;
  int threads = 0;
  int max_seq_len = 0;
  float quality = 1.0f;
  std::uint64_t seed = 0;
};

struct QSFEngine {
  QSFConfig config;
  std::atomic<bool> cancel{false};
  std::unique_ptr<qsf::Host> host;
  std::optional<qsf::Chat> chat;
  double prompt_seconds = 0, generation_seconds = 0;
};

namespace qsf::c_api {

/// The calling thread's last error is none.
void begin_call();
void fail(const Error& error);
Error wrong(const char* what);
/// False, with an error, where there are none or one is no token.
bool read_tokens(const QSFEngine& engine, const int* tokens, int n, std::vector<std::uint32_t>& out);

/// A call that qsf_stop() ends. What was stopped is forgotten when the call returns, not when it begins.
class Stoppable {
 public:
  explicit Stoppable(QSFEngine& engine) : engine_(engine) {}
  ~Stoppable() { engine_.cancel = false; }
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  QSFEngine& engine_;
};

}  // namespace qsf::c_api
