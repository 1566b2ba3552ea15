/* The C API from C11: c_api_test MODEL. Exit code 0, or 1 with the line of the first claim that does not hold. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "qsf.h"

enum {
  kVocab = 2048,
  kBadArgument = 1,
  kBadMagic = 3,
  kBudgetTooSmall = 15,
  kContextFull = 16,
  kBadToken = 17,
  kIoError = 19,
  kCancelled = 24
};

struct Seen {
  QSFEngine* engine;
  int ids[64];
  int n;
  int stop_after;
  char text[4096];
};

static void on_token(int token_id, const char* text, void* user_data) {
  struct Seen* seen = user_data;
  if (token_id >= 0 && seen->n < 64) seen->ids[seen->n++] = token_id;
  strncat(seen->text, text, sizeof seen->text - strlen(seen->text) - 1);
  if (seen->n == seen->stop_after) qsf_stop(seen->engine);
}

static struct Seen generate(QSFEngine* engine, const char* prompt, int max_tokens, float temperature, int stop_after) {
  struct Seen seen = {engine, {0}, 0, stop_after, ""};
  qsf_generate(engine, prompt, max_tokens, temperature, 0.9f, on_token, &seen);
  return seen;
}

static void set_isa(const char* name) {
#ifdef _WIN32
  _putenv_s("QSF_ISA", name);
#else
  setenv("QSF_ISA", name, 1);
#endif
}

static void check_failures(const char* model) {
  set_isa("neon9");
  EXPECT(qsf_load(model, NULL) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(strstr(qsf_last_error(), "neon9") != NULL);
  set_isa("scalar");
  EXPECT(qsf_load("ftp://user:word@host/m?sig=1", NULL) == NULL && qsf_last_error_code() == kIoError);
  EXPECT(strstr(qsf_last_error(), "cannot open ftp://***@host/m?sig=***: ") != NULL);
  EXPECT(qsf_load("no/such/file.qsf", NULL) == NULL);
  EXPECT(qsf_last_error_code() == kIoError && strstr(qsf_last_error(), "no/such/file.qsf") != NULL);
  EXPECT(qsf_load(NULL, NULL) == NULL && qsf_last_error_code() == kBadArgument);
  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 1);
  EXPECT(qsf_load(model, config) == NULL && qsf_last_error_code() == kBudgetTooSmall);
  qsf_config_set_ram_budget(config, 0);
  EXPECT(qsf_load(model, config) == NULL && qsf_last_error_code() == kBadArgument);
  qsf_config_set_ram_budget(config, 20);
  qsf_config_set_threads(config, -1);
  EXPECT(qsf_load(model, config) == NULL && qsf_last_error_code() == kBadArgument);
  qsf_config_set_threads(config, 1);
  qsf_config_set_quality(config, 1.5f);
  EXPECT(qsf_load(model, config) == NULL && qsf_last_error_code() == kBadArgument);
  qsf_config_set_quality(config, 1.0f);
  /* NULL is the default, and an empty text is no name. */
  void (*const names[])(QSFConfig*, const char*) = {qsf_config_set_kv, qsf_config_set_kv_policy,
                                                    qsf_config_set_speculate};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    names[i](config, "");
    EXPECT(qsf_load(model, config) == NULL && qsf_last_error_code() == kBadArgument);
    names[i](config, NULL);
    QSFEngine* engine = qsf_load(model, config);
    EXPECT(engine != NULL);
    qsf_free(engine);
  }
  EXPECT(qsf_load("", config) == NULL && qsf_last_error_code() == kIoError);
  qsf_config_free(config);
}

