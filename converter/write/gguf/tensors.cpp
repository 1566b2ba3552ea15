#include "converter/write/gguf/tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "converter/tensors/parts.h"
#include "converter/tensors/scaled.h"
#include "converter/types/written_type.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Returns the row (or vector element) in the file of GGUF's row `r`. The file stores the halves of RoPE's pairs apart.
std::uint32_t file_row(std::uint32_t r, RotatedHeads heads) {
  if (heads.dim == 0) return r;
  const std::uint32_t within = r % heads.dim;
  if (within >= heads.rotated) return r;
  return r - within + within % 2 * (heads.rotated / 2) + within / 2;
}

/// Returns the recipe's line that names the role in GGUF and takes all of one tensor, or rows of it.
const TensorName* line_of(const Recipe& recipe, Role role) {
  for (const TensorName& line : recipe.tensors) {
    const std::string& name = line.names.gguf;
    if (line.role == role && !name.empty() && name.find(kExpertMark) == std::string::npos) return &line;
  }
  return nullptr;
}

std::vector<std::uint64_t> shape_of(const TensorSpec& tensor, const LayerKind& kind) {
  const RoleRule& rule = rule_of(tensor.role);
  const std::uint64_t n = of_experts(rule) ? kind.n_experts : 1;
  std::vector<std::uint64_t> shape;
  if (n > 1) shape.push_back(n);
  if (rule.matrix) shape.push_back(tensor.rows / n);
  shape.push_back(rule.matrix ? tensor.cols : tensor.cols / n);
  return shape;
}

struct Taken {
  const TensorSpec* tensor;
  RowRange range;
};

Error cannot(const Recipe& recipe, Role role) {
  return make_error(ErrorCode::unsupported, "the recipe {:.60} reads {} of GGUF in a way that cannot be written",
                    recipe.name, rule_of(role).name);
}

/// The tensors whose scales llama.cpp reads: those of a layer without their beginning "blk.N.".
constexpr std::array kScaledByGguf{
    std::string_view("attn_q"),         std::string_view("attn_k"),         std::string_view("attn_v"),
    std::string_view("attn_output"),    std::string_view("attn_qkv"),       std::string_view("attn_gate"),
    std::string_view("ffn_gate"),       std::string_view("ffn_down"),       std::string_view("ffn_up"),
    std::string_view("ffn_gate_exps"),  std::string_view("ffn_down_exps"),  std::string_view("ffn_up_exps"),
    std::string_view("ffn_gate_shexp"), std::string_view("ffn_down_shexp"), std::string_view("ffn_up_shexp"),
    std::string_view("ssm_in"),         std::string_view("ssm_out"),        std::string_view("ssm_alpha"),
    std::string_view("ssm_beta"),       std::string_view("nextn.eh_proj"),  std::string_view("output"),
};

/// Returns the name of the tensor with the scales of another, or an empty one if llama.cpp reads none.
std::string name_of_scales(std::string_view name) {
  constexpr std::string_view kLayer = "blk.", kWeight = ".weight";
  if (!name.ends_with(kWeight)) return {};
  name.remove_suffix(kWeight.size());
  std::string_view own = name;
  if (own.starts_with(kLayer)) own.remove_prefix(std::min(own.find('.', kLayer.size()), own.size() - 1) + 1);
  if (std::ranges::find(kScaledByGguf, own) == kScaledByGguf.end()) return {};
  return std::string(name) + ".scale";
}

Error other_scale(const std::string& name) {
  return make_error(
      ErrorCode::unsupported,
      "{:.100} is nvfp4_f32 with scales that differ inside of it; GGUF stores one of a matrix, or of each "
      "expert",
      name);
}

/// Takes the scales of a tensor whose parts have them in every block.
Status take_scales(GgufTensor& tensor, std::uint32_t n_experts) {
  tensor.format = kNvfp4;
  tensor.scales_name = name_of_scales(tensor.name);
  if (tensor.scales_name.empty()) {
    return make_error(ErrorCode::unsupported,
                      "{:.100} is nvfp4_f32, and llama.cpp reads no scale of it: it needs another type", tensor.name);
  }
  const Format& format = *find_format(kScaledNvfp4);
  std::vector<std::byte> row(row_bytes(format, tensor.cols));
  for (const GgufTensor::Part& part : tensor.parts) {
    for (std::uint32_t e = 0; e < n_experts; ++e) {
      QSF_TRY(part.tensor->rows_of(e * (part.tensor->rows / n_experts), 1, row));
      const auto scale = load_le<float>(&row[format.scale.at]);
      if (tensor.scales.size() < n_experts) tensor.scales.push_back(scale);
      if (tensor.scales[e] != scale) return other_scale(tensor.name);
    }
  }
  return {};
}

}  // namespace

