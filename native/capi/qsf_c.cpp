// The C API over Host. No exception leaves it: a function that may need memory is a call() of a function of this file.
#include "native/capi/qsf_c.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "native/host/draft.h"
#include "native/host/kv_policy.h"
#include "native/host/saved_file.h"
#include "native/sources/address.h"
#include "native/sources/refused_memory.h"
#include "qsf/base/try.h"

namespace qsf::c_api {
namespace {

thread_local Error last_error;  // as errno: per thread, not per engine

}  // namespace

void begin_call() { last_error = {}; }
/// Without memory, only the code is kept of an error with an address.
void fail(const Error& error) {
  last_error = error;
  if (std::strstr(error.sentence, "://") == nullptr) return;
  last_error = make_error(error.code, "");
  (void)with_memory([&] { last_error = make_error(error.code, "{}", sentence_without_secrets(error.sentence)); });
}
void tell(const Status& status) { fail(status.error()); }
Error wrong(const char* what) { return make_error(ErrorCode::bad_argument, "{}", what); }

bool read_tokens(const QSFEngine& engine, const int* tokens, int n, std::vector<std::uint32_t>& out) {
  if (tokens == nullptr || n <= 0) {
    fail(wrong("no tokens were given"));
    return false;
  }
  const std::uint32_t vocab_size = engine.host->session().stats().vocab_size;
  for (int i = 0; i < n; ++i) {
    if (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) >= vocab_size) {
      fail(make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", tokens[i], vocab_size));
      return false;
    }
    out.push_back(static_cast<std::uint32_t>(tokens[i]));
  }
  return true;
}

void fail_to_read(QSFEngine& engine, const Error& error) {
  if (error.code == ErrorCode::cancelled && !engine.running) engine.cancel = false;
  fail(error);
}

char* owned(std::string_view text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out == nullptr) {
    fail(make_error(ErrorCode::out_of_memory, "no memory for {} bytes of text", text.size()));
    return nullptr;
  }
  std::ranges::copy(text, out);
  out[text.size()] = 0;
  return out;
}

int* owned(std::span<const std::uint32_t> ids) {
  auto* out = static_cast<int*>(std::malloc(sizeof(int) * (ids.size() + 1)));
  if (out == nullptr) {
    fail(make_error(ErrorCode::out_of_memory, "no memory for {} token ids", ids.size()));
    return nullptr;
  }
  std::ranges::transform(ids, out, [](std::uint32_t id) { return static_cast<int>(id); });
  return out;
}

bool is_idle(const QSFEngine& engine) {
  if (!engine.running) return true;
  fail(make_error(ErrorCode::bad_state, "the engine is running: its callback cannot run, rewind or free it"));
  return false;
}

}  // namespace qsf::c_api

