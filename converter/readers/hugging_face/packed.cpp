#include "converter/readers/hugging_face/packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "converter/tensors/scaled.h"
#include "qsf/base/bytes.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr FormatId kMicroscaling = ggml_type(39);
constexpr std::string_view kBlocks = "_blocks", kScales = "_scales", kWeight = ".weight", kScale = "_scale";
constexpr std::string_view kWeightScale = ".weight_scale";
constexpr std::uint32_t kPacked = 4;  // BitNet's codes in a byte

/// The contents of "quantization_config"; empty texts if there is none.
struct Packing {
  std::string method;
  std::string mode;    // BitNet's: offline or online
  std::string linear;  // bitlinear or autobitlinear: the use of the stored scale
  std::string type;    // of other methods: NVFP4
};

/// A method that stores weights as NVFP4, and the key that says so.
struct Nvfp4Method {
  std::string_view method, key, value;
};
constexpr std::array kNvfp4Methods{Nvfp4Method{"modelopt", "quant_algo", "NVFP4"},
                                   Nvfp4Method{"compressed-tensors", "format", "nvfp4-pack-quantized"}};

/// A way to name the parts of a matrix of NVFP4: codes, scales of 16 weights, and the scale of the matrix.
struct Nvfp4Names {
  std::string_view codes, matrix_scale;
  bool divides;  // the scale of the matrix is a divisor
};
constexpr std::array kNvfp4Names{Nvfp4Names{".weight", ".weight_scale_2", false},
                                 Nvfp4Names{".weight_packed", ".weight_global_scale", true}};
/// Endings of scales that only say how a device rounds activations, keys and values.
constexpr std::array<std::string_view, 4> kScalesOfInputs{".input_scale", ".input_global_scale", ".k_scale",
                                                          ".v_scale"};

Result<Packing> packing_of(const Json& config) {
  const Json* quantization = find(config, "quantization_config");
  if (!quantization) return Packing{};
  Fields fields(*quantization, "config.json");
  Packing out{fields.text("quant_method", "?"),
              fields.text("quantization_mode", "offline"),
              fields.text("linear_class", "bitlinear"),
              {}};
  for (const Nvfp4Method& method : kNvfp4Methods) {
    if (out.method == method.method) out.type = fields.text(method.key, "?");
  }
  QSF_TRY(fields.status());
  return out;
}

using Names = std::map<std::string, std::size_t, std::less<>>;  // indices in LoadedModel::tensors

Error do_not_fit(const LoadedTensor& tensor, const LoadedTensor& scales) {
  return make_error(ErrorCode::bad_input,
                    "tensors {:.100} and {:.100} do not fit each other: one has {} and the other {} dimensions of {}",
                    tensor.name, scales.name, tensor.shape.size(), scales.shape.size(), scales.type);
}

