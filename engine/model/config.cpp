#include "model/config.h"

#include <charconv>

#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

/// Adds numbers that are separated by ", " to the end tokens.
Status add_ends(std::string_view text, Config& c) {
  while (!text.empty()) {
    std::uint32_t id = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (problem != std::errc{} || id >= c.vocab_size) {
      return make_error(ErrorCode::bad_section, "the META section's tokens.eos does not list tokens at '{:.40}'", text);
    }
    if (!c.is_end(id)) {
      if (c.n_ends == c.ends.size()) {
        return make_error(ErrorCode::unsupported, "the model has more than {} end tokens", c.ends.size());
      }
      c.ends[c.n_ends++] = id;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(", ")) text.remove_prefix(2);
  }
  return {};
}

}  // namespace

Result<Config> read_config(const Header& h, std::span<const std::byte> meta, const LayerTable& table,
                           std::span<const float> rope_divisors) {
  Config c;
  c.guess_stage = guess_stage(h, table.model);
  c.n_layers = h.n_layers - table.model.guess_layer;
  c.dim = h.dim;
  c.vocab_size = h.vocab_size;
  c.max_seq_len = h.max_seq_len;
  c.bos = h.bos;
  if (h.eos < h.vocab_size) c.ends[c.n_ends++] = h.eos;
  c.tied = (h.flags & kFlagTied) != 0;
  c.table = table;
  c.rope_divisors = rope_divisors;
  QSF_TRY(check_rope_divisors(table, rope_divisors.size()));
  QSF_LET(reader, MetaReader::open(meta));
  for (MetaValue value;;) {
    const Result<bool> more = reader.next(value);
    if (!more) return more.error();
    if (!*more) break;
    if (value.key == kMetaEndTokens && value.type == MetaType::text) QSF_TRY(add_ends(value.text, c));
  }
  return c;
}

}  // namespace qsf