/* Pooling by hand is what the engine gives; nothing is owned by it. */
static void check_embeddings(QSFEngine* engine) {
  static const int ids[] = {1700, 328, 625, 259, 531};
  enum { n = sizeof ids / sizeof ids[0] };
  const int size = qsf_embed_size(engine), bad = kVocab;
  EXPECT(size > 0 && qsf_embed_size(NULL) == 0);
  float* all = qsf_embed_tokens(engine, ids, n, "none", -1);
  float* mean = qsf_embed_tokens(engine, ids, n, "mean", 0);
  float* first = qsf_embed_tokens(engine, ids, n, "first", 0);
  float* last = qsf_embed_tokens(engine, ids, n, "last", -1);
  float* unit = qsf_embed_tokens(engine, ids, n, NULL, 1);
  EXPECT(all != NULL && mean != NULL && first != NULL && last != NULL && unit != NULL);
  EXPECT(memcmp(first, all, sizeof(float) * (size_t)size) == 0);
  EXPECT(memcmp(last, all + (n - 1) * size, sizeof(float) * (size_t)size) == 0);
  double squares = 0;
  for (int i = 0; i < size; ++i) {
    double sum = 0;
    for (int t = 0; t < n; ++t) sum += all[t * size + i];
    EXPECT(mean[i] - sum / n < 1e-5 && sum / n - mean[i] < 1e-5);
    squares += (double)unit[i] * unit[i];
  }
  EXPECT(squares > 0.9999 && squares < 1.0001);
  float *text = qsf_embed(engine, "Once upon a time"), *again = qsf_embed(engine, "Once upon a time");
  EXPECT(text != NULL && again != NULL && memcmp(text, again, sizeof(float) * (size_t)size) == 0);
  float* gone[] = {all, mean, first, last, unit, text, again};
  for (size_t i = 0; i < sizeof gone / sizeof gone[0]; ++i) qsf_release(gone[i]);

  EXPECT(qsf_embed(engine, NULL) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_embed(NULL, "x") == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_embed_tokens(NULL, ids, n, NULL, 0) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_embed_tokens(engine, ids, n, "max", 0) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_embed_tokens(engine, ids, n, "", 0) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_embed_tokens(engine, &bad, 1, NULL, 0) == NULL && qsf_last_error_code() == kBadToken);
  EXPECT(qsf_embed_tokens(engine, ids, 0, NULL, 0) == NULL && qsf_last_error_code() == kBadArgument);
  qsf_stop(engine);
  EXPECT(qsf_embed(engine, "x") == NULL && qsf_last_error_code() == kCancelled);
}

