/* Every function of qsf.h with NULL for each pointer, and from inside the callback of its own engine:
 * c_api_calls_test MODEL HOSTILE, of which MODEL has a chat template and HOSTILE gives no finite numbers. Prints the
 * name of each function whose two sweeps it has made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "qsf.h"

enum { kBadArgument = 1, kBadState = 2, kCancelled = 24, kNotFinite = 29 };

static const int kIds[] = {1700, 328, 625};
static const QSFChatMessage kMessages[] = {{"user", "Hello", NULL}};

static QSFEngine* load(const char* model) {
  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 20);
  qsf_config_set_threads(config, 1);
  QSFEngine* engine = qsf_load(model, config);
  qsf_config_free(config);
  EXPECT(engine != NULL);
  return engine;
}

/* One function: with NULL, and from a callback of `engine`, which goes on afterwards. */
struct Function {
  const char* name;
  void (*with_null)(QSFEngine* engine);
  void (*in_callback)(QSFEngine* engine);
};

#define REFUSED(call, code) EXPECT((call) && qsf_last_error_code() == (code))

static void config_with_null(QSFEngine* engine) {
  (void)engine;
  qsf_config_set_ram_budget(NULL, 1);
  qsf_config_set_threads(NULL, 1);
  qsf_config_set_max_seq_len(NULL, 1);
  qsf_config_set_kv(NULL, "f16");
  qsf_config_set_kv_policy(NULL, "all");
  qsf_config_set_memory_monitor(NULL, 1);
  qsf_config_set_speculate(NULL, "none");
  qsf_config_set_quality(NULL, 1.0f);
  qsf_config_set_seed(NULL, 1);
  qsf_config_set_text_bytes(NULL, 1);
  qsf_config_set_logprobs(NULL, 1);
  qsf_config_free(NULL);
}
static void config_in_callback(QSFEngine* engine) {
  (void)engine;
  QSFConfig* config = qsf_config_default();
  EXPECT(config != NULL);
  qsf_config_set_ram_budget(config, 4);
  qsf_config_set_threads(config, 1);
  qsf_config_set_max_seq_len(config, 16);
  qsf_config_set_kv(config, "k8v4");
  qsf_config_set_kv_policy(config, "window:8");
  qsf_config_set_memory_monitor(config, 1);
  qsf_config_set_speculate(config, "ngram");
  qsf_config_set_quality(config, 1.0f);
  qsf_config_set_seed(config, 1);
  qsf_config_set_text_bytes(config, 1);
  qsf_config_set_logprobs(config, 1);
  qsf_config_free(config);
}

static const char* loaded; /* the model's path */
static void load_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_load(NULL, NULL) == NULL, kBadArgument);
  QSFConfig* config = qsf_config_default();
  EXPECT(config != NULL);
  qsf_config_set_kv(config, "k4v8");
  REFUSED(qsf_load(loaded, config) == NULL, kBadArgument);
  qsf_config_free(config);
}
static void load_in_callback(QSFEngine* engine) {
  (void)engine;
  QSFEngine* other = load(loaded); /* engines are independent */
  qsf_generate(other, "Once", 2, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == 0);
  qsf_free(other);
}

static void free_with_null(QSFEngine* engine) {
  (void)engine;
  qsf_free(NULL);
}
static void free_in_callback(QSFEngine* engine) {
  qsf_free(engine);
  EXPECT(qsf_last_error_code() == kBadState);
  EXPECT(qsf_vocab_size(engine) > 0);
}

