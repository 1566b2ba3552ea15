#include "run/model.h"

#include <algorithm>

#include "qsf/base/try.h"
#include "qsf/run/guesses.h"

namespace qsf {
namespace {

KvPolicy policy_of(const OpenOptions& o) { return {o.kv_window, o.kv_sinks, static_cast<KvChoice>(o.kv_chosen)}; }

}  // namespace

Status Planned::init(Arena& arena, const Model& model, const OpenOptions& opened, const Plan& by,
                     std::span<const bool> pinned) {
  const Config& config = model.config;
  const Program& program = model.program;
  QSF_TRY(streamer.init(arena, model.tables, by, pinned, program.schedule(), program.chosen(),
                        {.recheck = opened.recheck, .vouched = opened.vouched}, opened.mapped));
  QSF_TRY(memory.init(arena, program, config.dim, by.kv, opened.sequences, by.max_seq_len, by.chunk, policy_of(opened),
                      opened.guess_by_head, opened.guesses != 0));
  static_assert(kMostGuesses < kTogether);
  // A choice cannot go back over wrong guesses.
  guesses = memory.chooses() ? 0 : std::min(opened.guesses, by.chunk - 1);
  guesses_by_head = guesses != 0 && opened.guess_by_head;
  guess_layers = guesses != 0 && opened.guess_by_layers ? opened.guess_layers : 0;
  const std::uint32_t rows = opened.all_logits ? by.chunk : std::min(by.chunk, opened.sequences * (1 + guesses));
  QSF_TRY(pass.init(arena, {config, model.weights, program}, {streamer, memory}, {*model.kernels, opened.workers}, by,
                    rows, opened.guess_by_head));
  std::span<float> row;
  QSF_TRY(arena.take(row, opened.logprobs ? config.vocab_size : 0, Region::logits));
  logprobs.init(row);
  QSF_TRY(pass.observe(arena, opened.observe, opened.observed_room));
  QSF_TRY(arena.take(columns, by.chunk, Region::activations));
  QSF_TRY(arena.take(prompt_room, by.max_seq_len, Region::session));
  QSF_TRY(arena.take(sequences, opened.sequences, Region::session));
  for (std::uint32_t i = 0; i < opened.sequences; ++i) {
    std::span<std::uint32_t> tokens;
    QSF_TRY(arena.take(tokens, by.max_seq_len, Region::session));
    std::span<double> sums;
    std::span<float> embedding;
    QSF_TRY(arena.take(sums, config.dim, Region::session));
    QSF_TRY(arena.take(embedding, config.dim, Region::session));
    if (!arena.is_dry()) sequences[i].init(i, tokens, {sums, embedding});
  }
  // The last piece, because the memory after it is free.
  std::span<std::byte> texts;
  return arena.take(texts, model.text_bytes(opened, by.max_seq_len), Region::texts);
}

std::string_view Model::metadata(std::string_view key) const {
  Result<MetaReader> reader = MetaReader::open(meta);
  for (MetaValue value; reader;) {
    const Result<bool> more = reader->next(value);
    if (!more || !*more) break;
    if (value.key == key && value.type == MetaType::text) return value.text;
  }
  return {};
}

/// Returns the bytes of texts: as asked for, or enough for a conversation that fills the context.
std::uint64_t Model::text_bytes(const OpenOptions& opened, std::uint32_t max_seq_len) const {
  if (opened.text_bytes != 0) return opened.text_bytes;
  if (config.table.model.score != 0) return (64u << 10) + std::uint64_t{32} * max_seq_len;
  return metadata(kMetaChatTemplate).empty() ? 0 : (512u << 10) + std::uint64_t{96} * max_seq_len;
}

std::string_view Model::more_context() const {
  const bool finer = plan.kv < KvType::q8;
  switch (plan.context_why) {
    case Why::model:
      if (plan.max_seq_len == config.max_seq_len) return "a shorter text";
      break;
    case Why::weights:
      return finer ? "a longer context (max_seq_len), a larger budget, keys and values in 8bit (kv) or a shorter text"
                   : "a longer context (max_seq_len), a larger budget or a shorter text";
    case Why::budget:
      return finer ? "a larger budget, keys and values in 8bit (kv) or a shorter text"
                   : "a larger budget or a shorter text";
    case Why::asked:
      if (longer_chunk[0] != 0) return longer_chunk.data();
      break;
  }
  return "a longer context (max_seq_len) or a shorter text";
}

Error Model::too_long(const char* sentence) const {
  return make_error(ErrorCode::context_full, "{}: {} would help", sentence, more_context());
}

}  // namespace qsf
