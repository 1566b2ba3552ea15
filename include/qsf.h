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
 * One thread at a time may use an engine; different engines are independent. A function that fails returns as
 * described, and leaves a sentence in qsf_last_error(). out_of_memory is one of the errors, so that a host can go on.
 * If an engine or another required argument is NULL, functions that can fail do so with bad_argument, and the others do
 * nothing. Link with the output of `pkg-config --libs qsf`, or, for the archive, of `pkg-config --libs qsf-static`. */
#ifndef QSF_H
#define QSF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QSFEngine QSFEngine;
typedef struct QSFConfig QSFConfig;

/* Configuration. qsf_load() refuses a value out of range, such as an empty text; its setter does not. A setter ignores
 * a configuration that is NULL. */

/* Returns a configuration: 200 MiB, one thread per physical core, and the model's own context as far as the budget
 * allows. The caller frees it with qsf_config_free(). NULL without memory. */
QSFConfig* qsf_config_default(void);
/* Sets the MiB for everything: weights, KV cache, activations, tokenizer. */
void qsf_config_set_ram_budget(QSFConfig*, size_t megabytes);
/* Sets the threads, at most 1024; 0: one per physical core. */
void qsf_config_set_threads(QSFConfig*, int num_threads);
/* Sets the tokens of context; 0: as many as the model and the budget allow. */
void qsf_config_set_max_seq_len(QSFConfig*, int max_seq_len);
/* Sets the type of keys and values: "f32", "f16", "8bit", "4bit", "2bit", or the bits of keys and of values, such as
 * "k8v4". The text is copied; NULL: f16, or fewer bits if the budget is small. */
void qsf_config_set_kv(QSFConfig*, const char* type);
/* Sets the positions whose keys and values are kept: "all"; "window:N", the last ones; "sinks:A+N", the first ones too;
 * "h2o:N" or "snapkv:N", chosen by attention. The text is copied; NULL: all. */
void qsf_config_set_kv_policy(QSFConfig*, const char* policy);
/* Sets the megabytes of available memory below which sequences keep fewer positions: while less is available, or while
 * programs wait for memory, the policy's number is halved, down to 128, and the memory goes back to the system. Texts
 * then depend on the machine. Needs a policy. 0: memory is not watched, which is the default. */
void qsf_config_set_memory_monitor(QSFConfig*, size_t megabytes);
/* Sets who guesses tokens ahead, which changes no text: "none"; "ngram", by earlier occurrences of the last tokens;
 * "layers" or "layers:N", by the model's first layers; "head", by the model's own layer for further tokens; "lowbit" or
 * "lowbit:TYPE", by the model in a format of fewer bits; else a smaller model with the same vocabulary, named as in
 * qsf_load(), which takes a part of the budget. The text is copied; NULL: none. */
void qsf_config_set_speculate(QSFConfig*, const char* what);
/* Sets the quality, 0.0-1.0, for engines that can trade it for speed; this one computes everything, as for 1.0. */
void qsf_config_set_quality(QSFConfig*, float quality);
/* Sets the seed of every random choice in qsf_generate(), qsf_chat_generate() and qsf_chat_answer(), until
 * qsf_sampling_seed() sets another one; 0 at first. */
void qsf_config_set_seed(QSFConfig*, uint64_t seed);
/* Sets the bytes for chat templates, conversations and grammars, which also have the budget's free bytes; 0: as many as
 * they usually need without a grammar. One over a large vocabulary needs 24 MiB. */
void qsf_config_set_text_bytes(QSFConfig*, size_t bytes);
/* Sets the number of likeliest tokens, at most 20, whose log-probabilities qsf_logprobs() gives next to that of the
 * chosen one; below 0, as at first: none, nor that. */
void qsf_config_set_logprobs(QSFConfig*, int num_likeliest);
void qsf_config_free(QSFConfig*);

/* Engine lifecycle */