/// Neighbouring codes share a byte in a checkpoint; in a block, codes i and i + `half` of 2 `half` do.
void part_neighbours(const std::byte* pairs, std::size_t half, std::byte* to) {
  const auto code = [&](std::size_t i) { return std::to_integer<unsigned>(pairs[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15; };
  for (std::size_t i = 0; i < half; ++i) to[i] = static_cast<std::byte>(code(i) | code(i + half) << 4);
}

/// Blocks of codes after their scales, as in GGML.
struct MicroscalingRows {
  RowsOf codes, scales;  // [groups, 16] and [groups] of a row
  std::uint32_t groups;

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    const Format& format = *find_format(kMicroscaling);
    constexpr std::size_t kCodes = 16;
    if (out.size() != std::size_t{rows} * groups * format.block_bytes) {
      return make_error(ErrorCode::internal, "{} rows of {} blocks were asked of {} bytes", rows, groups, out.size());
    }
    std::vector<std::byte> code_bytes(std::size_t{groups} * kCodes), scale_bytes(groups);
    std::byte* to = out.data();
    for (std::uint32_t r = first; r < first + rows; ++r) {
      QSF_TRY(codes(r * groups, groups, code_bytes));
      QSF_TRY(scales(r, 1, scale_bytes));
      for (std::uint32_t g = 0; g < groups; ++g, to += format.block_bytes) {
        to[0] = scale_bytes[g];
        part_neighbours(&code_bytes[g * kCodes], kCodes, to + 1);
      }
    }
    return {};
  }
};

Status join_microscaling(const LoadedTensor& scales, LoadedTensor& blocks) {
  constexpr std::uint64_t kMostRows = 0xffffffffu;
  const bool fit = blocks.type == "U8" && scales.type == "U8" && blocks.stored_rows && scales.stored_rows &&
                   blocks.shape.size() >= 3 && blocks.shape.back() == 16 &&
                   std::equal(scales.shape.begin(), scales.shape.end(), blocks.shape.begin(), blocks.shape.end() - 1);
  std::uint64_t rows = 1;
  for (std::size_t d = 0; fit && d < scales.shape.size(); ++d) {
    rows = rows > kMostRows ? rows : rows * std::min(scales.shape[d], kMostRows + 1);
  }
  if (!fit || rows > kMostRows || scales.shape.back() > kMostRows / 32) return do_not_fit(blocks, scales);
  const auto groups = static_cast<std::uint32_t>(scales.shape.back());
  blocks.rows_of = MicroscalingRows{blocks.stored_rows, scales.stored_rows, groups};
  blocks.name.erase(blocks.name.size() - kBlocks.size());
  blocks.type = "MXFP4";
  blocks.format = kMicroscaling;
  blocks.shape = scales.shape;
  blocks.shape.back() *= 32;
  blocks.stored_rows = nullptr;
  blocks.turned = true;
  return {};
}

/// Blocks of four scales and their codes, as in GGML. A last block with fewer is filled up with zeros.
struct Nvfp4Rows {
  RowsOf codes, scales;  // [rows, 8 groups] and [rows, groups]
  std::uint32_t groups;
  std::string name;

  Status operator()(std::uint32_t first, std::uint32_t rows, std::span<std::byte> out) const {
    constexpr std::size_t kCodes = 8, kGroups = 4;
    const Format& format = *find_format(kNvfp4);
    std::vector<std::byte> code_bytes(std::size_t{groups} * kCodes), scale_bytes(groups);
    const std::size_t size = row_bytes(format, std::uint64_t{groups} * 2 * kCodes);
    if (out.size() != rows * size) return wrong_size(name, rows, out.size());
    std::ranges::fill(out, std::byte{0});
    for (std::uint32_t r = 0; r < rows; ++r) {
      QSF_TRY(codes(first + r, 1, code_bytes));
      QSF_TRY(scales(first + r, 1, scale_bytes));
      for (std::size_t g = 0; g < groups; ++g) {
        std::byte* const block = &out[r * size + g / kGroups * format.block_bytes];
        if (scale_bytes[g] >= std::byte{0x7f}) {
          return make_error(ErrorCode::bad_input, "tensor {:.100} has a scale that is no positive number in row {}",
                            name, first + r);
        }
        block[g % kGroups] = scale_bytes[g];
        part_neighbours(&code_bytes[g * kCodes], kCodes, block + kGroups + g % kGroups * kCodes);
      }
    }
    return {};
  }
};

/// Reads the scale of a whole matrix. Returns do_not_fit unless it is one number, bad_input if it is not finite.
Result<float> read_matrix_scale(const LoadedTensor& matrix, const LoadedTensor& scale, bool divides) {
  const Format* format = find_format(scale.format);
  const auto one = matrix_shape(scale.shape);
  const bool scalar = scale.shape.empty() || (one && (*one)[0] * (*one)[1] == 1);
  if (!scalar || !format || format->quantized()) return do_not_fit(matrix, scale);
  std::vector<std::byte> bytes(format->block_bytes);
  QSF_TRY(scale.rows_of(0, 1, bytes));
  float value = 0;
  dequantize_row(*format, bytes, std::span(&value, 1));
  if (divides) value = 1.0f / value;
  if (std::isfinite(value)) return value;
  return make_error(ErrorCode::bad_input, "tensor {:.100} is {}, which is no scale", scale.name, value);
}

Status join_nvfp4(const Nvfp4Names& names, const LoadedTensor& scales, const LoadedTensor& whole,
                  LoadedTensor& weight) {
  const std::vector<std::uint64_t>& shape = weight.shape;
  const bool fit = weight.type == "U8" && weight.stored_rows && matrix_shape(shape) && shape.size() == 2 &&
                   shape[1] % 8 == 0 && shape[1] < 1u << 31 && scales.type == "F8_E4M3" && scales.stored_rows &&
                   scales.shape == std::vector{shape[0], shape[1] / 8};
  if (!fit) return do_not_fit(weight, scales);
  QSF_LET(factor, read_matrix_scale(weight, whole, names.divides));
  const auto runs = [codes = weight.stored_rows, of = scales.stored_rows](std::uint32_t begin, std::uint32_t n,
                                                                          std::vector<InputRun>& out) {
    const RowsFrom from = codes.runs(begin, n, out);
    return weaker(weaker(from, of.runs(begin, n, out)), RowsFrom::runs);
  };
  const auto groups = static_cast<std::uint32_t>(shape[1] / 8);
  weight.rows_of = {Nvfp4Rows{weight.stored_rows, scales.stored_rows, groups, scales.name}, runs};
  weight.name.replace(weight.name.size() - names.codes.size(), names.codes.size(), kWeight);
  weight.type = "NVFP4";
  weight.shape[1] *= 2;
  scale_nvfp4(weight, {factor}, shape[0]);
  return {};
}

/// Weights that are zero, or plus or minus a scale.
struct TernaryWeights {
  RowsOf codes;          // [rows / 4, cols]: row p has rows p, p + rows / 4 ..., from the low bits up
  std::uint32_t packed;  // rows / 4
  float scale;
  std::string name;

  Status operator()(std::uint32_t row, std::span<float> weights) const {
    std::vector<std::byte> bytes(weights.size());
    QSF_TRY(codes(row % packed, 1, bytes));
    for (std::size_t c = 0; c < weights.size(); ++c) {
      const unsigned code = std::to_integer<unsigned>(bytes[c]) >> (2 * (row / packed)) & 3;
      if (code == 3) return not_ternary(name, row);
      weights[c] = static_cast<float>(static_cast<int>(code) - 1) * scale;
    }
    return {};
  }
};

Status join_ternary(const Packing& packing, const LoadedTensor& scales, LoadedTensor& weight) {
  const auto shape = matrix_shape(weight.shape);
  const bool fit = weight.type == "U8" && weight.stored_rows && weight.shape.size() == 2 && shape &&
                   (*shape)[0] <= 0xffffffffu / kPacked;
  if (!fit) return do_not_fit(weight, scales);
  QSF_LET(scale, read_matrix_scale(weight, scales, packing.linear == "bitlinear"));
  weight.rows_of = rows_made(kScaledTernary, (*shape)[1], weight.name,
                             TernaryWeights{weight.stored_rows, (*shape)[0], scale, weight.name});
  weight.type = "ternary";
  weight.format = kScaledTernary;
  weight.shape = {std::uint64_t{(*shape)[0]} * kPacked, (*shape)[1]};
  weight.stored_rows = nullptr;
  return {};
}

/// Float weights, rounded as transformers rounds them when it computes: to -1, 0 and 1 times the matrix's mean
/// magnitude.
struct RoundedWeights {
  RowsOf source;
  FormatId stored;
  std::uint32_t rows;
  std::string name;
  std::shared_ptr<float> mean = std::make_shared<float>(-1.0f);  // of the magnitudes, after the first row was read

  Status read(std::uint32_t row, std::span<float> weights) const {
    const Format& format = *find_format(stored);
    std::vector<std::byte> bytes(row_bytes(format, static_cast<std::uint32_t>(weights.size())));
    QSF_TRY(source(row, 1, bytes));
    dequantize_row(format, bytes, weights);
    return check_finite(name, row, weights);
  }

  Status operator()(std::uint32_t row, std::span<float> weights) const {
    constexpr float kLeastMean = 1e-5f;
    if (*mean < 0) {
      double sum = 0;
      for (std::uint32_t r = 0; r < rows; ++r) {
        QSF_TRY(read(r, weights));
        for (const float w : weights) sum += std::fabs(static_cast<double>(w));
      }
      *mean = std::max(static_cast<float>(sum / (static_cast<double>(rows) * static_cast<double>(weights.size()))),
                       kLeastMean);
    }
    const float scale = 1.0f / *mean, value = 1.0f / scale;
    QSF_TRY(read(row, weights));
    for (float& w : weights) {
      const float code = std::nearbyint(w * scale);
      w = code > 0 ? value : code < 0 ? -value : 0.0f;
    }
    return {};
  }
};

void round_online(LoadedModel& out) {
  for (LoadedTensor& tensor : out.tensors) {
    const auto shape = matrix_shape(tensor.shape);
    const Format* format = find_format(tensor.format);
    if (tensor.shape.size() != 2 || !shape || !format || format->quantized() ||
        tensor.name.find(".layers.") == std::string::npos) {
      continue;
    }
    tensor.rows_of = rows_made(kScaledTernary, (*shape)[1], tensor.name,
                               RoundedWeights{std::move(tensor.rows_of), tensor.format, (*shape)[0], tensor.name});
    tensor.format = kScaledTernary;
  }
}

}  // namespace

