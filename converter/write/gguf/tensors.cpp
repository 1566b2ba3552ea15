#include "converter/write/gguf/tensors.h"

#include <algorithm>
#include <map>

#include "converter/tensors/parts.h"
#include "converter/types/written_type.h"
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

}  // namespace

Status GgufTensor::read_rows(std::size_t part, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) const {
  const auto& [tensor, heads] = parts[part];
  const std::uint64_t size = row_bytes(format_of(format), cols);
  if (heads.dim == 0) return tensor->rows_of(begin, n, out);
  if (rule_of(tensor->role).matrix) {
    for (std::uint32_t i = 0; i < n; ++i) {
      QSF_TRY(tensor->rows_of(file_row(begin + i, heads), 1, out.subspan(i * size, size)));
    }
    return {};
  }
  std::vector<std::byte> row(size);  // of floats
  QSF_TRY(tensor->rows_of(begin, 1, row));
  const std::size_t width = find_format(format)->block_bytes;
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