namespace {

using namespace qsf;
using namespace qsf::c_api;

Result<HostOptions> host_options(const QSFConfig& config) {
  if (config.megabytes == 0 || config.megabytes > std::numeric_limits<std::uint64_t>::max() >> 21) {
    return make_error(ErrorCode::bad_argument, "a RAM budget of {} MiB is out of range", config.megabytes);
  }
  if (config.threads < 0 || config.threads > 1024) {
    return make_error(ErrorCode::bad_argument, "{} threads are not in 0-1024", config.threads);
  }
  if (config.max_seq_len < 0) {
    return make_error(ErrorCode::bad_argument, "a context of {} tokens is out of range", config.max_seq_len);
  }
  if (!(config.quality >= 0.0f && config.quality <= 1.0f)) {
    return make_error(ErrorCode::bad_argument, "a quality of {} is not in 0-1", config.quality);
  }
  if (config.text_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return make_error(ErrorCode::bad_argument, "{} bytes for texts are out of range", config.text_bytes);
  }
  if (config.logprobs > static_cast<int>(kMostTopLogprobs)) {
    return make_error(ErrorCode::bad_argument, "log-probabilities of {} tokens are more than {}", config.logprobs,
                      kMostTopLogprobs);
  }
  HostOptions options;
  options.budget = static_cast<std::uint64_t>(config.megabytes) << 20;
  options.threads = static_cast<std::uint32_t>(config.threads);
  options.open.max_seq_len = static_cast<std::uint32_t>(config.max_seq_len);
  if (config.kv) QSF_TRY(set_kv_type(*config.kv, options.open));
  QSF_TRY(set_kv_policy(config.kv_policy, options.open));
  if (config.least_megabytes > std::numeric_limits<std::uint64_t>::max() >> 20) {
    return make_error(ErrorCode::bad_argument, "{} MiB of available memory are out of range", config.least_megabytes);
  }
  options.monitor.least = static_cast<std::uint64_t>(config.least_megabytes) << 20;
  QSF_TRY(set_speculation(config.speculate, kUsualGuesses, options));
  options.open.text_bytes = static_cast<std::uint32_t>(config.text_bytes);
  options.open.logprobs = config.logprobs >= 0;
  options.open.isa = isa_from_environment();
  return options;
}

QSFEngine* load(const char* model_path, QSFConfig* config) {
  auto engine = std::make_unique<QSFEngine>();
  if (config != nullptr) engine->config = *config;
  const Result<HostOptions> options = host_options(engine->config);
  if (model_path == nullptr || !options) {
    fail(model_path == nullptr ? wrong("no model path was given") : options.error());
    return nullptr;
  }
  Result<std::unique_ptr<Host>> host = Host::open(model_path, *options, engine->cancel);
  if (!host) {
    fail(host.error());
    return nullptr;
  }
  engine->host = std::move(*host);
  return engine.release();
}

int* tokenize(QSFEngine* engine, const char* text, int* num_tokens) {
  if (engine == nullptr || text == nullptr || num_tokens == nullptr) {
    fail(wrong("an engine, a text and a place for the count are needed"));
    return nullptr;
  }
  *num_tokens = 0;
  // A token stands for at least one byte, but a tokenizer may put a space in front.
  std::vector<std::uint32_t> ids(std::strlen(text) + 8);
  const Result<std::uint32_t> n = engine->host->session().tokenize(text, true, ids);
  if (!n) {
    fail_to_read(*engine, n.error());
    return nullptr;
  }
  *num_tokens = static_cast<int>(*n);
  return owned(std::span(ids).first(*n));
}

char* detokenize(QSFEngine* engine, const int* tokens, int num_tokens) {
  std::vector<std::uint32_t> ids;
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  if (num_tokens != 0 && !read_tokens(*engine, tokens, num_tokens, ids)) return nullptr;
  std::string text;
  for (const std::uint32_t id : ids) {
    text += engine->host->session().detokenize(id);
  }
  return owned(text);
}

float* forward(QSFEngine* engine, const int* tokens, int num_tokens) {
  std::vector<std::uint32_t> ids;
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  if (!is_idle(*engine)) return nullptr;
  const Run run(*engine);
  if (!read_tokens(*engine, tokens, num_tokens, ids)) return nullptr;
  Session& session = engine->host->session();
  if (!engine->rest.empty()) {
    if (const Status put = put_before(session, engine->rest, ids); !put) {
      fail(put.error());
      return nullptr;
    }
  }
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 0;
  if (const Status s = session.start(prompt); !s) {
    fail(s.error());
    return nullptr;
  }
  engine->rest.clear();
  Started started(session);
  const Result<Step> step = engine->host->next();
  if (!step || *step != Step::done) {
    fail(step ? make_error(ErrorCode::internal, "the prompt ended in another state than done") : step.error());
    return nullptr;
  }
  started.ended();
  // The buffer is the engine's own, so writing to it is harmless.
  return const_cast<float*>(session.logits().last(session.stats().vocab_size).data());
}

int sample(const float* logits, int vocab_size, float temperature, float top_p, uint64_t seed) {
  SamplerOptions options;
  options.temperature = temperature;
  options.top_p = top_p;
  options.top_k = 0;
  options.seed = seed;
  if (logits == nullptr || vocab_size <= 0) {
    fail(wrong("logits are needed"));
    return -1;
  }
  if (const Status s = check(options); !s) {
    fail(s.error());
    return -1;
  }
  std::vector<float> copy(logits, logits + vocab_size);
  std::vector<Candidate> scratch(copy.size());
  const Result<std::uint32_t> token = sample_token(options, copy, scratch);
  if (token) return static_cast<int>(*token);
  fail(token.error());
  return -1;
}

}  // namespace