/* Settings of sampling change the generations that follow, and only they. */
static void check_sampling(QSFEngine* engine) {
  const char* prompt = "<|endoftext|>Once upon a time";
  const struct Seen plain = generate(engine, prompt, 12, 0.0f, 0);
  const float forced[] = {1e9f}, never = (float)-HUGE_VAL;
  const int king[] = {300}, first[] = {plain.ids[0]}, outside[] = {kVocab};
  EXPECT(qsf_sampling_bias(engine, king, forced, 1) == 0);
  struct Seen seen = generate(engine, prompt, 3, 0.0f, 0);
  EXPECT(seen.n == 3 && seen.ids[0] == 300 && seen.ids[2] == 300);
  EXPECT(qsf_sampling_bias(engine, first, &never, 1) == 0);
  seen = generate(engine, prompt, 12, 0.0f, 0);
  for (int i = 0; i < seen.n; ++i) EXPECT(seen.ids[i] != first[0]);
  EXPECT(qsf_sampling_bias(engine, outside, forced, 1) == -1 && qsf_last_error_code() == kBadToken);
  EXPECT(qsf_sampling_bias(engine, NULL, NULL, 0) == 0);

  /* Min-p of 1 leaves the likeliest token at any temperature, unless the order has no min-p. */
  EXPECT(qsf_sampling_set(engine, "min_p", 1) == 0 && qsf_sampling_set(engine, "top_k", 0) == 0);
  seen = generate(engine, prompt, 12, 5.0f, 0);
  EXPECT(seen.n == 12 && memcmp(seen.ids, plain.ids, sizeof(int) * 12) == 0);
  const char* const nothing[] = {""};
  EXPECT(qsf_sampling_breakers(engine, nothing, 1) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_sampling_set(engine, "", 1) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_sampling_order(engine, "") == 0); /* no sampler is named */
  EXPECT(qsf_sampling_order(engine, "temp;top-k") == 0);
  seen = generate(engine, prompt, 12, 5.0f, 0);
  EXPECT(memcmp(seen.ids, plain.ids, sizeof(int) * 12) != 0);
  EXPECT(qsf_sampling_order(engine, NULL) == 0);
  seen = generate(engine, prompt, 12, 5.0f, 0);
  EXPECT(memcmp(seen.ids, plain.ids, sizeof(int) * 12) == 0);

  /* Texts of one prompt differ by their seeds, and by nothing that was generated before. */
  EXPECT(qsf_sampling_set(engine, "min_p", 0) == 0 && qsf_sampling_seed(engine, 0) == 0);
  const struct Seen of_0 = generate(engine, prompt, 12, 1.0f, 0);
  EXPECT(qsf_sampling_seed(engine, 1) == 0);
  const struct Seen of_1 = generate(engine, prompt, 12, 1.0f, 0);
  EXPECT(memcmp(of_1.ids, of_0.ids, sizeof(int) * 12) != 0);
  EXPECT(qsf_sampling_seed(engine, 0) == 0);
  seen = generate(engine, prompt, 12, 1.0f, 0);
  EXPECT(seen.n == of_0.n && memcmp(seen.ids, of_0.ids, sizeof(int) * (size_t)seen.n) == 0);
  EXPECT(qsf_sampling_seed(NULL, 0) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_sampling_set(engine, "min_p", 1) == 0 && qsf_sampling_seed(engine, 5) == 0);

  const char* many[17];
  for (int i = 0; i < 17; ++i) many[i] = "x";
  EXPECT(qsf_sampling_breakers(engine, many, 16) == 0 && qsf_sampling_breakers(engine, many, 0) == 0);
  EXPECT(qsf_sampling_breakers(engine, many, 17) == -1 && qsf_last_error_code() == kBadArgument);
  many[0] = "";
  EXPECT(qsf_sampling_breakers(engine, many, 1) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_sampling_breakers(engine, NULL, 0) == 0);

  const struct {
    const char* name;
    double value;
  } bad[] = {{"min_p", 2}, {"top_k", 0.5}, {"minP", 0}, {"temperature", 1}, {"top_p", 1}, {"seed", 1}, {"", 0}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    EXPECT(qsf_sampling_set(engine, bad[i].name, bad[i].value) == -1 && qsf_last_error_code() == kBadArgument);
  }
  EXPECT(qsf_sampling_order(engine, "top_k;no") == -1 && strstr(qsf_last_error(), "no sampler 'no'") != NULL);
  EXPECT(qsf_sampling_order(engine, "top_k;top_k") == -1 && strstr(qsf_last_error(), "twice") != NULL);
  EXPECT(qsf_sampling_set(engine, "min_p", 0) == 0 && qsf_sampling_set(engine, "top_k", 40) == 0);
}

static QSFEngine* load(const char* model, int max_seq_len) {
  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 20);
  qsf_config_set_threads(config, 1);
  qsf_config_set_max_seq_len(config, max_seq_len);
  QSFEngine* engine = qsf_load(model, config);
  qsf_config_free(config);
  EXPECT(engine != NULL);
  return engine;
}

