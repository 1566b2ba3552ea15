// A model to convert, whatever file type it came from: sizes, tensors under their own names, a tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converter/input.h"
#include "converter/local_files.h"
#include "converter/recipes.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::convert {

struct ModelConfig {
  std::string name;  // for people
  std::uint32_t n_layers = 0;
  std::uint32_t dim = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t ffn_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_seq_len = 0;
  float norm_epsilon = 0;
  float rope_theta = 0;
  std::uint32_t window = 0;  // 0: attention sees everything
  std::uint32_t bos = kNoToken, eos = kNoToken, pad = kNoToken;
  std::vector<std::uint32_t> all_eos;      // every id that ends a text, where the source names more than one
  std::optional<bool> tied;                // empty: tied when there is no tensor for the head
  std::optional<std::uint32_t> rope_dims;  // values of a head that RoPE rotates; empty: all
  float rope_scale = 1;                    // on its cosines and sines
  std::vector<float> rope_divisors;        // [rope_dims / 2], what its inverse frequencies are divided by; empty: ones
  Activation activation = Activation::silu;
};

/// Row-major bytes of rows [begin, begin + n); out.size() is theirs.
using RowsOf = std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out)>;

struct SourceTensor {
  std::string name;
  std::string type;                     // as the source calls it: "BF16", "Q8_0"
  FormatId format = FormatId::inherit;  // inherit: a type that cannot be read
  std::vector<std::uint64_t> shape;     // outermost first
  RowsOf rows_of;                       // in `format`; a vector is one row
  RowsOf stored_rows = {};              // of a type that is decoded, the rows as they are stored
  bool turned = false;                  // rows already lie where a recipe says "transposed"
};

struct ModelSource {
  std::string kind;  // "safetensors", "GGUF", "llama2.c"
  std::shared_ptr<const Recipe> recipe;
  Naming naming = Naming::hugging_face;
  ModelConfig config;
  LayerRules layers;  // the recipe's, resolved with the source's configuration
  std::vector<SourceTensor> tensors;
  bool interleaved_rope = false;  // rows of q and k are stored for RoPE over neighbouring pairs
  bool carry_formats = false;     // by default every matrix keeps its format
  std::optional<TokenizerSource> tokenizer;
  std::vector<std::pair<std::string, std::string>> chat;  // keys and texts of the metadata: see chat_template.h
  std::vector<std::string> warnings;
  std::shared_ptr<LocalFiles> files;  // every file that was read; none where the model does not come from files
};

/// rows_of over `size` bytes of an input from `begin` on: whole rows of `row_size` bytes.
RowsOf rows_in(const Input& input, std::uint64_t begin, std::uint64_t size, std::uint64_t row_size);

/// i2_s, which holds ternary weights of any float scale.
inline constexpr FormatId kScaledTernary = own_type(21);

/// rows_of of `cols` weights each, which weights_of(row, weights) gives, in `format`; `name` is for errors.
RowsOf rows_made(FormatId format, std::uint32_t cols, std::string name,
                 std::function<Status(std::uint32_t row, std::span<float> weights)> weights_of);

/// Of weights that are none of -1, 0 and 1 times a scale.
Error not_ternary(std::string_view name, std::uint32_t row);

/// The compiled-in recipe of that name; unsupported, listing those that exist, when there is none.
Result<std::shared_ptr<const Recipe>> recipe_for(std::string_view architecture);

/// Extents as [rows, cols] where a vector is one row; empty when they are not one or two numbers that fit.
std::optional<std::array<std::uint32_t, 2>> matrix_shape(std::span<const std::uint64_t> shape);

/// Byte ranges that must not share a byte.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
  std::string_view name;
};
/// Sorts by begin. bad_input, naming `file`, when two overlap.
Status check_no_overlap(std::span<ByteRange> ranges, std::string_view file);

}  // namespace qsf::convert
