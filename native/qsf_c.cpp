// The C API over Host. Nothing here can throw: memory that runs out ends the process, as everywhere in the hosts.
#include "native/qsf_c.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "system/memory.h"

namespace qsf::c_api {
namespace {

thread_local Error last_error;  // as errno: of a thread, not of an engine

}  // namespace

void begin_call() { last_error = {}; }
void fail(const Error& error) { last_error = error; }
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
  HostOptions options;
  options.budget = static_cast<std::uint64_t>(config.megabytes) << 20;
  options.threads = static_cast<std::uint32_t>(config.threads);
  options.open.max_seq_len = static_cast<std::uint32_t>(config.max_seq_len);
  options.open.isa = isa_from_environment();
  return options;
}

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double rate(std::uint64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

struct Limits {
  int max_tokens;
  float temperature, top_p;
};

struct Callback {
  QSFTokenCallback call;
  void* user_data;
  void operator()(int token, const char* text) const {
    if (call != nullptr) call(token, text, user_data);
  }
};

/// Continues the sequence by the prompt, to the end of the generation.
void generate(QSFEngine& engine, Prompt& start, const Limits& limits, const Callback& callback) {
  Session& session = engine.host->session();
  start.max_tokens = static_cast<std::uint32_t>(limits.max_tokens);
  start.sampler.temperature = limits.temperature;
  start.sampler.top_p = limits.top_p;
  start.sampler.seed = engine.config.seed;
  if (const Status s = session.start(start); !s) return fail(s.error());
  const double begin = now();
  double first = 0;
  std::string text;
  while (true) {
    const Result<Step> step = engine.host->next();
    if (first == 0) first = now();
    if (!step) {
      session.stop();
      fail(step.error());
      break;
    }
    text = session.piece();
    if (*step == Step::token) callback(static_cast<int>(session.token()), text.c_str());
    if (*step == Step::done) {
      if (!text.empty()) callback(-1, text.c_str());
      break;
    }
  }
  engine.prompt_seconds = first - begin;
  engine.generation_seconds = now() - first;
}

/// Text that the caller releases; nullptr, with an error, without memory.
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

/// Token ids that the caller releases; nullptr, with an error, without memory.
int* owned(std::span<const std::uint32_t> ids) {
  auto* out = static_cast<int*>(std::malloc(sizeof(int) * (ids.size() + 1)));
  if (out == nullptr) {
    fail(make_error(ErrorCode::out_of_memory, "no memory for {} token ids", ids.size()));
    return nullptr;
  }
  std::ranges::transform(ids, out, [](std::uint32_t id) { return static_cast<int>(id); });
  return out;
}

Result<std::vector<ChatMessage>> read_messages(const QSFChatMessage* messages, int n) {
  if (messages == nullptr || n <= 0) return wrong("no messages were given");
  constexpr std::array<std::string_view, 3> names{"system", "user", "assistant"};
  std::vector<ChatMessage> out;
  for (int i = 0; i < n; ++i) {
    if (messages[i].role == nullptr || messages[i].content == nullptr) {
      return make_error(ErrorCode::bad_argument, "message {} has no role or no content", i);
    }
    const auto name = std::ranges::find(names, std::string_view(messages[i].role));
    if (name == names.end()) {
      return make_error(ErrorCode::bad_argument, "message {} is of a \"{:.40}\"; it can be system, user or assistant",
                        i, messages[i].role);
    }
    out.push_back({static_cast<ChatRole>(name - names.begin()), messages[i].content});
  }
  return out;
}

/// The engine's chat template, recognised once; nullptr, with an error, where it cannot be used.
Chat* chat_of(QSFEngine* engine) {
  begin_call();
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  if (!engine->chat) {
    Result<Chat> chat = Chat::open(engine->host->session());
    if (!chat) {
      fail(chat.error());
      return nullptr;
    }
    engine->chat.emplace(std::move(*chat));
  }
  return &*engine->chat;
}

/// Ids of the conversation; none, with an error, on failure.
std::vector<std::uint32_t> chat_ids(QSFEngine* engine, const QSFChatMessage* messages, int n) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return {};
  const Result<std::vector<ChatMessage>> read = read_messages(messages, n);
  if (!read) {
    fail(read.error());
    return {};
  }
  Result<std::vector<std::uint32_t>> ids = chat->tokenize(engine->host->session(), *read);
  if (!ids) {
    fail(ids.error());
    return {};
  }
  return std::move(*ids);
}

}  // namespace

