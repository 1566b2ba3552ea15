// The assignment of the source's tensors to the file's tensors.
#include "converter/plan/plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "converter/model/layer_tensors.h"
#include "converter/plan/metadata.h"
#include "converter/plan/type_notes.h"
#include "converter/recipes/settings.h"
#include "converter/tensors/experts.h"
#include "converter/tensors/parts.h"
#include "converter/tensors/rows.h"
#include "converter/tensors/scaled.h"
#include "converter/types/gguf_form.h"
#include "converter/types/written_type.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"
#include "qsf/formats/kv.h"

namespace qsf::convert {
namespace {

/// Checks that the engine has room for all tokens that end a text.
Status check_ends(const ModelConfig& c) {
  std::set<std::uint32_t> ends(c.all_eos.begin(), c.all_eos.end());
  if (c.eos != kNoToken) ends.insert(c.eos);
  if (ends.size() <= kMaxEndTokens) return {};
  return make_error(ErrorCode::unsupported, "the model has more than {} end tokens", kMaxEndTokens);
}

/// Returns the header of a model whose layers all have the configuration's sizes.
Header header_of(const LoadedModel& model) {
  if (model.file) return model.file->header;
  const ModelConfig& c = model.config;
  Header h;
  h.arch = model.recipe->arch;
  h.n_layers = c.all_layers();
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
  return h;
}

struct Layers {
  LayerKind usual;          // as header and META state it
  LayerTableBuilder table;  // with at least one kind
};

/// Returns the kind of every layer, within the ranges that the reader accepts. Settings of all layers go to the header.
Result<Layers> layers_of(const LoadedModel& model, Header& header) {
  const auto as_input = [](const Status& status) -> Status {
    if (status) return status;
    Error error = status.error();
    if (error.code == ErrorCode::bad_section) error.code = ErrorCode::bad_input;
    return error;
  };
  const auto in_range = [&](const LayerKind& kind) { return as_input(check_kind(kind)); };
  if (model.file) return Layers{{}, model.file->layers};
  const LayerRules& rules = model.layers;
  LayerKind every = default_kind(header);
  every.norm_epsilon = model.config.norm_epsilon;
  every.window = model.config.window;
  every.activation = model.config.activation;
  if (model.config.rope_dims) every.rope_dims = *model.config.rope_dims;
  every.rope_scale = model.config.rope_scale;
  apply_settings(rules.every, every);
  if (every.alibi != 0) every.rope_dims = 0;
  QSF_TRY(in_range(every));
  header.n_heads = every.n_heads;
  header.n_kv_heads = every.n_kv_heads;
  header.head_dim = every.head_dim;
  header.ffn_dim = every.ffn_dim;
  header.activation = every.activation;
  header.norm = every.norm;
  header.rope_theta = every.rope_theta;

  Layers out{default_kind(header), {}};
  out.usual.norm_epsilon = every.norm_epsilon;
  out.usual.window = every.window;
  for (const LayerException& exception : rules.exceptions) {
    for (const std::uint32_t layer : exception.layers) {
      if (layer < model.config.n_layers + model.config.n_guessing) continue;
      return make_error(ErrorCode::bad_input, "the recipe {:.60} speaks of layer {}, but there are {}",
                        model.recipe->name, layer, model.config.n_layers);
    }
  }
  LayerTableBuilder& table = out.table;
  apply_settings(rules.model, table.model);
  for (std::uint32_t layer = 0; layer < model.config.n_layers; ++layer) {
    LayerKind kind = every;
    for (const LayerException& exception : rules.exceptions) {
      const bool has = exception.with && has_tensor(model, *exception.with, layer);
      if (has || exception.holds_for(layer)) apply_settings(exception.settings, kind);
    }
    const auto found = std::ranges::find(table.kinds, kind);
    table.of_layer.push_back(static_cast<std::uint8_t>(found - table.kinds.begin()));
    if (found != table.kinds.end()) continue;
    if (table.kinds.size() == kMaxKinds) {
      return make_error(ErrorCode::unsupported, "the recipe {:.60} makes more than {} kinds of layers",
                        model.recipe->name, kMaxKinds);
    }
    QSF_TRY(in_range(kind));
    table.kinds.push_back(kind);
  }
  if (model.config.guess_layer) {
    table.model.guess_layer = 1;
    const auto attends = [&](std::uint8_t kind) {
      return table.kinds[kind].attends() || table.kinds[kind].mixer == Mixer::latent;
    };
    const auto last = std::find_if(table.of_layer.rbegin(), table.of_layer.rend(), attends);
    const std::uint32_t like = model.config.guess_like.value_or(
        static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(table.of_layer.rend() - last - 1, 0)));
    table.of_layer.push_back(table.of_layer[like]);
  }
  QSF_TRY(as_input(check_layers(table.view(), header.dim)));
  return out;
}

/// A tensor of the source and its line in the recipe.
struct Piece {
  std::shared_ptr<const LoadedTensor> tensor;  // owned by the model, or joined from its experts' tensors
  const TensorName* line = nullptr;
  TensorPart part = {};
};
/// Tensors by stage and role, each once.
using Placed = std::map<std::pair<std::uint32_t, Role>, Piece>;

/// The data of the file that decides where tensors belong.
struct Frame {
  const LoadedModel& model;
  const Header& header;
  LayerTable table;
  std::set<std::string, std::less<>> names;  // of the source's tensors

