/* Log-probabilities, grammars, tools and parts of answers: c_api_held_test MODEL PLAIN, of which PLAIN has no template.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "qsf.h"

enum { kBadArgument = 1, kUnsupported = 14, kOutOfMemory = 25, kBadInput = 26, kTop = 3, kTokens = 6 };

static const char* const kCalling =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}{% for c in m.tool_calls %}<tool_call>"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    "{# <think></think> #}";
static const char* const kTools =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": {\"enum\": [\"Rome\", \"Oslo\"]}}, \"required\": [\"city\"], "
    "\"additionalProperties\": false}}}, {\"type\": \"function\", \"function\": {\"name\": \"get_time\"}}]";
static const QSFChatMessage kMessage = {"user", "Once upon a time", NULL};

static QSFEngine* load(const char* model, int logprobs, size_t text_bytes) {
  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 40);
  qsf_config_set_threads(config, 1);
  qsf_config_set_seed(config, 3);
  qsf_config_set_logprobs(config, logprobs);
  qsf_config_set_text_bytes(config, text_bytes);
  QSFEngine* engine = qsf_load(model, config);
  qsf_config_free(config);
  return engine;
}

struct Seen {
  QSFEngine* engine;
  int n;                    /* tokens */
  QSFLogprob own[kTokens];  /* of the tokens */
  QSFLogprob best[kTokens]; /* the likeliest ones */
  char text[4096];
};

static void on_token(int token_id, const char* text, void* user_data) {
  struct Seen* seen = user_data;
  strncat(seen->text, text, sizeof seen->text - strlen(seen->text) - 1);
  int n = -1;
  const QSFLogprob* found = qsf_logprobs(seen->engine, &n);
  if (token_id < 0) {
    EXPECT(found == NULL && n == 0);
    return;
  }
  EXPECT(found != NULL && n == 1 + kTop && found[0].token_id == token_id && seen->n < kTokens);
  for (int i = 2; i <= kTop; ++i) EXPECT(found[i].logprob <= found[i - 1].logprob && found[i].logprob < 0);
  seen->own[seen->n] = found[0];
  seen->best[seen->n++] = found[1];
}

/* The log-probabilities are those of the logits of the tokens so far. */
static void check_logprobs(const char* model) {
  EXPECT(load(model, 21, 0) == NULL && qsf_last_error_code() == kBadArgument);
  QSFEngine* engine = load(model, kTop, 0);
  EXPECT(engine != NULL);
  struct Seen seen = {engine, 0, {{0, 0}}, {{0, 0}}, ""};
  qsf_generate(engine, "Once", kTokens, 1.0f, 1.0f, on_token, &seen);
  EXPECT(qsf_last_error_code() == 0 && seen.n == kTokens && qsf_logprobs(engine, NULL) == NULL);
  int n = 0;
  int* once = qsf_tokenize(engine, "Once", &n);
  EXPECT(once != NULL && n > 0);
  EXPECT(qsf_rewind(engine, 0) == 0);
  const float* logits = qsf_forward(engine, once, n);
  for (int i = 0; i < kTokens; ++i) {
    EXPECT(logits != NULL);
    double sum = 0;
    int best = 0;
    for (int id = 0; id < qsf_vocab_size(engine); ++id) {
      sum += exp((double)logits[id]);
      if (logits[id] > logits[best]) best = id;
    }
    EXPECT(best == seen.best[i].token_id);
    EXPECT(fabs((double)logits[best] - log(sum) - (double)seen.best[i].logprob) < 1e-4);
    EXPECT(fabs((double)logits[seen.own[i].token_id] - log(sum) - (double)seen.own[i].logprob) < 1e-4);
    logits = qsf_forward(engine, &seen.own[i].token_id, 1);
  }
  qsf_release(once);
  qsf_free(engine);
}

static void collect(int token_id, const char* text, void* user_data) {
  (void)token_id;
  strncat(user_data, text, 4000 - strlen(user_data));
}

/* Lines "kind text"; pieces of one kind are joined. */
static void collect_part(const char* kind, const char* text, void* user_data) {
  static char last[16];
  char* all = user_data;
  if (all[0] == '\0' || strcmp(last, kind) != 0) {
    snprintf(all + strlen(all), 4000 - strlen(all), "%s%s ", all[0] == '\0' ? "" : "\n", kind);
  }
  snprintf(last, sizeof last, "%s", kind);
  strncat(all, text, 4000 - strlen(all));
}

static const char* text_of(QSFEngine* engine) {
  static char text[4096];
  text[0] = '\0';
  qsf_generate(engine, "Once", 40, 0.7f, 0.9f, collect, text);
  EXPECT(qsf_last_error_code() == 0);
  return text;
}

static const char* answer_of(QSFEngine* engine) {
  static char parts[4096];
  parts[0] = '\0';
  qsf_chat_answer(engine, &kMessage, 1, 120, 0.7f, 0.9f, collect_part, parts);
  EXPECT(qsf_last_error_code() == 0);
  return parts;
}

