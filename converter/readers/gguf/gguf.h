// GGUF versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): typed keys and values, a list of
// tensors, their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// A value as the file stores it.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // of an array's elements
  std::uint64_t count = 1;
  std::span<const std::byte> bytes;  // of a text: its characters; of an array of texts: lengths and characters
};

struct Gguf {
  std::vector<std::byte> front;  // the file up to the tensors' bytes; values point into it
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<LoadedTensor> tensors;

  /// Empty if the key is missing or has another kind of value.
  std::optional<std::uint32_t> u32(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// The same for lists of at most kMaxVocab elements.
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
};

/// Returns whether a file starts with GGUF's magic number.
bool is_gguf(std::span<const std::byte> head);
/// Reads keys and tensors. Lists tensors of types that cannot be read with FormatId::inherit. `ternary` is the layout
/// of I2_S tensors. Returns bad_version, bad_input or truncated for damage.
Result<Gguf> read_gguf(const Input& file, TernaryLayout ternary = TernaryLayout::automatic);

/// Adds the tensors of the other parts if `gguf`, read from the place's file, is one of several, whose names differ in
/// their ending -00001-of-00003.gguf and which have keys split.*. The keys become those of the first part. Returns
/// io_error if a part is missing, unsupported if the name does not have this ending, bad_input if parts do not belong
/// together.
Status join_gguf_parts(const ModelLocation& place, Gguf& gguf);

/// Multiplies each tensor by its scale: a tensor of one number, or of one for each expert, whose name has .scale in
/// place of .weight, unless the recipe has a tensor of this name. Removes the scales, and those of inputs
/// (.input_scale). Ternary tensors become i2_s, those of NVFP4 nvfp4_f32, others f32. Returns bad_input if a number is
/// not finite.
Status fold_gguf_scales(std::vector<LoadedTensor>& tensors, const Recipe& recipe);

/// Adds a tensor of one number for each layer that a list such as xielu.alpha_p has: blk.0.xielu.alpha_p. Returns
/// bad_input if it is no list of finite numbers.
Status add_gguf_lists(Gguf& gguf);

/// Empty if the file has no tokenizer.
Result<std::optional<TokenizerSource>> read_gguf_tokenizer(const Gguf& gguf);

bool is_gguf_file(const ModelLocation& place);
Result<LoadedModel> open_gguf(const ModelLocation& place, bool with_tokenizer);

}  // namespace qsf::convert
