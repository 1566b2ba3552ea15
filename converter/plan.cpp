// Which tensor of the source becomes which tensor of the file.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "converter/convert.h"
#include "converter/rows.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"
#include "qsf/formats/kv.h"

namespace qsf::convert {
namespace {

/// "1, 2, 3"
template <class T>
std::string joined(std::span<const T> numbers) {
  std::string text;
  for (const T n : numbers) {
    if (!text.empty()) text.append(", ");
    text += std::to_string(n);
  }
  return text;
}

/// The engine's room for tokens that end a text.
Status check_ends(const ModelConfig& c) {
  std::set<std::uint32_t> ends(c.all_eos.begin(), c.all_eos.end());
  if (c.eos != kNoToken) ends.insert(c.eos);
  if (ends.size() <= kMaxEndTokens) return {};
  return make_error(ErrorCode::unsupported, "the model has more than {} end tokens", kMaxEndTokens);
}

Header header_of(const ModelSource& model, bool tied) {
  const ModelConfig& c = model.config;
  Header h;
  h.arch = model.recipe->arch;
  h.n_layers = c.n_layers;
  h.dim = c.dim;
  h.n_heads = c.n_heads;
  h.n_kv_heads = c.n_kv_heads;
  h.head_dim = c.head_dim;
  h.ffn_dim = c.ffn_dim;
  h.vocab_size = c.vocab_size;
  h.max_seq_len = c.max_seq_len;
  h.activation = Activation::silu;
  h.norm = Norm::rms_norm;
  h.position = Position::rope;
  h.rope_theta = c.rope_theta;
  h.bos = c.bos;
  h.eos = c.eos;
  h.pad = c.pad;
  h.flags = tied ? kFlagTied : 0;
  return h;
}

/// What every layer is, in its ranges: what the reader would refuse is not written.
Result<LayerKind> kind_of(const Header& header, const ModelConfig& config) {
  LayerKind kind = default_kind(header);
  kind.norm_epsilon = config.norm_epsilon;
  kind.window = config.window;
  if (const Status status = check_kind(kind); !status) {
    Error error = status.error();
    if (error.code == ErrorCode::bad_section) error.code = ErrorCode::bad_input;
    return error;
  }
  return kind;
}

std::vector<MetaEntry> meta_of(const ModelSource& model) {
  std::vector<MetaEntry> meta;
  const auto text = [&](std::string_view key, std::string value) {
    meta.push_back({std::string(key), MetaType::text, 0, 0, std::move(value)});
  };
  meta.push_back({std::string(kMetaNormEpsilon), MetaType::f32, 0, model.config.norm_epsilon, {}});
  if (model.config.window != 0) {
    meta.push_back({std::string(kMetaWindow), MetaType::u32, model.config.window, 0, {}});
  }
  text(kMetaArchitecture, std::string(model.recipe->name));
  if (!model.config.name.empty()) text(kMetaName, model.config.name);
  text("general.source", model.kind);
  if (model.config.all_eos.size() > 1) {
    text(kMetaEndTokens, joined<std::uint32_t>(model.config.all_eos));
  }
  return meta;
}

/// Tensors by section and role, each once.
using Placed = std::map<std::pair<std::uint32_t, Role>, const SourceTensor*>;

std::uint32_t section_of(const ModelConfig& config, const TensorPlace& place) {
  switch (rule_of(place.role).place) {
    case Place::embedding:
      return 0;
    case Place::layer:
      return place.layer + 1;
    case Place::final:
      return config.n_layers + 1;
  }
  return 0;
}

Result<Placed> place_all(const ModelSource& model) {
  Placed placed;
  for (const SourceTensor& tensor : model.tensors) {
    const std::optional<TensorPlace> place = place_of_name(model.naming, tensor.name);
    if (!place && ignored_name(tensor.name)) continue;
    if (!place || place->layer >= model.config.n_layers || use_of(*model.recipe, place->role) == Use::never) {
      return make_error(ErrorCode::unsupported, "tensor {:.100} has no place in a {} model of {} layers", tensor.name,
                        model.recipe->name, model.config.n_layers);
    }
    if (tensor.format == FormatId::inherit) {
      return make_error(ErrorCode::unsupported, "tensor {:.100} is stored as {:.20}, which cannot be read", tensor.name,
                        tensor.type);
    }
    if (!placed.emplace(std::pair(section_of(model.config, *place), place->role), &tensor).second) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} is there twice", tensor.name);
    }
  }
  return placed;
}