QSFConfig* qsf_config_default(void) {
  return call<QSFConfig*>(nullptr, [] { return new QSFConfig; });
}
void qsf_config_set_ram_budget(QSFConfig* config, size_t megabytes) {
  if (config != nullptr) config->megabytes = megabytes;
}
void qsf_config_set_threads(QSFConfig* config, int num_threads) {
  if (config != nullptr) config->threads = num_threads;
}
void qsf_config_set_max_seq_len(QSFConfig* config, int max_seq_len) {
  if (config != nullptr) config->max_seq_len = max_seq_len;
}
void qsf_config_set_quality(QSFConfig* config, float quality) {
  if (config != nullptr) config->quality = quality;
}
void qsf_config_set_seed(QSFConfig* config, uint64_t seed) {
  if (config != nullptr) config->seed = seed;
}
void qsf_config_set_text_bytes(QSFConfig* config, size_t bytes) {
  if (config != nullptr) config->text_bytes = bytes;
}
void qsf_config_set_logprobs(QSFConfig* config, int num_likeliest) {
  if (config != nullptr) config->logprobs = num_likeliest;
}
void qsf_config_free(QSFConfig* config) { delete config; }

QSFEngine* qsf_load(const char* model_path, QSFConfig* config) {
  return call<QSFEngine*>(nullptr, [&] { return load(model_path, config); });
}

void qsf_free(QSFEngine* engine) {
  if (engine != nullptr && is_idle(*engine)) delete engine;
}

void qsf_stop(QSFEngine* engine) {
  if (engine != nullptr) engine->cancel = true;
}

int* qsf_tokenize(QSFEngine* engine, const char* text, int* num_tokens) {
  return call<int*>(nullptr, [&] { return tokenize(engine, text, num_tokens); });
}

char* qsf_detokenize(QSFEngine* engine, const int* tokens, int num_tokens) {
  return call<char*>(nullptr, [&] { return detokenize(engine, tokens, num_tokens); });
}

float* qsf_forward(QSFEngine* engine, const int* tokens, int num_tokens) {
  return call<float*>(nullptr, [&] { return forward(engine, tokens, num_tokens); });
}

int qsf_rewind(QSFEngine* engine, int num_tokens) {
  begin_call();
  if (engine == nullptr || num_tokens < 0) {
    fail(wrong("an engine and a count of 0 or more are needed"));
    return -1;
  }
  if (!is_idle(*engine)) return -1;
  if (const Status s = engine->host->session().rewind(static_cast<std::uint32_t>(num_tokens)); !s) {
    fail(s.error());
    return -1;
  }
  engine->rest.clear();
  return 0;
}

int qsf_sample(const float* logits, int vocab_size, float temperature, float top_p, uint64_t seed) {
  return call<int>(-1, [&] { return sample(logits, vocab_size, temperature, top_p, seed); });
}

int qsf_vocab_size(const QSFEngine* engine) {
  return engine == nullptr ? 0 : static_cast<int>(engine->host->session().stats().vocab_size);
}

void qsf_release(void* memory) { std::free(memory); }

const char* qsf_last_error(void) { return last_error.sentence; }
int qsf_last_error_code(void) { return static_cast<int>(last_error.code); }