/* Opens a model by a path, an http(s) URL, or hf:OWNER/NAME[/FILE][@REVISION]: a .qsf file, or a GGUF file, Hugging
 * Face directory or other model that qsf-convert reads, as it is. A server does not see the text, except by the experts
 * that are read if the budget does not hold all of a mixture. The config (NULL: the default) is copied. The environment
 * variable QSF_ISA names the instruction set; without it, the best is used. NULL on failure. */
QSFEngine* qsf_load(const char* model_path, QSFConfig* config);
/* Frees an engine; NULL is ignored. An engine whose callback is running stays: bad_state. */
void qsf_free(QSFEngine*);

/* Generation */

/* Takes a token and the text that can be shown now. `text` is UTF-8, zero-terminated, valid during the call, and empty
 * while a character is incomplete. Text that is left at the end comes in one last call with token_id -1. From a
 * callback, calls that run, change or free the sequence fail with `bad_state`, and the generation goes on:
 * qsf_generate(), qsf_chat_generate(), qsf_forward(), qsf_rewind(), qsf_session_save(), qsf_session_load(),
 * qsf_chat_answer(), qsf_embed(), qsf_embed_tokens(), qsf_rerank() and qsf_free(), and those that set its sampling,
 * grammar and tools. All others are allowed. NULL: no callback. */
typedef void (*QSFTokenCallback)(int token_id, const char* text, void* user_data);

/* Begins a new sequence with `prompt` and calls back for every token until max_tokens, the model's end token,
 * qsf_stop() or a failure. After the last two, qsf_last_error_code() is not 0. temperature 0: always the most likely
 * token; top_p 1: sample from all tokens. Tokens at the prompt's beginning that the sequence has computed
 * are not computed again. */
void qsf_generate(QSFEngine*, const char* prompt, int max_tokens, float temperature, float top_p,
                  QSFTokenCallback callback, void* user_data);
/* Ends the running generation, qsf_forward() or embedding with `cancelled`, or else the next one at its beginning, so
 * that a stop is never lost. A call that ends takes all earlier stops with it. Reading a long text in qsf_tokenize()
 * and qsf_chat_tokenize() ends too. May be called from a callback, another thread or a signal handler; NULL is ignored.
 */
void qsf_stop(QSFEngine*);

/* The natural logarithm of a token's probability by the model alone, before grammars, biases and samplers. */
typedef struct QSFLogprob {
  int token_id;
  float logprob;
} QSFLogprob;

/* Returns, in a callback, the log-probability of the last token and then those of the likeliest ones in their order:
 * [*num_tokens], owned by the engine, valid until the callback returns. NULL, with 0 tokens, outside of a callback, in
 * the last one, and without qsf_config_set_logprobs(). */
const QSFLogprob* qsf_logprobs(const QSFEngine*, int* num_tokens);

/* Holds the engine's following texts to a grammar. kind: "gbnf", "regex" or "json_schema", as
 * docs/reference/grammars.md describes them. Answers to conversations are held after the model's thoughts. The text is
 * copied. kind NULL: no grammar. Returns 0, or -1 on failure, which leaves the setting unchanged: bad_input for a
 * mistake in the text, unsupported for a feature that is not held, out_of_memory if qsf_config_set_text_bytes() must
 * give more. */
int qsf_grammar_set(QSFEngine*, const char* kind, const char* text);

/* Sampling, of the engine's following generations. docs/reference/sampling.md describes the samplers. These functions
 * return 0, or -1 on failure, which leaves the settings unchanged. */

/* Sets an option of sampling by its name in docs/reference/boundary.md, such as "min_p". temperature and top_p are
 * arguments of the generating functions, and qsf_sampling_seed() sets the seed. */
int qsf_sampling_set(QSFEngine*, const char* name, double value);
/* Sets the seed in place of qsf_config_set_seed(). The same seed gives the same text. Several texts of one prompt are
 * calls with different seeds: the first one computes the prompt, of which the later ones compute the last tokens. */