/* A saved sequence goes on in another engine with the same numbers. */
static void check_sessions(const char* model) {
  static const int ids[] = {0, 1700, 328, 625, 259, 531}, more[] = {17, 18, 19};
  char path[4096];
  snprintf(path, sizeof path, "%s.saved", model);
  QSFEngine *engine = load(model, 128), *other = load(model, 64), *small = load(model, 4);
  const size_t row = sizeof(float) * kVocab;
  float* kept = malloc(row);
  EXPECT(kept != NULL && qsf_forward(engine, ids, 6) != NULL && qsf_session_save(engine, path) == 0);
  const float* logits = qsf_forward(engine, more, 3);
  EXPECT(logits != NULL);
  memcpy(kept, logits, row);
  EXPECT(qsf_forward(other, more, 2) != NULL && qsf_session_load(other, path) == 0);
  logits = qsf_forward(other, more, 3);
  EXPECT(logits != NULL && memcmp(logits, kept, row) == 0);
  EXPECT(qsf_rewind(other, 9) == 0 && qsf_rewind(other, 10) == -1);
  EXPECT(qsf_session_load(small, path) == -1 && qsf_last_error_code() == kContextFull);
  EXPECT(strstr(qsf_last_error(), path) != NULL || strlen(path) > 300);
  EXPECT(qsf_session_load(other, model) == -1 && qsf_last_error_code() == kBadMagic);
  EXPECT(qsf_session_load(other, "no/such/file") == -1 && qsf_last_error_code() == kIoError);
  EXPECT(qsf_session_load(other, "") == -1 && qsf_last_error_code() == kIoError);
  EXPECT(qsf_session_save(other, "") == -1 && qsf_last_error_code() == kIoError);
  EXPECT(qsf_session_save(other, "no/such/folder/file") == -1 && qsf_last_error_code() == kIoError);
  EXPECT(qsf_rewind(other, 9) == 0); /* what failed changed nothing */
  /* A prompt that the sequence has already gives what it gives alone. */
  const struct Seen alone = generate(engine, "Once upon a time", 8, 0.0f, 0);
  EXPECT(qsf_session_save(engine, path) == 0 && qsf_session_load(other, path) == 0);
  for (int i = 0; i < 2; ++i) {
    const struct Seen seen = generate(other, "Once upon a time", 8, 0.0f, 0);
    EXPECT(seen.n == 8 && memcmp(seen.ids, alone.ids, sizeof seen.ids) == 0);
  }
  remove(path);
  free(kept);
  qsf_free(engine);
  qsf_free(other);
  qsf_free(small);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  check_failures(argv[1]);
  check_sessions(argv[1]);

  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 4); /* less than the weights */
  qsf_config_set_threads(config, 2);
  qsf_config_set_max_seq_len(config, 128);
  qsf_config_set_quality(config, 1.0f);
  qsf_config_set_seed(config, 5);
  QSFEngine* engine = qsf_load(argv[1], config);
  EXPECT(engine != NULL);
  qsf_config_free(config);
  EXPECT(qsf_vocab_size(engine) == kVocab);

  /* Text to tokens and back; models/stories/golden.json has these ids. */
  static const int golden[] = {0, 1700, 328, 625, 259, 531};
  int n = 0;
  int* ids = qsf_tokenize(engine, "<|endoftext|>Once upon a time", &n);
  EXPECT(ids != NULL && n == 6 && memcmp(ids, golden, sizeof golden) == 0);
  char* text = qsf_detokenize(engine, ids + 1, n - 1);
  EXPECT(text != NULL && strcmp(text, "Once upon a time") == 0);
  qsf_release(text);

  /* The greedy continuation by hand, token by token, is what generate gives. */
  struct Seen greedy = generate(engine, "<|endoftext|>Once upon a time", 12, 0.0f, 0);
  EXPECT(qsf_last_error_code() == 0 && greedy.n == 12);
  EXPECT(strncmp(greedy.text, " there", 6) == 0);
  EXPECT(qsf_rewind(engine, 0) == 0);
  float* logits = qsf_forward(engine, ids, n);
  for (int i = 0; i < 12; ++i) {
    EXPECT(logits != NULL);
    int next = qsf_sample(logits, kVocab, 0.0f, 1.0f, 0);
    EXPECT(next == greedy.ids[i]);
    logits = qsf_forward(engine, &next, 1);
  }
  qsf_release(ids);

  /* Sampling by seed; a stop from the callback; and then everything as before. */
  struct Seen one = generate(engine, "Once upon a time", 20, 1.0f, 0),
              two = generate(engine, "Once upon a time", 20, 1.0f, 0);
  EXPECT(one.n == two.n && memcmp(one.ids, two.ids, sizeof one.ids) == 0);
  struct Seen stopped = generate(engine, "Once upon a time", 20, 1.0f, 3);
  EXPECT(stopped.n == 3 && qsf_last_error_code() == kCancelled);
  struct Seen again = generate(engine, "Once upon a time", 20, 1.0f, 0);
  EXPECT(again.n == one.n && memcmp(again.ids, one.ids, sizeof one.ids) == 0);
  qsf_generate(engine, "Once", 2, 0.0f, 1.0f, NULL, NULL);
  EXPECT(qsf_last_error_code() == 0);

  /* A stop that comes before the first step ends the call, and only that one. */
  qsf_stop(engine);
  qsf_stop(engine);
  EXPECT(generate(engine, "Once upon a time", 20, 1.0f, 0).n == 0 && qsf_last_error_code() == kCancelled);
  again = generate(engine, "Once upon a time", 20, 1.0f, 0);
  EXPECT(again.n == one.n && memcmp(again.ids, one.ids, sizeof one.ids) == 0);
  qsf_stop(engine);
  EXPECT(qsf_forward(engine, golden, 6) == NULL && qsf_last_error_code() == kCancelled);
  EXPECT(qsf_rewind(engine, 0) == 0 && qsf_forward(engine, golden, 6) != NULL);
  qsf_stop(NULL);

  check_embeddings(engine);
  check_sampling(engine);
  EXPECT(qsf_rewind(engine, 0) == 0);

  /* What is wrong is told, and harms nothing. */
  int bad = kVocab, negative = -1;
  EXPECT(qsf_forward(engine, &bad, 1) == NULL && qsf_last_error_code() == kBadToken);
  EXPECT(qsf_forward(engine, &negative, 1) == NULL && qsf_last_error_code() == kBadToken);
  EXPECT(qsf_forward(engine, NULL, 1) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_detokenize(engine, &bad, 1) == NULL && qsf_last_error_code() == kBadToken);
  EXPECT(qsf_rewind(engine, 100000) == -1 && qsf_rewind(engine, -1) == -1);
  EXPECT(generate(engine, "x", 5, -1.0f, 0).n == 0 && qsf_last_error_code() == kBadArgument);
  EXPECT(generate(engine, "x", -1, 1.0f, 0).n == 0 && qsf_last_error_code() == kBadArgument);
  char* endless = malloc(2000);
  for (int i = 0; i < 1999; ++i) endless[i] = i % 2 == 0 ? ' ' : 'x';
  endless[1999] = '\0';
  EXPECT(generate(engine, endless, 5, 1.0f, 0).n == 0 && qsf_last_error_code() == kContextFull);
  free(endless);

  const float flat[4] = {0.0f, 9.0f, 0.0f, 0.0f};
  EXPECT(qsf_sample(flat, 4, 0.0f, 1.0f, 0) == 1);
  EXPECT(qsf_sample(flat, 4, 0.5f, 0.5f, 0) == 1);
  EXPECT(qsf_sample(NULL, 4, 0.5f, 0.5f, 0) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_sample(flat, 4, 0.5f, 7.0f, 0) == -1 && qsf_last_error_code() == kBadArgument);
  int counts[2] = {0, 0};
  const float even[2] = {1.0f, 1.0f};
  for (int i = 0; i < 200; ++i) counts[qsf_sample(even, 2, 1.0f, 1.0f, (uint64_t)i)] += 1;
  EXPECT(counts[0] > 60 && counts[1] > 60);
  for (int i = 0; i < 20; ++i) { /* nothing is remembered between calls */
    EXPECT(qsf_sample(even, 2, 1.0f, 1.0f, 7) == qsf_sample(even, 2, 1.0f, 1.0f, 7));
  }

  qsf_print_stats(engine);
  qsf_free(engine);
  return 0;
}