QSFConfig* qsf_config_default(void) { return new (std::nothrow) QSFConfig; }
void qsf_config_set_ram_budget(QSFConfig* config, size_t megabytes) { config->megabytes = megabytes; }
void qsf_config_set_threads(QSFConfig* config, int num_threads) { config->threads = num_threads; }
void qsf_config_set_max_seq_len(QSFConfig* config, int max_seq_len) { config->max_seq_len = max_seq_len; }
void qsf_config_set_quality(QSFConfig* config, float quality) { config->quality = quality; }
void qsf_config_set_seed(QSFConfig* config, uint64_t seed) { config->seed = seed; }
void qsf_config_free(QSFConfig* config) { delete config; }

QSFEngine* qsf_load(const char* model_path, QSFConfig* config) {
  begin_call();
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

void qsf_free(QSFEngine* engine) { delete engine; }

void qsf_generate(QSFEngine* engine, const char* prompt, int max_tokens, float temperature, float top_p,
                  QSFTokenCallback callback, void* user_data) {
  begin_call();
  if (engine == nullptr || prompt == nullptr || max_tokens < 0) {
    return fail(wrong("an engine, a prompt and max_tokens of 0 or more are needed"));
  }
  const Stoppable stoppable(*engine);
  Prompt start;
  start.text = prompt;
  if (const Status s = engine->host->session().rewind(0); !s) return fail(s.error());
  generate(*engine, start, {max_tokens, temperature, top_p}, {callback, user_data});
}

void qsf_stop(QSFEngine* engine) {
  if (engine != nullptr) engine->cancel = true;
}

int* qsf_tokenize(QSFEngine* engine, const char* text, int* num_tokens) {
  begin_call();
  if (engine == nullptr || text == nullptr || num_tokens == nullptr) {
    fail(wrong("an engine, a text and a place for the count are needed"));
    return nullptr;
  }
  *num_tokens = 0;
  // No token stands for less than a byte, but a tokenizer may put a space in front.
  std::vector<std::uint32_t> ids(std::strlen(text) + 8);
  const Result<std::uint32_t> n = engine->host->session().tokenize(text, true, ids);
  if (!n) {
    fail(n.error());
    return nullptr;
  }
  *num_tokens = static_cast<int>(*n);
  return owned(std::span(ids).first(*n));
}

char* qsf_detokenize(QSFEngine* engine, const int* tokens, int num_tokens) {
  begin_call();
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

char* qsf_chat_template(QSFEngine* engine) {
  begin_call();
  const std::string_view text = engine == nullptr ? "" : engine->host->session().metadata(kMetaChatTemplate);
  if (!text.empty()) return owned(text);
  fail(engine == nullptr ? wrong("an engine is needed")
                         : make_error(ErrorCode::unsupported, "the file has no chat template"));
  return nullptr;
}

const char* qsf_chat_family(QSFEngine* engine) {
  const Chat* chat = chat_of(engine);
  return chat == nullptr ? nullptr : chat->family().name.data();  // a literal: zero-terminated
}

char* qsf_chat_render(QSFEngine* engine, const QSFChatMessage* messages, int num_messages) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return nullptr;
  const Result<std::vector<ChatMessage>> read = read_messages(messages, num_messages);
  const Result<std::string> text = read ? chat->render(*read) : Result<std::string>(read.error());
  if (text) return owned(*text);
  fail(text.error());
  return nullptr;
}

int* qsf_chat_tokenize(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int* num_tokens) {
  const std::vector<std::uint32_t> ids = chat_ids(engine, messages, num_messages);
  if (ids.empty()) return nullptr;
  if (num_tokens == nullptr) {
    fail(wrong("a place for the count is needed"));
    return nullptr;
  }
  *num_tokens = static_cast<int>(ids.size());
  return owned(ids);
}

int qsf_chat_ends(QSFEngine* engine, int token_id) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return -1;
  const std::span<const std::uint32_t> ends = chat->end_tokens();
  return std::ranges::find(ends, static_cast<std::uint32_t>(token_id)) != ends.end() ? 1 : 0;
}