Status check_packing(const Json& config) {
  QSF_LET(packing, packing_of(config));
  if (packing.method.empty() || packing.method == "mxfp4") return {};
  for (const Nvfp4Method& method : kNvfp4Methods) {
    if (packing.method != method.method || packing.type == method.value) continue;
    return make_error(ErrorCode::unsupported,
                      "config.json: of models quantized with \"{:.60}\" those whose \"{}\" is \"{}\" are supported, "
                      "not \"{:.60}\"",
                      packing.method, method.key, method.value, packing.type);
  }
  if (!packing.type.empty()) return {};
  const bool bitnet = packing.method == "bitnet";
  if (bitnet && packing.mode != "offline" && packing.mode != "online") {
    return make_error(ErrorCode::unsupported, "config.json: the \"quantization_mode\" \"{:.60}\" is not supported",
                      packing.mode);
  }
  if (bitnet && packing.linear != "bitlinear" && packing.linear != "autobitlinear") {
    return make_error(ErrorCode::unsupported, "config.json: the \"linear_class\" \"{:.60}\" is not supported",
                      packing.linear);
  }
  if (bitnet) return {};
  return make_error(ErrorCode::unsupported, "config.json: a model quantized with \"{:.60}\" is not supported",
                    packing.method);
}

Status join_packed(const Json& config, LoadedModel& out) {
  QSF_LET(packing, packing_of(config));
  Names names;
  for (std::size_t i = 0; i < out.tensors.size(); ++i) names.emplace(out.tensors[i].name, i);
  std::vector<std::size_t> joined;  // scales that belong to another tensor now
  bool nvfp4 = false;
  for (LoadedTensor& tensor : out.tensors) {
    const std::string_view name = tensor.name;
    const auto part = [&](const Nvfp4Names& form, std::string_view ending) {
      const std::string_view stem = name.substr(0, name.size() - form.codes.size());
      return name.ends_with(form.codes) ? names.find(std::string(stem).append(ending)) : names.end();
    };
    const auto* const form = std::ranges::find_if(kNvfp4Names, [&](const Nvfp4Names& each) {
      return part(each, kWeightScale) != names.end() && part(each, each.matrix_scale) != names.end();
    });
    if (form != kNvfp4Names.end()) {
      const std::size_t scales = part(*form, kWeightScale)->second, whole = part(*form, form->matrix_scale)->second;
      QSF_TRY(join_nvfp4(*form, out.tensors[scales], out.tensors[whole], tensor));
      joined.insert(joined.end(), {scales, whole});
      nvfp4 = true;
      continue;
    }
    const bool blocks = name.ends_with(kBlocks), weight = name.ends_with(kWeight);
    if (!blocks && !weight) continue;
    std::string other(name);
    if (blocks) other.replace(other.size() - kBlocks.size(), kBlocks.size(), kScales);
    if (weight) other += kScale;
    const auto scales = names.find(other);
    if (scales == names.end()) continue;
    QSF_TRY(blocks ? join_microscaling(out.tensors[scales->second], tensor)
                   : join_ternary(packing, out.tensors[scales->second], tensor));
    joined.push_back(scales->second);
  }
  heap_sort(joined, std::ranges::greater());
  for (const std::size_t at : joined) out.tensors.erase(out.tensors.begin() + static_cast<std::ptrdiff_t>(at));
  std::erase_if(out.tensors, [&](const LoadedTensor& tensor) {
    return nvfp4 && std::ranges::any_of(kScalesOfInputs, [&](auto end) { return tensor.name.ends_with(end); });
  });
  if (packing.method == "bitnet" && packing.mode == "online") round_online(out);
  return {};
}

}  // namespace qsf::convert
