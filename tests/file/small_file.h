// Small complete QSF files in memory, written by write_file, with the weights they were made from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "qsf/file/roles.h"
#include "qsf/file/writer.h"

namespace qsf::test {

struct SmallOptions {
  std::uint32_t n_layers = 2, dim = 32, n_heads = 4, n_kv_heads = 2, head_dim = 8, ffn_dim = 48, vocab_size = 40;
  std::uint32_t max_seq_len = 64;
  FormatId format = FormatId::f32;  // of the matrices; quantized ones are tiled
  Layout layout = Layout::tiles;    // of quantized matrices
  FormatId vectors = FormatId::f32;
  bool tied = true;
  bool aligned = false;  // as files of large segments are
  bool biases = false;   // of q, k and v
  bool qk_norm = false;
  bool repetitive = false;  // weights of few values, so that segments shrink when compressed
  Compression compression = Compression::none;
  std::uint32_t least_saved = 0;
  std::uint32_t segment_bytes = 1024;
  std::uint32_t window = 0;
  std::vector<float> rope_divisors;
  std::function<void(std::uint32_t layer, LayerKind& kind)> shape;  // what layers are beside the header's say
  ModelKind model;
  std::vector<Role> optional;        // of those that a layer may have, beside the ones below
  std::string end_tokens;            // META's tokens.eos
  std::vector<MetaEntry> meta = {};  // further entries
  std::vector<std::byte> tokenizer;
  std::uint32_t seed = 1;
};

struct SmallFile {
  std::vector<std::byte> bytes;
  std::map<std::pair<std::uint32_t, Role>, std::vector<float>> weights;  // by stage and role, before rounding
};

inline Header small_header(const SmallOptions& o) {
  Header h;
  h.n_layers = o.n_layers;
  h.dim = o.dim;
  h.n_heads = o.n_heads;
  h.n_kv_heads = o.n_kv_heads;
  h.vocab_size = o.vocab_size;
  h.max_seq_len = o.max_seq_len;
  h.ffn_dim = o.ffn_dim;
  h.head_dim = o.head_dim;
  h.rope_theta = 10000;
  h.bos = 1;
  h.eos = 2;
  h.pad = kNoToken;
  h.flags =
      (o.tied ? kFlagTied : 0) | (o.vectors == FormatId::f32 ? kFlagFinalNormF32 : 0) | (o.aligned ? kFlagAligned : 0);
  return h;
}

/// A layer that no shape() changes.
inline LayerKind usual_kind(const SmallOptions& o) {
  LayerKind kind = default_kind(small_header(o));
  kind.norm_epsilon = 1e-5f;
  kind.window = o.window;
  return kind;
}

/// Everything write_file needs; `file.weights` must outlive the source.
inline FileSpec small_source(const SmallOptions& o, SmallFile& file) {
  FileSpec source;
  source.header = small_header(o);
  const Header& h = source.header;
  source.meta = {{"norm.epsilon", MetaType::f32, 0, 1e-5f, {}},
                 {"general.architecture", MetaType::text, 0, 0, "llama"},
                 {"attention.window", MetaType::u32, o.window, 0, {}}};
  if (!o.end_tokens.empty()) source.meta.push_back({"tokens.eos", MetaType::text, 0, 0, o.end_tokens});
  source.meta.insert(source.meta.end(), o.meta.begin(), o.meta.end());
  source.tokenizer = o.tokenizer;
  source.rope_divisors = o.rope_divisors;
  source.compression = o.compression;
  source.least_saved = o.least_saved;
  source.segment_bytes = o.segment_bytes;

  LayerTableBuilder table;
  table.model = o.model;
  for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
    LayerKind kind = usual_kind(o);
    if (o.shape) o.shape(layer, kind);
    auto& kinds = table.kinds;
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    table.of_layer.push_back(static_cast<std::uint8_t>(found - kinds.begin()));
    if (found == kinds.end()) kinds.push_back(kind);
  }
  if (o.shape || o.model != ModelKind{}) source.layers = table;