static void generate_with_null(QSFEngine* engine) {
  qsf_generate(NULL, "x", 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_generate(engine, NULL, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_generate(engine, "x", 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == 0);
}
static void generate_in_callback(QSFEngine* engine) {
  qsf_generate(engine, "x", 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadState);
}

static void stop_with_null(QSFEngine* engine) {
  (void)engine;
  qsf_stop(NULL);
}
static void stop_in_callback(QSFEngine* engine) { (void)engine; /* main() stops: it ends the generation */ }

static void sampling_with_null(QSFEngine* engine) {
  const float bias = 1;
  const char* const text = NULL;
  REFUSED(qsf_sampling_set(NULL, "min_p", 0) == -1, kBadArgument);
  REFUSED(qsf_sampling_set(engine, NULL, 0) == -1, kBadArgument);
  REFUSED(qsf_sampling_seed(NULL, 1) == -1, kBadArgument);
  REFUSED(qsf_sampling_order(NULL, NULL) == -1, kBadArgument);
  REFUSED(qsf_sampling_bias(NULL, kIds, &bias, 1) == -1, kBadArgument);
  REFUSED(qsf_sampling_bias(engine, NULL, &bias, 1) == -1, kBadArgument);
  REFUSED(qsf_sampling_bias(engine, kIds, NULL, 1) == -1, kBadArgument);
  REFUSED(qsf_sampling_breakers(NULL, NULL, 0) == -1, kBadArgument);
  REFUSED(qsf_sampling_breakers(engine, &text, 1) == -1, kBadArgument);
}
static void sampling_in_callback(QSFEngine* engine) {
  REFUSED(qsf_sampling_set(engine, "min_p", 0) == -1, kBadState);
  REFUSED(qsf_sampling_seed(engine, 1) == -1, kBadState);
  REFUSED(qsf_sampling_order(engine, NULL) == -1, kBadState);
  REFUSED(qsf_sampling_bias(engine, NULL, NULL, 0) == -1, kBadState);
  REFUSED(qsf_sampling_breakers(engine, NULL, 0) == -1, kBadState);
}

static void held_with_null(QSFEngine* engine) {
  REFUSED(qsf_grammar_set(NULL, "regex", "a") == -1, kBadArgument);
  REFUSED(qsf_grammar_set(engine, "regex", NULL) == -1, kBadArgument);
  REFUSED(qsf_chat_tools(NULL, "[]", NULL) == -1, kBadArgument);
  REFUSED(qsf_chat_tools(engine, NULL, "auto") == -1, kBadArgument);
  EXPECT(qsf_grammar_set(engine, NULL, NULL) == 0 && qsf_chat_tools(engine, NULL, NULL) == 0);
}
static void held_in_callback(QSFEngine* engine) {
  REFUSED(qsf_grammar_set(engine, NULL, NULL) == -1, kBadState);
  REFUSED(qsf_chat_tools(engine, NULL, NULL) == -1, kBadState);
}

static void logprobs_with_null(QSFEngine* engine) {
  int n = 7;
  EXPECT(qsf_logprobs(NULL, &n) == NULL && n == 0 && qsf_logprobs(engine, NULL) == NULL);
}
static void logprobs_in_callback(QSFEngine* engine) {
  int n = 7;
  EXPECT(qsf_logprobs(engine, &n) == NULL && n == 0); /* they were not asked for */
}

static void template_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_chat_template(NULL) == NULL, kBadArgument);
}
static void template_in_callback(QSFEngine* engine) {
  char* text = qsf_chat_template(engine);
  EXPECT(text != NULL);
  qsf_release(text);
}

static void configure_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_chat_configure(NULL, NULL, NULL) == -1, kBadArgument);
}
static void configure_in_callback(QSFEngine* engine) { EXPECT(qsf_chat_configure(engine, NULL, NULL) == 0); }

static void render_with_null(QSFEngine* engine) {
  const QSFChatMessage no_role = {NULL, "x", NULL}, no_content = {"user", NULL, NULL};
  REFUSED(qsf_chat_render(NULL, kMessages, 1) == NULL, kBadArgument);
  REFUSED(qsf_chat_render(engine, NULL, 1) == NULL, kBadArgument);
  REFUSED(qsf_chat_render(engine, &no_role, 1) == NULL, kBadArgument);
  REFUSED(qsf_chat_render(engine, &no_content, 1) == NULL, kBadArgument);
}
static void render_in_callback(QSFEngine* engine) {
  char* text = qsf_chat_render(engine, kMessages, 1);
  EXPECT(text != NULL);
  qsf_release(text);
}

static void chat_tokenize_with_null(QSFEngine* engine) {
  int n = 0;
  REFUSED(qsf_chat_tokenize(NULL, kMessages, 1, &n) == NULL, kBadArgument);
  REFUSED(qsf_chat_tokenize(engine, NULL, 1, &n) == NULL, kBadArgument);
  REFUSED(qsf_chat_tokenize(engine, kMessages, 1, NULL) == NULL, kBadArgument);
}
static void chat_tokenize_in_callback(QSFEngine* engine) {
  int n = 0;
  int* ids = qsf_chat_tokenize(engine, kMessages, 1, &n);
  EXPECT(ids != NULL && n > 0);
  qsf_release(ids);
}

static void ends_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_chat_ends(NULL, 1) == -1, kBadArgument);
}
static void ends_in_callback(QSFEngine* engine) { EXPECT(qsf_chat_ends(engine, 1) == 0); }

