// What JavaScript calls, with numbers alone; web/src/engine-module.d.ts declares it there. See wasm/instance.h.
#include <emscripten.h>

#include "wasm/instance.h"

#define EXPORT extern "C" EMSCRIPTEN_KEEPALIVE

namespace qsf::wasm {

using I = Instance;
using u32 = std::uint32_t;
using i32 = std::int32_t;

EXPORT I* instance_new(u32 threads, bool tuned) { return new Instance(threads, tuned); }
EXPORT void instance_delete(I* i) { delete i; }
EXPORT double* instance_mailbox(I* i) { return i->mailbox().data(); }
EXPORT u32 instance_open(I* i, double budget, double file_size, i32 kv) { return i->open(budget, file_size, kv); }
EXPORT void instance_close(I* i) { i->close(); }
EXPORT u32 instance_step(I* i) { return i->step(); }
EXPORT bool instance_next_request(I* i) { return i->next_request(); }
EXPORT u32 instance_crc32(I* i, const std::byte* at, u32 size) { return i->crc32(at, size); }
EXPORT u32 instance_complete(I* i, u32 ticket) { return i->complete(ticket); }
EXPORT void instance_fail(I* i, u32 ticket, u32 error, u32 size) { i->fail(ticket, error, size); }
EXPORT std::byte* instance_stage(I* i, u32 size) { return i->stage(size); }
EXPORT u32 instance_start(I* i, u32 sequence, u32 text_size, u32 n_tokens, u32 stops_size) {
  return i->start(sequence, text_size, n_tokens, stops_size);
}
EXPORT u32 instance_embed(I* i, u32 sequence, u32 text_size, u32 n_tokens, i32 pooling, i32 normalize) {
  return i->embed(sequence, text_size, n_tokens, pooling, normalize);
}
EXPORT void instance_stop(I* i, u32 sequence) { i->stop(sequence); }
EXPORT u32 instance_rewind(I* i, u32 n, u32 sequence) { return i->rewind(n, sequence); }
EXPORT u32 instance_preload(I* i) { return i->preload(); }
EXPORT u32 instance_sequence(I* i) { return i->sequence(); }
EXPORT u32 instance_token(I* i) { return i->token(); }
EXPORT u32 instance_end(I* i, u32 sequence) { return i->end(sequence); }
EXPORT u32 instance_error_code(I* i) { return i->error_code(); }
EXPORT void instance_sentence(I* i) { i->sentence(); }
EXPORT void instance_piece(I* i) { i->piece(); }
EXPORT void instance_embedding(I* i) { i->embedding(); }
EXPORT void instance_model_hash(I* i) { i->model_hash(); }
EXPORT void instance_logits_hash(I* i, u32 sequence) { i->logits_hash(sequence); }
EXPORT void instance_detokenize(I* i, u32 id) { i->detokenize(id); }
EXPORT i32 instance_tokenize(I* i, u32 text_size, bool special) { return i->tokenize(text_size, special); }
EXPORT void instance_stats(I* i) { i->stats(); }
EXPORT void instance_sequence_stats(I* i, u32 sequence) { i->sequence_stats(sequence); }
EXPORT bool instance_memory_region(I* i, u32 index) { return i->memory_region(index); }
EXPORT bool instance_kernel_count(I* i, u32 index) { return i->kernel_count(index); }
EXPORT bool instance_segment(I* i, u32 index) { return i->segment(index); }

}  // namespace qsf::wasm