void qsf_chat_generate(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int max_tokens,
                       float temperature, float top_p, QSFTokenCallback callback, void* user_data) {
  const std::vector<std::uint32_t> ids = chat_ids(engine, messages, num_messages);
  if (ids.empty()) return;
  if (max_tokens < 0) return fail(wrong("max_tokens of 0 or more is needed"));
  const Stoppable stoppable(*engine);
  const Result<std::span<const std::uint32_t>> rest = feed_on(engine->host->session(), ids);
  if (!rest) return fail(rest.error());
  const std::array stops{engine->chat->stop()};
  Prompt start;
  start.tokens = *rest;
  start.end_tokens = engine->chat->end_tokens();
  if (!stops[0].empty()) start.stops = stops;
  generate(*engine, start, {max_tokens, temperature, top_p}, {callback, user_data});
}

float* qsf_forward(QSFEngine* engine, const int* tokens, int num_tokens) {
  begin_call();
  std::vector<std::uint32_t> ids;
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  const Stoppable stoppable(*engine);
  if (!read_tokens(*engine, tokens, num_tokens, ids)) return nullptr;
  Session& session = engine->host->session();
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 0;
  if (const Status s = session.start(prompt); !s) {
    fail(s.error());
    return nullptr;
  }
  const Result<Step> step = engine->host->next();
  if (!step || *step != Step::done) {
    session.stop();
    fail(step ? make_error(ErrorCode::internal, "the prompt ended in another state than done") : step.error());
    return nullptr;
  }
  // The engine's own buffer: writing to it is harmless.
  return const_cast<float*>(session.logits().last(session.stats().vocab_size).data());
}

int qsf_rewind(QSFEngine* engine, int num_tokens) {
  begin_call();
  if (engine == nullptr || num_tokens < 0) {
    fail(wrong("an engine and a count of 0 or more are needed"));
    return -1;
  }
  if (const Status s = engine->host->session().rewind(static_cast<std::uint32_t>(num_tokens)); !s) {
    fail(s.error());
    return -1;
  }
  return 0;
}

int qsf_sample(const float* logits, int vocab_size, float temperature, float top_p, uint64_t seed) {
  begin_call();
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
  return static_cast<int>(sample_token(options, copy, scratch));
}

int qsf_vocab_size(const QSFEngine* engine) {
  return engine == nullptr ? 0 : static_cast<int>(engine->host->session().stats().vocab_size);
}

void qsf_release(void* memory) { std::free(memory); }

void qsf_print_stats(QSFEngine* engine) {
  if (engine == nullptr) return;
  const Stats s = engine->host->session().stats();
  const SequenceStats sequence = engine->host->session().sequence_stats();
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::fprintf(stderr, "budget      %.1f MiB, %.1f MiB resident at most\n", mib(s.budget), mib(peak_resident_bytes()));
  for (const MemoryRegion& region : engine->host->session().memory_map()) {
    std::fprintf(stderr, "  %-24.*s %10.3f MiB\n", static_cast<int>(region_name(region.region).size()),
                 region_name(region.region).data(), mib(region.bytes));
  }
  std::fprintf(stderr, "weights     %u of %u segments (%.1f of %.1f MiB) stay in memory\n", s.n_pinned, s.n_segments,
               mib(s.pinned_bytes), mib(s.weight_bytes));
  std::fprintf(stderr, "context     %u of %u tokens\n", sequence.position, s.max_seq_len);
  std::fprintf(stderr, "prompt      %.1f tokens/s\n", rate(sequence.prompt_tokens, engine->prompt_seconds));
  std::fprintf(stderr, "generation  %.1f tokens/s\n", rate(sequence.generated_tokens, engine->generation_seconds));
  std::fprintf(stderr, "host        %.*s kernels, %u threads, %.1f MiB read\n", static_cast<int>(s.isa.size()),
               s.isa.data(), engine->host->threads(), mib(s.bytes_read));
}

const char* qsf_last_error(void) { return last_error.sentence; }
int qsf_last_error_code(void) { return static_cast<int>(last_error.code); }