int qsf_sampling_seed(QSFEngine*, uint64_t seed);
/* Sets the samplers by their names in the order in which they are applied, such as "penalties;temperature;min_p". One
 * that is not named does nothing. NULL: the default. */
int qsf_sampling_order(QSFEngine*, const char* names);
/* Sets the biases that are added to the logits of tokens, in place of all earlier ones; copied. -INFINITY: the token is
 * never chosen. */
int qsf_sampling_bias(QSFEngine*, const int* tokens, const float* biases, int num_tokens);
/* Sets the texts that end repetitions for the sampler "dry", at most 16; copied. NULL: the default. */
int qsf_sampling_breakers(QSFEngine*, const char* const* texts, int num_texts);

/* Conversations, in the form of the model's own chat template, which is run. If the file has none and
 * qsf_chat_configure() gave none, these functions fail with `unsupported`; if the template refuses the messages, with
 * `template_refusal`. */

/* role: "system", "user", "assistant", "tool", or another one that the template knows. content: UTF-8; no part of it
 * becomes a special token. more: further members as a JSON object, such as {"tool_calls": [...]}; NULL: none. */
typedef struct QSFChatMessage {
  const char* role;
  const char* content;
  const char* more;
} QSFChatMessage;

/* Returns the file's template (Jinja), zero-terminated, owned by the caller: qsf_release(). NULL if there
 * is none. */
char* qsf_chat_template(QSFEngine*);
/* Sets the template (Jinja; NULL: the file's) and its further variables, a JSON object such as
 * {"enable_thinking": false} (NULL: none), of the following calls. Both are copied. Returns 0, or -1 on failure, such
 * as an empty text, which leaves the settings unchanged. */
int qsf_chat_configure(QSFEngine*, const char* chat_template, const char* arguments);
/* Returns the conversation, which ends with the user's message, as text that asks for the answer; owned by the caller.
 * NULL on failure. */
char* qsf_chat_render(QSFEngine*, const QSFChatMessage* messages, int num_messages);
/* Returns the same as token ids: [*num_tokens], owned by the caller. Special tokens come from the template only. NULL
 * on failure. */
int* qsf_chat_tokenize(QSFEngine*, const QSFChatMessage* messages, int num_messages, int* num_tokens);
/* Returns 1 if an answer ends with this token, otherwise 0; -1 on failure. */
int qsf_chat_ends(QSFEngine*, int token_id);
/* As qsf_generate(), with the answer to a conversation. Keeps the part of the sequence that agrees with the
 * conversation, so that every turn computes only its new tokens. */
void qsf_chat_generate(QSFEngine*, const QSFChatMessage* messages, int num_messages, int max_tokens, float temperature,
                       float top_p, QSFTokenCallback callback, void* user_data);

/* Takes a part of an answer. kind: "text" for the user; "thought" of the model; "call", the name of a tool, and next
 * "arguments", those of the call, in JSON as the model wrote them. Texts and thoughts come in pieces, calls when they
 * are whole. Both texts are zero-terminated and valid during the call. Inside of it the rules of QSFTokenCallback hold.
 */
typedef void (*QSFPartCallback)(const char* kind, const char* text, void* user_data);

/* Sets the tools that following answers may call: a JSON list as in OpenAI's interface. choice: NULL, calls are free;
 * "auto", they follow the schemas of their tools; "required", and the answer begins with a call; or the name of the one
 * tool to call. Both are copied. tools NULL: none. Returns 0, or -1 on failure, which leaves the setting unchanged:
 * bad_input, unsupported if the template writes no calls, bad_argument for a choice of no tool or next to a grammar. */
int qsf_chat_tools(QSFEngine*, const char* tools, const char* choice);
/* As qsf_chat_generate(), with the answer in its parts. Without tools there are no calls. */
void qsf_chat_answer(QSFEngine*, const QSFChatMessage* messages, int num_messages, int max_tokens, float temperature,
                     float top_p, QSFPartCallback callback, void* user_data);