Status GgufTensor::read_rows(std::size_t part, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) const {
  if (scales.empty()) return read_stored(part, format, begin, n, out);
  const Format &from = *find_format(kScaledNvfp4), &to = *find_format(format);
  const std::size_t blocks = cols / to.block;
  const std::uint32_t rows_each = rows / static_cast<std::uint32_t>(scales.size());  // one part, or one scale
  std::vector<std::byte> stored(n * blocks * from.block_bytes);
  QSF_TRY(read_stored(part, from.id, begin, n, stored));
  for (std::size_t b = 0; b < n * blocks; ++b) {
    const std::byte* const block = &stored[b * from.block_bytes];
    const float scale = scales.size() == 1 ? scales[0] : scales[(begin + b / blocks) / rows_each];
    if (load_le<float>(block + from.scale.at) != scale) return other_scale(name);
    std::copy_n(block + from.sub.at, to.block_bytes, &out[b * to.block_bytes]);
  }
  return {};
}

Status GgufTensor::read_stored(std::size_t part, FormatId stored, std::uint32_t begin, std::uint32_t n,
                               std::span<std::byte> out) const {
  const auto& [tensor, heads] = parts[part];
  const std::uint64_t size = row_bytes(format_of(stored), cols);
  if (heads.dim == 0) return tensor->rows_of(begin, n, out);
  if (rule_of(tensor->role).matrix) {
    for (std::uint32_t i = 0; i < n; ++i) {
      QSF_TRY(tensor->rows_of(file_row(begin + i, heads), 1, out.subspan(i * size, size)));
    }
    return {};
  }
  std::vector<std::byte> row(size);  // of floats
  QSF_TRY(tensor->rows_of(begin, 1, row));
  const std::size_t width = find_format(stored)->block_bytes;
  for (std::uint32_t c = 0; c < cols; ++c) {
    std::copy_n(&row[std::size_t{file_row(c, heads)} * width], width, &out[std::size_t{c} * width]);
  }
  return {};
}

Result<std::vector<GgufTensor>> gguf_tensors(const Recipe& recipe, const FileSpec& file,
                                             const LayerTableBuilder& layers) {
  std::map<std::string, std::vector<Taken>> by_name;
  std::vector<std::string> names;  // in the file's order
  const LayerTable table = layers.view();
  for (const TensorSpec& tensor : file.tensors) {
    const TensorName* line = line_of(recipe, tensor.role);
    if (line == nullptr) {
      return make_error(ErrorCode::unsupported, "the recipe {:.60} has no name for {} in GGUF", recipe.name,
                        rule_of(tensor.role).name);
    }
    const TensorPart& part = line->part_in(Naming::gguf);
    if (part.transposed || part.plus_one || part.minus_exp || part.flat || part.partial || !part.every.terms.empty()) {
      return cannot(recipe, tensor.role);
    }
    const LayerKind& kind = kind_of_stage(file.header, table, tensor.stage);
    RowRange range{0, rule_of(tensor.role).matrix ? tensor.rows : tensor.cols, 0, 1};
    if (part.rows) {
      range.begin = part.rows->first.value(file.header, kind);
      range.end = part.rows->second.value(file.header, kind);
    }
    const std::uint32_t layer = rule_of(tensor.role).scope == RoleScope::layer ? tensor.stage - 1 : 0;
    const std::string name = of_layer(line->names.gguf, layer);
    if (!by_name.contains(name)) names.push_back(name);
    by_name[name].push_back({&tensor, range});
  }
  std::vector<GgufTensor> out;
  for (const std::string& name : names) {
    std::vector<Taken>& all = by_name[name];
    std::ranges::sort(all, {}, [](const Taken& taken) { return taken.range.begin; });
    GgufTensor tensor;
    tensor.name = name;
    const TensorSpec& first = *all.front().tensor;
    const LayerKind& kind = kind_of_stage(file.header, table, first.stage);
    const bool matrix = rule_of(first.role).matrix;
    tensor.format = first.format;
    tensor.cols = first.cols;
    std::uint64_t covered = 0;
    for (const Taken& taken : all) {
      const TensorSpec& each = *taken.tensor;
      const bool joins = matrix && each.cols == first.cols && !of_experts(rule_of(each.role));
      if (taken.range.begin != covered || (all.size() > 1 && !joins)) return cannot(recipe, each.role);
      covered = taken.range.end;
      if (each.format != first.format) {
        return make_error(ErrorCode::unsupported, "{:.100} is one tensor in GGUF, and its parts are {} and {}", name,
                          format_of(first.format).name, format_of(each.format).name);
      }
      const LayerKind& own = kind_of_stage(file.header, table, each.stage);
      const bool turns = recipe.gguf_interleaved && own.rope_dims != 0;
      tensor.parts.push_back({&each, {turns ? rotated_heads(each.role, own) : 0, own.rope_dims}});
      tensor.rows += each.rows;
    }
    if (tensor.format == kScaledNvfp4)
      QSF_TRY(take_scales(tensor, of_experts(rule_of(first.role)) ? kind.n_experts : 1));
    if (all.size() == 1) {
      tensor.shape = shape_of(first, kind);
    } else {
      tensor.shape = {tensor.rows, tensor.cols};
    }
    out.push_back(std::move(tensor));
  }
  return out;
}

}  // namespace qsf::convert