  /// Returns the recipe's lines with this name that count in this source.
  std::vector<TensorUse> places(std::string_view name) const {
    std::vector<TensorUse> found = places_of_name(*model.recipe, model.naming, name);
    std::erase_if(found, [&](const TensorUse& place) {
      const auto there = [&](const std::string& other) { return names.contains(of_layer(other, place.layer)); };
      return (!place.line->beside.empty() && !there(place.line->beside)) ||
             (!place.line->without.empty() && there(place.line->without));
    });
    return found;
  }

  const LayerKind& kind(std::uint32_t stage) const { return kind_of_stage(header, table, stage); }
  Requirement requirement(std::uint32_t stage, Role role, bool tied) const {
    return requirement_of(*model.recipe, role, role_context(header, table, stage, tied));
  }
};

std::uint32_t stage_of(const Header& header, const TensorUse& place) {
  switch (rule_of(place.line->role).scope) {
    case RoleScope::embedding:
      return 0;
    case RoleScope::layer:
      return place.layer + 1;
    case RoleScope::final:
      return header.n_layers + 1;
  }
  return 0;
}

/// Checks that the parts of one tensor cover all of it and do not overlap.
Status check_parts(const Frame& frame, const Placed& placed, const LoadedTensor& tensor,
                   std::span<const std::pair<std::uint32_t, Role>> keys) {
  std::vector<RowRange> ranges;
  std::uint64_t all = 0, covered = 0;
  bool partial = false;
  for (const auto& key : keys) {
    const TensorPart& part = placed.at(key).part;
    if ((part.whole() || part.flat) && keys.size() == 1) return {};
    partial = partial || part.partial;
    QSF_LET(range, rows_of_part(tensor, part, frame.header, frame.kind(key.first)));
    QSF_LET(whole, rows_of_part(tensor, {.transposed = part.transposed}, frame.header, frame.kind(key.first)));
    const std::uint64_t rows = range.every != 0 ? range.every : whole.end;
    if (all != 0 && all != rows) break;
    all = rows;
    ranges.push_back(range);
  }
  heap_sort(ranges, {}, [](const RowRange& range) { return std::pair(range.begin, range.end); });
  bool joined = ranges.size() == keys.size();  // all have the same number of rows
  for (const RowRange& range : ranges) {
    joined = joined && (partial ? range.begin >= covered : range.begin == covered);
    covered = range.end;
  }
  if (joined && (partial || covered == all)) return {};
  return make_error(ErrorCode::bad_input, "the parts of tensor {:.100} are not each of its {} rows once", tensor.name,
                    all);
}

using Tensors = std::vector<std::shared_ptr<const LoadedTensor>>;

/// Returns the number of tensors that a source may have in place of one: of experts, or of streams.
std::uint32_t parts_of(const Frame& frame, const TensorUse& place) {
  const LayerKind& kind = frame.kind(stage_of(frame.header, place));
  return of_streams(rule_of(place.line->role)) ? kind.other_streams() : kind.n_experts;
}

bool fits(const Frame& frame, const TensorUse& place) {
  if (place.layer >= frame.header.n_layers) return false;
  const std::uint32_t stage = stage_of(frame.header, place);
  if (place.expert && *place.expert >= parts_of(frame, place)) return false;
  return frame.requirement(stage, place.line->role, false) != Requirement::never;
}

Error no_place(const LoadedModel& model, const std::string& name) {
  return make_error(ErrorCode::unsupported, "tensor {:.100} has no place in a {:.60} model of {} layers", name,
                    model.recipe->name, model.config.n_layers);
}

/// Returns the model's tensors. Tensors of single experts are joined.
Result<Tensors> whole_tensors(const Frame& frame) {
  const LoadedModel& model = frame.model;
  Tensors out;
  std::map<std::string, std::vector<const LoadedTensor*>> experts;  // by the name with {expert} in it
  for (const LoadedTensor& tensor : model.tensors) {
    const std::vector<TensorUse> places = frame.places(tensor.name);
    if (places.empty() || !places.front().expert) {
      out.emplace_back(std::shared_ptr<const LoadedTensor>(), &tensor);
      continue;
    }
    const TensorUse& place = places.front();
    if (!fits(frame, place)) return no_place(model, tensor.name);
    if (tensor.shape.empty() || tensor.shape.size() > 2) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} has {} dimensions, which the recipe does not expect",
                        tensor.name, tensor.shape.size());
    }
    auto& all = experts[of_layer(place.line->names.in(model.naming), place.layer)];
    all.resize(parts_of(frame, place));
    if (std::exchange(all[*place.expert], &tensor) != nullptr) {
      return make_error(ErrorCode::bad_input, "tensor {:.100} is there twice", tensor.name);
    }
  }
  for (const auto& [name, all] : experts) {
    const auto missing = std::ranges::find(all, nullptr);
    if (missing != all.end()) {
      std::string one = name;
      one.replace(one.find(kExpertMark), kExpertMark.size(), std::to_string(missing - all.begin()));
      return make_error(ErrorCode::bad_input, "tensor {:.160} is missing", one);
    }
    QSF_LET(joined, join_experts(name, all));
    out.push_back(std::move(joined));
  }
  return out;
}

