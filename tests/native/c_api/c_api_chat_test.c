/* Conversations through the C API: c_api_chat_test MODEL PLAIN, of which PLAIN has no chat template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "qsf.h"

enum {
  kImStart = 2046,
  kImEnd = 2047,
  kBadArgument = 1,
  kBadInput = 26,
  kTemplateRefusal = 31,
  kUnsupported = 14,
  kContextFull = 16
};

static void on_token(int token_id, const char* text, void* user_data) {
  (void)token_id;
  strncat(user_data, text, 4000 - strlen(user_data));
}

static int count(const int* ids, int n, int id) {
  int found = 0;
  for (int i = 0; i < n; ++i) found += ids[i] == id;
  return found;
}

static QSFEngine* load(const char* model) {
  QSFConfig* config = qsf_config_default();
  qsf_config_set_ram_budget(config, 20);
  qsf_config_set_threads(config, 1);
  QSFEngine* engine = qsf_load(model, config);
  qsf_config_free(config);
  EXPECT(engine != NULL);
  return engine;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  QSFEngine* plain = load(argv[2]);
  QSFChatMessage messages[4] = {
      {"system", "Be kind.", NULL}, {"user", "Hi <|im_end|>", NULL}, {NULL, NULL, NULL}, {NULL, NULL, NULL}};
  int n = 0;
  EXPECT(qsf_chat_template(plain) == NULL && qsf_last_error_code() == kUnsupported);
  EXPECT(qsf_chat_configure(plain, NULL, NULL) == -1 && qsf_last_error_code() == kUnsupported);
  EXPECT(qsf_chat_tokenize(plain, messages, 2, &n) == NULL && qsf_last_error_code() == kUnsupported);
  EXPECT(qsf_chat_render(plain, messages, 2) == NULL && qsf_chat_ends(plain, kImEnd) == -1);
  EXPECT(qsf_chat_configure(plain, "{{ messages[0].content }}|{{ mood }}", " {\"mood\": \"kind\"} ") == 0);
  char* other = qsf_chat_render(plain, messages + 1, 1);
  EXPECT(other != NULL && strcmp(other, "Hi <|im_end|>|kind") == 0);
  qsf_release(other);
  EXPECT(qsf_chat_configure(plain, "{{ raise_exception('Not today') }}", NULL) == 0);
  EXPECT(qsf_chat_render(plain, messages, 2) == NULL && qsf_last_error_code() == kTemplateRefusal);
  EXPECT(strstr(qsf_last_error(), "Not today") != NULL);
  EXPECT(qsf_chat_configure(plain, "", NULL) == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_configure(plain, "{{ 1 }}", "") == -1 && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_render(plain, messages, 2) == NULL && qsf_last_error_code() == kTemplateRefusal); /* as it was */
  EXPECT(qsf_chat_configure(plain, "{{ 1 }}", "[1]") == -1 && qsf_last_error_code() == kBadInput);
  EXPECT(qsf_chat_configure(plain, "{{ 1 }}", "{\"a\": }") == -1 && qsf_last_error_code() == kBadInput);
  qsf_free(plain);

  QSFEngine* engine = load(argv[1]);
  char* jinja = qsf_chat_template(engine);
  EXPECT(jinja != NULL && strstr(jinja, "<|im_start|>") != NULL);
  qsf_release(jinja);
  EXPECT(qsf_chat_ends(engine, kImEnd) == 1 && qsf_chat_ends(engine, kImStart) == 0 && qsf_chat_ends(engine, -1) == 0);

  char* text = qsf_chat_render(engine, messages, 2);
  EXPECT(text != NULL && strcmp(text,
                                "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
                                "<|im_start|>assistant\n") == 0);
  int* ids = qsf_chat_tokenize(engine, messages, 2, &n);
  EXPECT(ids != NULL && n > 0 && ids[0] == kImStart);
  EXPECT(count(ids, n, kImStart) == 3 && count(ids, n, kImEnd) == 2); /* the message's own is text */
  int n_all = 0;
  int* all = qsf_tokenize(engine, text, &n_all);
  EXPECT(all != NULL && count(all, n_all, kImEnd) == 3);
  qsf_release(text);
  qsf_release(all);

  /* A turn that goes on from the last one gives what a conversation from the start gives. */
  char first[4096] = "", second[4096] = "", fresh[4096] = "";
  qsf_chat_generate(engine, messages, 2, 12, 0.0f, 1.0f, on_token, first);
  EXPECT(qsf_last_error_code() == 0 && strlen(first) > 4);
  messages[2].role = "assistant";
  messages[2].content = first;
  messages[3].role = "user";
  messages[3].content = "And then?";
  qsf_chat_generate(engine, messages, 4, 12, 0.0f, 1.0f, on_token, second);
  EXPECT(qsf_last_error_code() == 0 && strlen(second) > 4);
  EXPECT(qsf_rewind(engine, 0) == 0);
  qsf_chat_generate(engine, messages, 4, 12, 0.0f, 1.0f, on_token, fresh);
  EXPECT(strcmp(second, fresh) == 0);
  EXPECT(qsf_rewind(engine, 0) == 0 && qsf_forward(engine, ids, n) != NULL);
  qsf_release(ids);

  /* Further members reach the template. */
  EXPECT(qsf_chat_configure(engine, "{{ messages[0].name }}|{{ messages[0].tool_calls | length }}", NULL) == 0);
  QSFChatMessage more = {"tool", "x", " {\"name\": \"f\", \"tool_calls\": [1, 2]} "};
  text = qsf_chat_render(engine, &more, 1);
  EXPECT(text != NULL && strcmp(text, "f|2") == 0);
  qsf_release(text);
  more.more = "{ }";
  text = qsf_chat_render(engine, &more, 1);
  EXPECT(text != NULL && text[0] == '|');
  qsf_release(text);
  const char* const wrong[] = {"", "[]", "{", "{} {}", "{\"a\": }", "\"a\": 1"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    more.more = wrong[i];
    EXPECT(qsf_chat_render(engine, &more, 1) == NULL && qsf_last_error_code() == kBadInput);
  }
  EXPECT(qsf_chat_configure(engine, NULL, NULL) == 0);

  /* What is wrong is told. */
  EXPECT(qsf_chat_tokenize(engine, messages, 3, &n) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tokenize(engine, messages, 0, &n) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tokenize(engine, NULL, 1, &n) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tokenize(NULL, messages, 2, &n) == NULL && qsf_last_error_code() == kBadArgument);
  EXPECT(qsf_chat_tokenize(engine, messages, 2, NULL) == NULL && qsf_last_error_code() == kBadArgument);
  messages[1].role = "tool";
  text = qsf_chat_render(engine, messages, 2);
  EXPECT(text != NULL && strstr(text, "<|im_start|>tool\nHi") != NULL);
  qsf_release(text);
  messages[1].role = "user";
  char* endless = malloc(4000);
  for (int i = 0; i < 3999; ++i) endless[i] = i % 2 == 0 ? ' ' : 'x';
  endless[3999] = '\0';
  messages[1].content = endless;
  char none[4096] = "";
  qsf_chat_generate(engine, messages, 2, 5, 0.0f, 1.0f, on_token, none);
  EXPECT(qsf_last_error_code() == kContextFull && none[0] == '\0');
  free(endless);
  qsf_free(engine);
  return 0;
}
