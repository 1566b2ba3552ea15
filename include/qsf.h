/* The C API: one engine is one open model and one sequence of tokens, inside a fixed memory budget.
 *
 *   QSFConfig* config = qsf_config_default();
 *   qsf_config_set_ram_budget(config, 64);
 *   QSFEngine* engine = qsf_load("model.qsf", config);
 *   if (engine == NULL) fprintf(stderr, "%s\n", qsf_last_error());
 *   qsf_generate(engine, "Once upon a time", 100, 0.7f, 0.9f, on_token, NULL);
 *   qsf_free(engine);
 *   qsf_config_free(config);
 *
 * An engine is used by one thread at a time; different engines are independent. Functions that fail say so as described
 * and leave a sentence in qsf_last_error(). Link with libqsf (and, with the static library, a C++ runtime, lz4, pthread
 * and dl). */
#ifndef QSF_H
#define QSF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QSFEngine QSFEngine;
typedef struct QSFConfig QSFConfig;

/* Configuration. A value out of range is refused by qsf_load(), not by its setter. */

/* 200 MiB, one thread per physical core, the model's own context as far as the budget goes. NULL without memory. */
QSFConfig* qsf_config_default(void);
/* MiB for everything: weights, KV cache, activations, tokenizer. */
void qsf_config_set_ram_budget(QSFConfig*, size_t megabytes);
/* 0: one per physical core. */
void qsf_config_set_threads(QSFConfig*, int num_threads);
/* Tokens of context; 0: what the model and the budget allow. */
void qsf_config_set_max_seq_len(QSFConfig*, int max_seq_len);
/* 0.0-1.0. Kept for engines that can trade quality for speed; this one always computes everything, as for 1.0. */
void qsf_config_set_quality(QSFConfig*, float quality);
/* Of every random choice that qsf_generate() makes; 0 at first. */
void qsf_config_set_seed(QSFConfig*, uint64_t seed);
void qsf_config_free(QSFConfig*);

/* Engine lifecycle */

/* A file's path or an http(s) URL. The config (NULL: the default) is copied. The environment's QSF_ISA, if there is
 * one, names the instruction set; else it is the best. NULL on failure. */
QSFEngine* qsf_load(const char* model_path, QSFConfig* config);
void qsf_free(QSFEngine*);

/* Generation */

/* `text`: UTF-8, zero-terminated, valid during the call; empty while a character is incomplete. What was held back at
 * the end comes in one last call with token_id -1. */
typedef void (*QSFTokenCallback)(int token_id, const char* text, void* user_data);

/* Begins a new sequence with `prompt` and calls back for every token until max_tokens, the model's end token,
 * qsf_stop() or a failure: then qsf_last_error_code() is not 0. temperature 0: always the most likely token; top_p 1:
 * sample from all tokens. */
void qsf_generate(QSFEngine*, const char* prompt, int max_tokens, float temperature, float top_p,
                  QSFTokenCallback callback, void* user_data);
/* Ends the qsf_generate() or qsf_forward() that is running, or else the next one at its beginning; it fails with
 * `cancelled`. So a stop is never lost, however early it comes; each call that ends takes all stops before its end with
 * it. From a callback, another thread or a signal handler. NULL is nothing. */
void qsf_stop(QSFEngine*);

/* Conversations, in the form of the model's own chat template. It is recognised, not run: where the file has none, or
 * one that is not known, these fail with `unsupported`. */

/* role: "system" (only the first), "user" or "assistant". content: UTF-8; no part of it is taken for a special token.
 */
typedef struct QSFChatMessage {
  const char* role;
  const char* content;
} QSFChatMessage;

/* The template as it is in the file (Jinja), zero-terminated, owned by the caller: qsf_release(). NULL where there is
 * none. */
char* qsf_chat_template(QSFEngine*);
/* What it is recognised as, such as "chatml"; valid forever. NULL on failure. */
const char* qsf_chat_family(QSFEngine*);
/* The conversation, which ends with the user's message, as text that asks for the answer; owned by the caller. NULL on
 * failure. */
char* qsf_chat_render(QSFEngine*, const QSFChatMessage* messages, int num_messages);
/* The same as token ids: [*num_tokens], owned by the caller. Special tokens are those of the template. NULL on failure.
 */
int* qsf_chat_tokenize(QSFEngine*, const QSFChatMessage* messages, int num_messages, int* num_tokens);
/* Whether an answer ends with this token: 1 or 0; -1 on failure. */
int qsf_chat_ends(QSFEngine*, int token_id);
/* As qsf_generate(), with the answer to a conversation. Of the sequence, what agrees with the conversation is kept, so
 * that every turn computes only what is new. */
void qsf_chat_generate(QSFEngine*, const QSFChatMessage* messages, int num_messages, int max_tokens, float temperature,
                       float top_p, QSFTokenCallback callback, void* user_data);

/* Embeddings. Each begins the sequence anew with its text. */

/* Values of an embedding; 0 without an engine. */
int qsf_embed_size(const QSFEngine*);
/* The embedding of `text`, pooled and normalized as the model says: [qsf_embed_size()], owned by the caller:
 * qsf_release(). NULL on failure. */
float* qsf_embed(QSFEngine*, const char* text);
/* The same of token ids, to which nothing is added. pooling: "mean", "first", "last", or "none" for the last hidden
 * states of all positions, [num_tokens][qsf_embed_size()]; NULL: as the model says. normalize: 1 to length 1, 0 not,
 * below 0 as the model says, which is not for "none". */
float* qsf_embed_tokens(QSFEngine*, const int* tokens, int num_tokens, const char* pooling, int normalize);

/* Lower-level API. What it gives with ownership is given back by qsf_release(). */

/* Token ids of `text`, nothing added: [*num_tokens], owned by the caller. NULL on failure. */
int* qsf_tokenize(QSFEngine*, const char* text, int* num_tokens);
/* The tokens' text, owned by the caller. A character whose tokens are not all there stays incomplete. NULL on failure.
 */
char* qsf_detokenize(QSFEngine*, const int* tokens, int num_tokens);
/* Continues the sequence by these tokens and gives the last one's logits: [qsf_vocab_size()], owned by the engine,
 * valid until its next call. NULL on failure. */
float* qsf_forward(QSFEngine*, const int* tokens, int num_tokens);
/* Forgets all but the first num_tokens tokens of the sequence; 0 begins anew. 0, or -1 on failure. */
int qsf_rewind(QSFEngine*, int num_tokens);
/* A token for these logits; -1 on failure. The same arguments give the same token: give every choice of a text another
 * seed, such as its number. */
int qsf_sample(const float* logits, int vocab_size, float temperature, float top_p, uint64_t seed);
int qsf_vocab_size(const QSFEngine*);
/* Takes what was given with ownership; NULL is nothing. */
void qsf_release(void*);

/* RAM usage, tokens per second and what is kept in memory, on stderr. */
void qsf_print_stats(QSFEngine*);

/* The calling thread's last call, if it can fail: what went wrong, "" for nothing. Valid until its next call. */
const char* qsf_last_error(void);
/* Its number in docs/errors.md, 0 for none. */
int qsf_last_error_code(void);

#ifdef __cplusplus
}
#endif

#endif