/// Every tensor that the recipe asks for, in every layer.
Status check_complete(const ModelSource& model, const Placed& placed, bool tied) {
  for (std::uint32_t section = 0; section < model.config.n_layers + 2; ++section) {
    const bool first = section == 0, last = section > model.config.n_layers;
    for (const TensorName& line : kTensorNames) {
      const Place place = rule_of(line.role).place;
      if (place != (first ? Place::embedding : last ? Place::final : Place::layer)) continue;
      const bool needed = line.role == Role::head ? !tied : use_of(*model.recipe, line.role) == Use::always;
      if (!needed || placed.contains({section, line.role})) continue;
      return make_error(ErrorCode::bad_input, "tensor {} is missing",
                        name_of(model.naming, line.role, first || last ? 0 : section - 1).text);
    }
  }
  return {};
}

FormatId target_format(const ModelSource& model, const Options& options, const SourceTensor& tensor, bool matrix) {
  if (!matrix) return tensor.format == FormatId::f16 ? FormatId::f16 : FormatId::f32;
  if (options.matrices) return *options.matrices;
  return model.carry_formats ? tensor.format : kDefaultFormat;
}

}  // namespace

Result<FileSource> plan_file(const ModelSource& model, const Options& options) {
  const ModelConfig& config = model.config;
  Result<Placed> placed = place_all(model);
  if (!placed) return placed.error();
  const std::pair head{config.n_layers + 1, Role::head};
  const bool tied = config.tied.value_or(!placed->contains(head));
  if (tied) placed->erase(head);
  QSF_TRY(check_complete(model, *placed, tied));

  FileSource out;
  out.header = header_of(model, tied);
  out.meta = meta_of(model);
  QSF_TRY(check_sizes(out.header, ErrorCode::bad_input));
  QSF_LET(kind, kind_of(out.header, config));
  QSF_TRY(check_ends(config));
  out.rope_divisors = config.rope_divisors;
  out.compression = options.compression;
  out.segment_bytes = options.segment_bytes;
  for (const auto& [key, tensor] : *placed) {
    const auto& [section, role] = key;
    const RoleRule& rule = rule_of(role);
    const std::uint32_t rows = extent(out.header, kind, rule.rows), cols = extent(out.header, kind, rule.cols);
    const auto shape = matrix_shape(tensor->shape);
    if (!shape || (*shape)[0] != rows || (*shape)[1] != cols) {
      const std::string text = joined<std::uint64_t>(tensor->shape);
      return make_error(ErrorCode::bad_input, "tensor {:.100} is [{:.40}], but the model's sizes say [{}, {}]",
                        tensor->name, text, rows, cols);
    }
    TensorSource target;
    target.section = section;
    target.role = role;
    target.format = target_format(model, options, *tensor, rule.matrix);
    target.layout = rule.matrix && find_format(target.format)->quantized() ? Layout::tiles : Layout::rows;
    target.rows = rows;
    target.cols = cols;
    target.rows_of =
        rows_as(*tensor, target.format, rows, cols, model.interleaved_rope ? rotated_heads(role, config.head_dim) : 0);
    if (role == Role::final_norm && target.format == FormatId::f32) out.header.flags |= kFlagFinalNormF32;
    out.tensors.push_back(std::move(target));
  }
  if (model.tokenizer) {
    Result<std::vector<std::byte>> section = build_tokenizer(*model.tokenizer);
    if (!section) return section.error();
    out.tokenizer = std::move(*section);
  }
  return out;
}

}  // namespace qsf::convert