static void chat_generate_with_null(QSFEngine* engine) {
  qsf_chat_generate(NULL, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_chat_generate(engine, NULL, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_chat_generate(engine, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == 0);
}
static void chat_generate_in_callback(QSFEngine* engine) {
  qsf_chat_generate(engine, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadState);
}

static void answer_with_null(QSFEngine* engine) {
  qsf_chat_answer(NULL, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_chat_answer(engine, NULL, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadArgument);
  qsf_chat_answer(engine, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == 0);
}
static void answer_in_callback(QSFEngine* engine) {
  qsf_chat_answer(engine, kMessages, 1, 1, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == kBadState);
}

static void embed_size_with_null(QSFEngine* engine) {
  (void)engine;
  EXPECT(qsf_embed_size(NULL) == 0);
}
static void embed_size_in_callback(QSFEngine* engine) { EXPECT(qsf_embed_size(engine) > 0); }

static void embed_with_null(QSFEngine* engine) {
  REFUSED(qsf_embed(NULL, "x") == NULL, kBadArgument);
  REFUSED(qsf_embed(engine, NULL) == NULL, kBadArgument);
}
static void embed_in_callback(QSFEngine* engine) { REFUSED(qsf_embed(engine, "x") == NULL, kBadState); }

static void embed_tokens_with_null(QSFEngine* engine) {
  REFUSED(qsf_embed_tokens(NULL, kIds, 3, "mean", 1) == NULL, kBadArgument);
  REFUSED(qsf_embed_tokens(engine, NULL, 3, "mean", 1) == NULL, kBadArgument);
  float* values = qsf_embed_tokens(engine, kIds, 3, NULL, 1);
  EXPECT(values != NULL);
  qsf_release(values);
}
static void embed_tokens_in_callback(QSFEngine* engine) {
  REFUSED(qsf_embed_tokens(engine, kIds, 3, NULL, 1) == NULL, kBadState);
}

static const char* const kDocuments[] = {"a plan"};
static void rerank_with_null(QSFEngine* engine) {
  REFUSED(qsf_rerank(NULL, "x", kDocuments, 1) == NULL, kBadArgument);
  REFUSED(qsf_rerank(engine, NULL, kDocuments, 1) == NULL, kBadArgument);
  REFUSED(qsf_rerank(engine, "x", NULL, 1) == NULL, kBadArgument);
}
static void rerank_in_callback(QSFEngine* engine) {
  REFUSED(qsf_rerank(engine, "x", kDocuments, 1) == NULL, kBadState);
}

static void tokenize_with_null(QSFEngine* engine) {
  int n = 0;
  REFUSED(qsf_tokenize(NULL, "x", &n) == NULL, kBadArgument);
  REFUSED(qsf_tokenize(engine, NULL, &n) == NULL, kBadArgument);
  REFUSED(qsf_tokenize(engine, "x", NULL) == NULL, kBadArgument);
}
static void tokenize_in_callback(QSFEngine* engine) {
  int n = 0;
  int* ids = qsf_tokenize(engine, "Once upon a time", &n);
  EXPECT(ids != NULL && n > 0);
  qsf_release(ids);
}

static void detokenize_with_null(QSFEngine* engine) {
  REFUSED(qsf_detokenize(NULL, kIds, 3) == NULL, kBadArgument);
  REFUSED(qsf_detokenize(engine, NULL, 3) == NULL, kBadArgument);
  char* nothing = qsf_detokenize(engine, NULL, 0);
  EXPECT(nothing != NULL && nothing[0] == '\0');
  qsf_release(nothing);
}
static void detokenize_in_callback(QSFEngine* engine) {
  char* text = qsf_detokenize(engine, kIds, 3);
  EXPECT(text != NULL);
  qsf_release(text);
}

static void forward_with_null(QSFEngine* engine) {
  REFUSED(qsf_forward(NULL, kIds, 3) == NULL, kBadArgument);
  REFUSED(qsf_forward(engine, NULL, 3) == NULL, kBadArgument);
}
static void forward_in_callback(QSFEngine* engine) { REFUSED(qsf_forward(engine, kIds, 3) == NULL, kBadState); }

static void rewind_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_rewind(NULL, 0) == -1, kBadArgument);
}
static void rewind_in_callback(QSFEngine* engine) { REFUSED(qsf_rewind(engine, 0) == -1, kBadState); }

static void session_save_with_null(QSFEngine* engine) {
  REFUSED(qsf_session_save(NULL, "x") == -1, kBadArgument);
  REFUSED(qsf_session_save(engine, NULL) == -1, kBadArgument);
}
static void session_save_in_callback(QSFEngine* engine) { REFUSED(qsf_session_save(engine, "x") == -1, kBadState); }

static void session_load_with_null(QSFEngine* engine) {
  REFUSED(qsf_session_load(NULL, "x") == -1, kBadArgument);
  REFUSED(qsf_session_load(engine, NULL) == -1, kBadArgument);
}
static void session_load_in_callback(QSFEngine* engine) { REFUSED(qsf_session_load(engine, "x") == -1, kBadState); }

static void sample_with_null(QSFEngine* engine) {
  (void)engine;
  REFUSED(qsf_sample(NULL, 4, 0.5f, 0.5f, 0) == -1, kBadArgument);
}
static void sample_in_callback(QSFEngine* engine) {
  (void)engine;
  const float logits[] = {0.0f, 9.0f, 0.0f};
  EXPECT(qsf_sample(logits, 3, 0.0f, 1.0f, 0) == 1);
}

static void vocab_size_with_null(QSFEngine* engine) {
  (void)engine;
  EXPECT(qsf_vocab_size(NULL) == 0);
}
static void vocab_size_in_callback(QSFEngine* engine) { EXPECT(qsf_vocab_size(engine) == 2048); }

static void release_with_null(QSFEngine* engine) {
  (void)engine;
  qsf_release(NULL);
}
static void release_in_callback(QSFEngine* engine) { tokenize_in_callback(engine); }

static void print_stats_with_null(QSFEngine* engine) {
  (void)engine;
  qsf_print_stats(NULL);
}
static void print_stats_in_callback(QSFEngine* engine) { qsf_print_stats(engine); }

static void last_error_with_null(QSFEngine* engine) {
  (void)engine;
  EXPECT(qsf_rewind(NULL, 0) == -1 && qsf_last_error()[0] != '\0' && qsf_last_error_code() == kBadArgument);
}
static void last_error_in_callback(QSFEngine* engine) {
  EXPECT(qsf_rewind(engine, 0) == -1 && qsf_last_error()[0] != '\0' && qsf_last_error_code() == kBadState);
}

static const struct Function kFunctions[] = {
    {"qsf_config_default", config_with_null, config_in_callback},
    {"qsf_config_set_ram_budget", config_with_null, config_in_callback},
    {"qsf_config_set_threads", config_with_null, config_in_callback},
    {"qsf_config_set_max_seq_len", config_with_null, config_in_callback},
    {"qsf_config_set_kv", config_with_null, config_in_callback},
    {"qsf_config_set_kv_policy", config_with_null, config_in_callback},
    {"qsf_config_set_memory_monitor", config_with_null, config_in_callback},
    {"qsf_config_set_speculate", config_with_null, config_in_callback},
    {"qsf_config_set_quality", config_with_null, config_in_callback},
    {"qsf_config_set_seed", config_with_null, config_in_callback},
    {"qsf_config_set_text_bytes", config_with_null, config_in_callback},
    {"qsf_config_set_logprobs", config_with_null, config_in_callback},
    {"qsf_config_free", config_with_null, config_in_callback},
    {"qsf_load", load_with_null, load_in_callback},
    {"qsf_free", free_with_null, free_in_callback},
    {"qsf_generate", generate_with_null, generate_in_callback},
    {"qsf_stop", stop_with_null, stop_in_callback},
    {"qsf_sampling_set", sampling_with_null, sampling_in_callback},
    {"qsf_sampling_seed", sampling_with_null, sampling_in_callback},
    {"qsf_sampling_order", sampling_with_null, sampling_in_callback},
    {"qsf_sampling_bias", sampling_with_null, sampling_in_callback},
    {"qsf_sampling_breakers", sampling_with_null, sampling_in_callback},
    {"qsf_logprobs", logprobs_with_null, logprobs_in_callback},
    {"qsf_grammar_set", held_with_null, held_in_callback},
    {"qsf_chat_tools", held_with_null, held_in_callback},
    {"qsf_chat_template", template_with_null, template_in_callback},
    {"qsf_chat_configure", configure_with_null, configure_in_callback},
    {"qsf_chat_render", render_with_null, render_in_callback},
    {"qsf_chat_tokenize", chat_tokenize_with_null, chat_tokenize_in_callback},
    {"qsf_chat_ends", ends_with_null, ends_in_callback},
    {"qsf_chat_generate", chat_generate_with_null, chat_generate_in_callback},
    {"qsf_chat_answer", answer_with_null, answer_in_callback},
    {"qsf_embed_size", embed_size_with_null, embed_size_in_callback},
    {"qsf_embed", embed_with_null, embed_in_callback},
    {"qsf_embed_tokens", embed_tokens_with_null, embed_tokens_in_callback},
    {"qsf_rerank", rerank_with_null, rerank_in_callback},
    {"qsf_tokenize", tokenize_with_null, tokenize_in_callback},
    {"qsf_detokenize", detokenize_with_null, detokenize_in_callback},
    {"qsf_forward", forward_with_null, forward_in_callback},
    {"qsf_rewind", rewind_with_null, rewind_in_callback},
    {"qsf_session_save", session_save_with_null, session_save_in_callback},
    {"qsf_session_load", session_load_with_null, session_load_in_callback},
    {"qsf_sample", sample_with_null, sample_in_callback},
    {"qsf_vocab_size", vocab_size_with_null, vocab_size_in_callback},
    {"qsf_release", release_with_null, release_in_callback},
    {"qsf_print_stats", print_stats_with_null, print_stats_in_callback},
    {"qsf_last_error", last_error_with_null, last_error_in_callback},
    {"qsf_last_error_code", last_error_with_null, last_error_in_callback},
};
enum { kNumFunctions = sizeof kFunctions / sizeof kFunctions[0], kTokens = 8 };

struct Calls {
  QSFEngine* engine;
  const struct Function* function; /* NULL: none */
  int stop_after, n;               /* tokens */
  int ids[kTokens];
};

static void on_token(int token_id, const char* text, void* user_data) {
  struct Calls* calls = user_data;
  (void)text;
  if (token_id < 0) return;
  EXPECT(calls->n < kTokens);
  calls->ids[calls->n++] = token_id;
  if (calls->n == calls->stop_after) qsf_stop(calls->engine);
  if (calls->function != NULL && calls->n <= 2) calls->function->in_callback(calls->engine);
}

static struct Calls generate(QSFEngine* engine, const struct Function* function, int stop_after) {
  struct Calls calls = {engine, function, stop_after, 0, {0}};
  qsf_generate(engine, "Once upon a time", kTokens, 0.0f, 1.0f, on_token, &calls);
  return calls;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  loaded = argv[1];
  QSFEngine* engine = load(loaded);
  const struct Calls alone = generate(engine, NULL, 0);
  EXPECT(alone.n == kTokens && qsf_last_error_code() == 0);
  for (int i = 0; i < kNumFunctions; ++i) {
    kFunctions[i].with_null(engine);
    /* Whatever the callback calls, the generation gives what it gives alone, and its own outcome is the last one. */
    const struct Calls calls = generate(engine, &kFunctions[i], 0);
    EXPECT(calls.n == kTokens && memcmp(calls.ids, alone.ids, sizeof alone.ids) == 0);
    EXPECT(qsf_last_error_code() == 0 && qsf_last_error()[0] == '\0');
    /* A stop outlives what is called behind it. */
    EXPECT(generate(engine, &kFunctions[i], 1).n == 1 && qsf_last_error_code() == kCancelled);
    EXPECT(generate(engine, NULL, 0).n == kTokens && qsf_last_error_code() == 0);
    printf("%s\n", kFunctions[i].name);
  }
  struct Calls chat = {engine, &kFunctions[11], 0, 0, {0}};
  qsf_chat_generate(engine, kMessages, 1, 4, 0.0f, 1.0f, on_token, &chat);
  EXPECT(chat.n > 0 && qsf_last_error_code() == 0);
  qsf_free(engine);

  /* Numbers that are none are an error, of the engine's and of the caller's. */
  QSFEngine* hostile = load(argv[2]);
  struct Calls none = {hostile, NULL, 0, 0, {0}};
  qsf_generate(hostile, "once", 4, 0.7f, 0.9f, on_token, &none);
  EXPECT(none.n == 0 && qsf_last_error_code() == kNotFinite);
  const int first[] = {3};
  EXPECT(qsf_rewind(hostile, 0) == 0);
  REFUSED(qsf_forward(hostile, first, 1) == NULL, kNotFinite);
  EXPECT(strstr(qsf_last_error(), "position 0") != NULL);
  REFUSED(qsf_embed(hostile, "once") == NULL, kNotFinite);
  qsf_free(hostile);
  const float bad[][3] = {{0, NAN, 1}, {INFINITY, 0, 1}, {NAN, NAN, NAN}, {-INFINITY, -INFINITY, -INFINITY}};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 2; ++k) REFUSED(qsf_sample(bad[i], 3, (float)k, 0.9f, 1) == -1, kNotFinite);
  }
  const float masked[] = {-INFINITY, 0, -INFINITY};
  for (int k = 0; k < 20; ++k) EXPECT(qsf_sample(masked, 3, 1.0f, 1.0f, (uint64_t)k) == 1);
  return 0;
}