/* Saved sequences */

/* Saves the sequence, with its keys and values, to a file that appears whole or not at all; an earlier file stays until
 * then. The same model, KV type and a context of that length continue from it with the same bits, in this or another
 * program or in a page. The messages of a conversation are the caller's to keep. Returns 0, or -1 on failure. */
int qsf_session_save(QSFEngine*, const char* path);
/* Replaces the sequence by a saved one. qsf_forward() continues it, and qsf_generate() and qsf_chat_generate() do not
 * compute the tokens again that it has computed. Returns 0, or -1 on failure, such as `mismatch` for another model or
 * KV type, context_full and bad_checksum, which leave the sequence as it was. */
int qsf_session_load(QSFEngine*, const char* path);

/* Embeddings. Each call begins the sequence anew with its text. */

/* Returns the number of values of an embedding; 0 without an engine. */
int qsf_embed_size(const QSFEngine*);
/* Returns the embedding of `text`, pooled and normalized as the model states: [qsf_embed_size()], owned by the caller:
 * qsf_release(). NULL on failure. */
float* qsf_embed(QSFEngine*, const char* text);
/* Returns the same of token ids, to which nothing is added. pooling: "mean", "first", "last", or "none" for the last
 * hidden states of all positions, [num_tokens][qsf_embed_size()]; NULL: as the model states. normalize: 1 to length 1,
 * 0 not, below 0 as the model states, and not with "none". */
float* qsf_embed_tokens(QSFEngine*, const int* tokens, int num_tokens, const char* pooling, int normalize);

/* Rerankers: models that score how well a document answers a query. */

/* Returns the scores of documents for a query, in their order: [num_documents], owned by the caller: qsf_release().
 * A larger score is a better document for the same query. Scores of models that answer yes or no are from 0 to 1,
 * others are any number. NULL on failure, such as `unsupported` for a model that is no reranker. */
float* qsf_rerank(QSFEngine*, const char* query, const char* const* documents, int num_documents);

/* Lower-level API. The caller releases memory that it owns with qsf_release(). */

/* Returns the token ids of `text`, nothing added: [*num_tokens], owned by the caller. NULL on failure. */
int* qsf_tokenize(QSFEngine*, const char* text, int* num_tokens);
/* Returns the tokens' text, owned by the caller. A character stays incomplete if tokens of it are missing. NULL on
 * failure. */
char* qsf_detokenize(QSFEngine*, const int* tokens, int num_tokens);
/* Continues the sequence by these tokens and returns the last one's logits: [qsf_vocab_size()], owned by the engine,
 * valid until its next call. NULL on failure. */
float* qsf_forward(QSFEngine*, const int* tokens, int num_tokens);
/* Forgets all but the first num_tokens tokens of the sequence; 0 begins anew. Returns 0, or -1 on failure. */
int qsf_rewind(QSFEngine*, int num_tokens);
/* Returns a token for these logits; -1 on failure, such as `not_finite` for a NaN or INFINITY among them. A token whose
 * logit is -INFINITY is never chosen. The same arguments give the same token: give every choice of a text another seed,
 * such as its number. */
int qsf_sample(const float* logits, int vocab_size, float temperature, float top_p, uint64_t seed);
int qsf_vocab_size(const QSFEngine*);
/* Frees memory that the caller owns; NULL is ignored. */
void qsf_release(void*);

/* Prints memory, tokens per second and the part of the weights that stays in memory, on stderr. */
void qsf_print_stats(QSFEngine*);

/* Returns the error of the calling thread's last call that can fail, "" for none. Valid until its next call. */
const char* qsf_last_error(void);
/* Returns its number in docs/reference/errors.md, 0 for none. */
int qsf_last_error_code(void);

#ifdef __cplusplus
}
#endif

#endif