/// Returns a tensor of experts as rows of one matrix. All lines that take parts of it must agree.
Result<std::shared_ptr<const LoadedTensor>> stacked(const Frame& frame, const std::shared_ptr<const LoadedTensor>& from,
                                                    std::span<const TensorUse> places,
                                                    const std::shared_ptr<TurnedWindow>& window) {
  const auto rule = [](const TensorUse& place) { return rule_of(place.line->role); };
  const auto turned = [&](const TensorUse& place) {
    return part_for(*from, *place.line, frame.model.naming).transposed;
  };
  const TensorUse& first = places.front();
  for (const TensorUse& place : places) {
    if (of_experts(rule(place)) == of_experts(rule(first)) && rule(place).matrix == rule(first).matrix &&
        turned(place) == turned(first)) {
      continue;
    }
    if (!of_experts(rule(place)) && !of_experts(rule(first))) continue;
    return make_error(ErrorCode::bad_input, "the parts of tensor {:.100} are of experts and of others", from->name);
  }
  if (of_heads(rule(first)) || of_streams(rule(first))) return stack_experts(from, true, false, window);
  if (!of_experts(rule(first))) return from;
  return stack_experts(from, rule(first).matrix, turned(first), window);
}

Result<Placed> place_all(const Frame& frame, const std::shared_ptr<TurnedWindow>& window) {
  Placed placed;
  const LoadedModel& model = frame.model;
  for (std::size_t i = 0; model.file && i < model.tensors.size(); ++i) {
    placed[model.file->places[i]].tensor = {std::shared_ptr<const LoadedTensor>(), &model.tensors[i]};
  }
  if (model.file) return placed;
  QSF_LET(tensors, whole_tensors(frame));
  for (const std::shared_ptr<const LoadedTensor>& whole : tensors) {
    const std::vector<TensorUse> places = frame.places(whole->name);
    if (places.empty() && ignored_name(*model.recipe, whole->name)) continue;
    const auto in_place = [&](const TensorUse& place) { return fits(frame, place); };
    const bool spare = std::ranges::any_of(places, [&](const TensorUse& place) {
      return place.line->spare && place.layer < frame.header.n_layers && !fits(frame, place);
    });
    if (spare) continue;
    if (places.empty() || !std::ranges::all_of(places, in_place)) return no_place(model, whole->name);
    if (whole->format == FormatId::inherit) {
      return make_error(ErrorCode::unsupported, "tensor {:.100} is stored as {:.20}, which cannot be read", whole->name,
                        whole->type);
    }
    QSF_LET(tensor, stacked(frame, whole, places, window));
    std::vector<std::pair<std::uint32_t, Role>> keys;
    for (const TensorUse& place : places) {
      keys.emplace_back(stage_of(frame.header, place), place.line->role);
      const auto [at, is_new] = placed.try_emplace(keys.back());
      if (!is_new) return make_error(ErrorCode::bad_input, "tensor {:.100} is there twice", tensor->name);
      at->second = {tensor, place.line, part_for(*tensor, *place.line, model.naming)};
      for (const std::string& key : at->second.part.factors) {
        const auto factor = model.factors.find(key);
        if (factor != model.factors.end()) at->second.part.factor *= factor->second;
      }
      if (of_experts(rule_of(place.line->role))) at->second.part.transposed = false;  // it is already transposed
    }
    QSF_TRY(check_parts(frame, placed, *tensor, keys));
  }
  return placed;
}

