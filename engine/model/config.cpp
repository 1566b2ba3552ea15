#include "model/config.h"

#include <charconv>

#include "kernels/kernels.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"

namespace qsf {
namespace {

Error unsupported(const char* what, unsigned value) {
  return make_error(ErrorCode::unsupported, "this build cannot run models with {} {}", what, value);
}

/// Numbers parted by ", ", added to the end tokens.
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

Result<Config> read_config(const Header& h, std::span<const std::byte> meta) {
  if (h.activation != Activation::silu) return unsupported("activation type", static_cast<unsigned>(h.activation));
  if (h.norm != Norm::rms_norm) return unsupported("normalization type", static_cast<unsigned>(h.norm));
  if (h.position != Position::rope) return unsupported("position encoding", static_cast<unsigned>(h.position));
  if (h.n_heads % h.n_kv_heads != 0) {
    return make_error(ErrorCode::bad_header, "{} attention heads cannot share {} KV heads", h.n_heads, h.n_kv_heads);
  }
  if (h.head_dim % 2 != 0) return make_error(ErrorCode::bad_header, "head dimension {} is odd", h.head_dim);
  if (h.head_dim > kMaxHeadDim) {
    return make_error(ErrorCode::unsupported, "head dimension {} is more than {}", h.head_dim, kMaxHeadDim);
  }
  if (!(h.rope_theta > 1.0f && h.rope_theta < 1e12f)) {
    return make_error(ErrorCode::bad_header, "RoPE theta {} is not in (1, 1e12)", h.rope_theta);
  }

  Config c;
  c.n_layers = h.n_layers;
  c.dim = h.dim;
  c.n_heads = h.n_heads;
  c.n_kv_heads = h.n_kv_heads;
  c.head_dim = h.head_dim;
  c.ffn_dim = h.ffn_dim;
  c.vocab_size = h.vocab_size;
  c.max_seq_len = h.max_seq_len;
  c.bos = h.bos;
  if (h.eos < h.vocab_size) c.ends[c.n_ends++] = h.eos;
  c.rope_theta = h.rope_theta;
  c.tied = (h.flags & kFlagTied) != 0;

  Result<MetaReader> reader = MetaReader::open(meta);
  if (!reader) return reader.error();
  for (MetaValue value;;) {
    const Result<bool> more = reader->next(value);
    if (!more) return more.error();
    if (!*more) break;
    if (value.key == kMetaNormEpsilon && value.type == MetaType::f32) c.norm_epsilon = value.f32;
    if (value.key == kMetaEndTokens && value.type == MetaType::text) {
      QSF_TRY(add_ends(value.text, c));
    }
    if (value.key == kMetaWindow && value.type == MetaType::u32) c.window = value.u32;
  }
  if (!(c.norm_epsilon > 0.0f && c.norm_epsilon < 1.0f)) {
    return make_error(ErrorCode::bad_section, "the META section's norm.epsilon {} is not in (0, 1)", c.norm_epsilon);
  }
  return c;
}

}  // namespace qsf
