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

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

enum class GgufType : std::uint32_t { u8 = 0, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

/// A value as it lies in the file.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // of an array
  std::uint64_t count = 1;
  std::span<const std::byte> bytes;  // a text: its characters; an array of texts: lengths and characters
};

struct Gguf {
  std::vector<std::byte> front;  // the file up to the tensors' bytes; values point into it
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<SourceTensor> tensors;

  /// Empty when the key is missing or holds another kind of value.
  std::optional<std::uint32_t> u32(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// Lists of at most kMaxVocab elements.
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
};

/// By the first bytes of a file.
bool is_gguf(std::span<const std::byte> head);
/// bad_version, bad_input or truncated for damage; tensors of types that cannot be read are listed with
/// FormatId::inherit. `ternary`: how I2_S tensors lie.
Result<Gguf> read_gguf(const Input& file, TernaryLayout ternary = TernaryLayout::automatic);

/// Adds the tensors of the other parts where `gguf`, read from the place's file, is one of several: files of the same
/// name up to -00001-of-00003.gguf, with keys split.*. The keys become those of the first. io_error when a part is
/// missing, unsupported when the name has no such ending, bad_input when parts do not belong together.
Status join_gguf_parts(const ModelPlace& place, Gguf& gguf);

/// Multiplies tensors with the one number that a tensor of the same name, but for .scale instead of .weight, has: those
/// are then no more. Ternary ones become i2_s, others f32. bad_input when a number is not finite.
Status fold_gguf_scales(std::vector<SourceTensor>& tensors);

/// Empty when the file has no tokenizer.
Result<std::optional<TokenizerSource>> read_gguf_tokenizer(const Gguf& gguf);

bool is_gguf_file(const ModelPlace& place);
Result<ModelSource> open_gguf(const ModelPlace& place, bool with_tokenizer);

}  // namespace qsf::convert