/// Checks that every stage has all tensors that its kind of layer and the recipe require.
Status check_complete(const Frame& frame, const Placed& placed, bool tied) {
  for (std::uint32_t stage = 0; stage < n_weight_stages(frame.header); ++stage) {
    const RoleScope place = scope_of(frame.header, stage);
    for (const RoleRule& rule : kRoleRules) {
      if (rule.scope != place || frame.requirement(stage, rule.role, tied) != Requirement::always) continue;
      if (placed.contains({stage, rule.role})) continue;
      const LoadedModel& model = frame.model;
      const std::uint32_t layer = place == RoleScope::layer ? stage - 1 : 0;
      const std::string name = name_of(*model.recipe, model.naming, rule.role, layer);
      if (!name.empty()) return make_error(ErrorCode::bad_input, "tensor {:.160} is missing", name);
      return make_error(ErrorCode::bad_input, "layer {} needs {}, for which the recipe {:.60} has no name", layer,
                        rule.name, model.recipe->name);
    }
  }
  return {};
}

FormatId wanted_format(const LoadedModel& model, const Options& options, const LoadedTensor& tensor, Role role) {
  const bool matrix = rule_of(role).matrix;
  if (matrix && is_router(role) && options.matrices != FormatId::f32) return tensor.format;
  if (!matrix) return tensor.format == FormatId::f16 ? FormatId::f16 : FormatId::f32;
  if (options.matrices) return *options.matrices;
  if (model.carry_formats || find_format(tensor.format)->quantized()) return tensor.format;
  return options.gguf ? kDefaultGgmlFormat : kDefaultFormat;
}

/// Returns the type that a tensor can have in place of the requested one.
Result<FormatId> target_format(const Options& options, const LoadedTensor& tensor, FormatId wanted, Role role,
                               std::uint32_t cols) {
  if (!options.gguf) return wanted;
  if (!rule_of(role).matrix || is_router(role)) return FormatId::f32;
  if (wanted == kScaledNvfp4 && tensor.format == kScaledNvfp4) {  // its scales become a tensor of their own
    const bool whole = cols % find_format(kNvfp4)->block == 0;
    return whole ? wanted : ggml_form(kNvfp4, cols);
  }
  return ggml_form(wanted, cols);
}

/// The cost of the tensor that is being written. Each can be as large as a matrix, so only one is kept.
class Costs {
 public:
  explicit Costs(const Calibration* calibration) : calibration_(calibration) {}
  const RowCost* of(std::uint32_t stage, Role role, std::uint32_t cols) {
    const std::pair key{stage, role};
    if (key_ == key) return &cost_;
    key_ = key;
    const auto at = calibration_ == nullptr ? Calibration::const_iterator{} : calibration_->find(key);
    const bool known = calibration_ != nullptr && at != calibration_->end() && at->second.cols == cols;
    cost_ = known ? RowCost::of(at->second) : RowCost::plain(cols);
    return &cost_;
  }

 private:
  const Calibration* calibration_;
  std::optional<std::pair<std::uint32_t, Role>> key_;
  RowCost cost_;
};

}  // namespace

Result<LayerTableBuilder> layers_of_file(const LoadedModel& model) {
  Header header = header_of(model);
  QSF_TRY(check_sizes(header, ErrorCode::bad_input));
  QSF_LET(layers, layers_of(model, header));
  return std::move(layers.table);
}