static void check_grammars(const char* model, const char* plain) {
  QSFEngine* engine = load(plain, -1, 0);
  char free_text[4096];
  strcpy(free_text, text_of(engine));
  EXPECT(qsf_grammar_set(engine, "regex", "(yes|no), my (king|queen)") == 0);
  const char* text = text_of(engine);
  EXPECT(strcmp(text, "yes, my king") == 0 || strcmp(text, "yes, my queen") == 0 || strcmp(text, "no, my king") == 0 ||
         strcmp(text, "no, my queen") == 0);
  /* A mistake leaves the grammar that was there. */
  EXPECT(qsf_grammar_set(engine, "regex", "(") == -1 && qsf_last_error_code() == kBadInput);
  EXPECT(qsf_grammar_set(engine, "json_schema", "{\"uniqueItems\": true}") == -1);
  EXPECT(qsf_last_error_code() == kUnsupported && strstr(qsf_last_error(), "uniqueItems") != NULL);
  EXPECT(qsf_grammar_set(engine, "ebnf", "x") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_grammar_set(engine, "", "x") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_grammar_set(engine, "gbnf", "") == -1 && qsf_last_error_code() == kBadInput);
  text = text_of(engine);
  EXPECT(strstr(text, ", my ") != NULL);
  EXPECT(qsf_grammar_set(engine, "json_schema", "{\"const\": {\"a\": 1}}") == 0);
  EXPECT(strstr(text_of(engine), "\"a\"") != NULL);
  EXPECT(qsf_grammar_set(engine, "gbnf", "root ::= \"ab\" | \"ac\"") == 0);
  text = text_of(engine);
  EXPECT(strlen(text) == 2 && text[0] == 'a');
  EXPECT(qsf_chat_tools(engine, kTools, "auto") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_grammar_set(engine, NULL, NULL) == 0);
  EXPECT(strcmp(text_of(engine), free_text) == 0);
  qsf_free(engine);

  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 3);
  qsf_config_set_threads(config, 1);
  engine = qsf_load(model, config);
  qsf_config_free(config);
  EXPECT(engine != NULL);
  EXPECT(qsf_grammar_set(engine, "regex", "a") == -1 && qsf_last_error_code() == kOutOfMemory);
  EXPECT(strstr(qsf_last_error(), "text_bytes") != NULL && text_of(engine)[0] != '\0' && answer_of(engine)[0] != '\0');
  qsf_free(engine);
}

static void check_answers(const char* model) {
  QSFEngine* engine = load(model, -1, 12u << 20);
  EXPECT(engine != NULL && qsf_chat_configure(engine, kCalling, NULL) == 0);
  /* A grammar makes the model write thoughts and a call, which without tools is text. */
  const char* const held = "I see\\.<tool_call>\\{\"name\": \"get_time\", \"arguments\": \\{\\}\\}</tool_call>";
  EXPECT(qsf_grammar_set(engine, "regex", held) == 0);
  EXPECT(strncmp(answer_of(engine), "text I see.<tool_call>{", 23) == 0);
  EXPECT(qsf_chat_tools(engine, kTools, NULL) == 0);
  EXPECT(strcmp(answer_of(engine), "text I see.\ncall get_time\narguments {}") == 0);
  EXPECT(qsf_grammar_set(engine, "regex", "<think>hm</think>yes") == 0);
  EXPECT(strcmp(answer_of(engine), "thought hm\ntext yes") == 0);
  char text[4096] = "";
  qsf_chat_generate(engine, &kMessage, 1, 40, 0.7f, 0.9f, collect, text);
  EXPECT(qsf_last_error_code() == 0 && strcmp(text, "<think>hm</think>yes") == 0);

  EXPECT(qsf_chat_tools(engine, kTools, "required") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_grammar_set(engine, NULL, NULL) == 0 && qsf_chat_tools(engine, kTools, "get_weather") == 0);
  const char* answer = answer_of(engine);
  EXPECT(strncmp(answer, "call get_weather\narguments {", 28) == 0);
  EXPECT(strstr(answer, "Rome") != NULL || strstr(answer, "Oslo") != NULL);
  /* Mistakes leave the tools as they were. */
  EXPECT(qsf_chat_tools(engine, kTools, "get_price") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tools(engine, "{}", NULL) == -1 && qsf_last_error_code() == kBadInput);
  EXPECT(qsf_chat_tools(engine, "", NULL) == -1 && qsf_last_error_code() == kBadInput);
  EXPECT(qsf_chat_tools(engine, kTools, "") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tools(engine, "[", NULL) == -1 && qsf_last_error_code() == kBadInput);
  EXPECT(qsf_grammar_set(engine, "regex", "a") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(strncmp(answer_of(engine), "call get_weather\n", 17) == 0);
  EXPECT(qsf_chat_tools(engine, kTools, "required") == 0 && strncmp(answer_of(engine), "call get_", 9) == 0);
  EXPECT(qsf_chat_tools(engine, kTools, "auto") == 0 && answer_of(engine)[0] != '\0');
  EXPECT(qsf_chat_tools(engine, NULL, NULL) == 0 && strncmp(answer_of(engine), "text ", 5) == 0);
  /* A template that writes no calls can hold none. */
  EXPECT(qsf_chat_configure(engine, "{{ messages[0].content }}", NULL) == 0);
  EXPECT(qsf_chat_tools(engine, kTools, "auto") == -1 && qsf_last_error_code() == kUnsupported);
  EXPECT(strncmp(answer_of(engine), "text ", 5) == 0);
  qsf_free(engine);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  check_logprobs(argv[2]);
  check_grammars(argv[1], argv[2]);
  check_answers(argv[1]);
  return 0;
}