  std::uint64_t state = o.seed;
  const auto uniform = [&] {  // splitmix64, the top 24 bits as a float in [-1, 1)
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return o.repetitive ? static_cast<float>(z >> 62) * 0.5f - 0.75f : static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
  };
  const auto add = [&](std::uint32_t stage, const RoleRule& rule) {
    TensorSpec t;
    t.stage = stage;
    t.role = rule.role;
    t.format = rule.matrix ? o.format : o.vectors;
    const LayerKind& kind = kind_of_stage(h, table.view(), stage);
    t.rows = extent(h, kind, rule.rows);
    t.cols = extent(h, kind, rule.cols);
    t.layout = kFormats[static_cast<std::size_t>(format_index(t.format))].quantized() ? o.layout : Layout::rows;
    std::vector<float>& weights = file.weights[{stage, rule.role}];
    weights.resize(std::size_t{t.rows} * t.cols);
    const bool norm =
        !rule.matrix && rule.name.ends_with("norm") && rule.rows == Extent::one && rule.cols == Extent::dim;
    for (float& w : weights) w = norm ? 1 + 0.1f * uniform() : 0.2f * uniform();
    t.rows_of = [&weights, cols = t.cols, id = t.format](std::uint32_t begin, std::uint32_t n,
                                                         std::span<std::byte> out) -> Status {
      const Format& format = kFormats[static_cast<std::size_t>(format_index(id))];
      const std::size_t row = row_bytes(format, cols);
      if (out.size() != n * row) return make_error(ErrorCode::internal, "rows_of was given {} bytes", out.size());
      for (std::uint32_t r = 0; r < n; ++r) {
        quantize_row(format, std::span<const float>(weights).subspan(std::size_t{begin + r} * cols, cols),
                     out.subspan(r * row, row));
      }
      return {};
    };
    source.tensors.push_back(std::move(t));
  };
  for (std::uint32_t stage = n_weight_stages(h); stage-- > 0;) {  // the writer sorts
    for (const RoleRule& rule : kRoleRules) {
      const bool bias = rule.role >= Role::attn_q_bias && rule.role <= Role::attn_v_bias;
      const bool qk_norm = rule.role == Role::attn_q_norm || rule.role == Role::attn_k_norm;
      if (rule.scope != scope_of(h, stage)) continue;
      const bool asked = (bias && o.biases) || (qk_norm && o.qk_norm) ||
                         std::find(o.optional.begin(), o.optional.end(), rule.role) != o.optional.end();
      const Requirement requirement = rule.requirement(role_context(h, table.view(), stage, o.tied));
      if (requirement == Requirement::always || (requirement == Requirement::optional && asked)) add(stage, rule);
    }
  }
  return source;
}

/// A sink that grows a vector. Bytes that are never written stay 0xee, so that a hole shows.
inline FileSink memory_sink(std::vector<std::byte>& out) {
  return {[&out](std::uint64_t offset, std::span<const std::byte> bytes) -> Status {
    if (out.size() < offset + bytes.size()) out.resize(offset + bytes.size(), std::byte{0xee});
    std::memcpy(out.data() + offset, bytes.data(), bytes.size());
    return {};
  }};
}

/// The file, after `change` has had its weights; writes to stderr and aborts if it cannot be written, which is a defect
/// of the writer or of the options.
inline SmallFile small_file(const SmallOptions& options = {}, const std::function<void(SmallFile&)>& change = {}) {
  SmallFile file;
  const FileSpec source = small_source(options, file);
  if (change) change(file);
  const Result<std::uint64_t> size = write_file(source, memory_sink(file.bytes), {});
  if (!size || *size != file.bytes.size()) {
    std::fprintf(stderr, "small_file: %s\n", size ? "wrong size" : size.error().sentence);
    std::abort();
  }
  return file;
}

}  // namespace qsf::test