Result<FileSpec> plan_file(const LoadedModel& model, const Options& options, TypeNotes* notes) {
  const ModelConfig& config = model.config;
  FileSpec out;
  out.header = header_of(model);
  QSF_TRY(check_sizes(out.header, ErrorCode::bad_input));
  QSF_LET(layers, layers_of(model, out.header));
  Frame frame{model, out.header, layers.table.view(), {}};
  for (const LoadedTensor& tensor : model.tensors) frame.names.insert(tensor.name);
  const auto window = std::make_shared<TurnedWindow>();
  QSF_LET(placed, place_all(frame, window));
  const std::pair head{out.header.n_layers + 1, Role::head};
  const bool tied = frame.table.model.headless == 0 && config.tied.value_or(!placed.contains(head));
  if (tied) placed.erase(head);
  if (!model.file) QSF_TRY(check_complete(frame, placed, tied));
  QSF_TRY(check_ends(config));

  out.header.flags = tied ? kFlagTied : 0;
  out.meta = metadata_of(model, layers.usual);
  out.rope_divisors = config.rope_divisors;
  out.compression = options.compression;
  out.segment_bytes = options.segment_bytes;
  out.least_saved = options.least_saved;
  out.importance = options.importance;
  if (model.file && out.importance.empty()) out.importance = model.file->importance;
  const auto costs = std::make_shared<Costs>(options.calibration);
  const auto rooms = std::make_shared<RowRooms>();
  for (const auto& [key, piece] : placed) {
    const auto& [stage, role] = key;
    const LayerKind& kind = frame.kind(stage);
    const RoleRule& rule = rule_of(role);
    const std::uint32_t all_rows = extent(out.header, kind, rule.rows), cols = extent(out.header, kind, rule.cols);
    std::shared_ptr<const LoadedTensor> tensor = piece.tensor;
    if (!piece.part.whole()) {
      QSF_LET(range, rows_of_part(*tensor, piece.part, out.header, kind));
      tensor = std::make_shared<const LoadedTensor>(part_of(*tensor, piece.part, range, window));
    }
    const auto shape = matrix_shape(tensor->shape);
    if (!shape || !fits_rows(role, (*shape)[0], all_rows) || (*shape)[1] != cols) {
      const std::string text = list_of<std::uint64_t>(piece.tensor->shape);
      return make_error(ErrorCode::bad_input, "tensor {:.100} is [{:.40}], but the model's sizes say [{}, {}]",
                        tensor->name, text, all_rows, cols);
    }
    const std::uint32_t rows = (*shape)[0];
    TensorSpec target;
    target.stage = stage;
    target.role = role;
    const auto own = options.types.find(key);
    const FormatId wanted = own != options.types.end() ? own->second : wanted_format(model, options, *tensor, role);
    QSF_LET(format, target_format(options, *tensor, wanted, role, cols));
    target.format = format;
    if (notes != nullptr && rule.matrix && !is_router(role)) notes->add(*piece.tensor, wanted, format, rows, cols);
    // The rows of a tile belong to one expert.
    const bool tiles = expert_share(out.header, kind, rule) % kTileRows == 0;
    target.layout =
        rule.matrix && tiles && !options.gguf && find_format(target.format)->quantized() ? Layout::tiles : Layout::rows;
    target.rows = rows;
    target.cols = cols;
    const bool turns = model.interleaved_rope && kind.rope_dims != 0;
    const RotatedHeads heads{turns ? rotated_heads(role, kind) : 0, kind.rope_dims};
    RowWork work{{}, options.workers, rooms};
    if (options.search) {
      work.cost_of = [costs, stage = key.first, role = key.second, cols] { return costs->of(stage, role, cols); };
    }
    // The functions share the tensors that they read.
    struct Kept {
      std::shared_ptr<const LoadedTensor> whole, part;
      ConvertedRows rows;
    };
    const auto kept = std::make_shared<const Kept>(
        Kept{piece.tensor, tensor, rows_as(*tensor, target.format, rows, cols, heads, work)});
    target.rows_of = [kept](std::uint32_t begin, std::uint32_t n, std::span<std::byte> bytes) {
      return kept->rows.rows_of(begin, n, bytes);
    };
    target.runs_of = [kept](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& runs) {
      return kept->rows.rows_of.runs(begin, n, runs);
    };
    target.check = [kept](std::uint32_t begin, std::uint32_t n, std::span<const std::byte> bytes) {
      return kept->rows.check(begin, n, bytes);
    };
    target.heads = kept->rows.heads;
    if (role == Role::final_norm && target.format == FormatId::f32) out.header.flags |= kFlagFinalNormF32;
    out.tensors.push_back(std::move(target));
  }
  const LayerTableBuilder& table = layers.table;
  if (table.kinds.size() > 1 || table.kinds.front() != layers.usual || table.model != ModelKind{}) {
    out.layers = std::move(layers.table);
  }
  if (model.file) out.tokenizer = model.file->tokenizer;
  if (model.tokenizer && (out.tokenizer.empty() || options.gguf)) {
    Result<std::vector<std::byte>> section = build_tokenizer(*model.tokenizer);
    if (!section) return section.error();
    if (!out.tokenizer.empty() && out.tokenizer != *section) {
      return make_error(ErrorCode::unsupported,
                        "the file's tokenizer cannot be written to another kind of file: name the original one");
    }
    out.tokenizer = std::move(*section);
  }
  return out;
}

}  // namespace qsf::convert
