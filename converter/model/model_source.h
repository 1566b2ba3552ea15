// A loaded model of any file type: sizes, tensors under their own names, a tokenizer.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "converter/files/input.h"
#include "converter/files/local_files.h"
#include "converter/recipes/recipes.h"
#include "qsf/base/result.h"
#include "qsf/file/file_plan.h"
#include "qsf/file/layout.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::convert {

struct ModelConfig {
  std::string name;  // for people
  std::uint32_t n_layers = 0;
  std::uint32_t n_guessing = 0;             // layers after these that guess further tokens
  bool guess_layer = false;                 // the first of those is kept
  std::optional<std::uint32_t> guess_like;  // the layer of the text that it is like, if not the last one that attends
  std::uint32_t dim = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t ffn_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_seq_len = 0;
  float norm_epsilon = 0;
  float rope_theta = 0;
  std::uint32_t window = 0;  // 0: attention sees all positions
  std::uint32_t bos = kNoToken, eos = kNoToken, pad = kNoToken;
  std::vector<std::uint32_t> all_eos;      // all ids that end a text, if the source names several
  std::optional<bool> tied;                // empty: tied if there is no tensor for the head
  std::optional<std::uint32_t> rope_dims;  // number of values of a head that RoPE rotates; empty: all
  float rope_scale = 1;                    // factor of RoPE's cosines and sines
  double score_factor = 1;                 // factor of scores, for recipes with yarn_scores
  std::vector<float> rope_divisors;        // [rope_dims / 2] divisors of RoPE's inverse frequencies; empty: ones
  Activation activation = Activation::silu;

  /// Returns the number of layers, with the one that guesses.
  std::uint32_t all_layers() const { return n_layers + (guess_layer ? 1 : 0); }
};

/// A way to read rows, and the runs of bytes that it reads, if they are known.
class RowsOf {
 public:
  /// Reads the row-major bytes of rows [begin, begin + n) into `out`, which has exactly their size.
  using Read = std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out)>;
  /// Appends the runs that Read reads for these rows, and returns their relation to the rows.
  using Runs = std::function<RowsFrom(std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& runs)>;

  RowsOf() = default;
  RowsOf(std::nullptr_t) {}
  /// Makes rows that may come from anywhere.
  template <class F>
    requires(!std::same_as<F, RowsOf> &&
             std::is_invocable_r_v<Status, F&, std::uint32_t, std::uint32_t, std::span<std::byte>>)
  RowsOf(F read) : read_(std::move(read)) {}
  RowsOf(Read read, Runs runs) : read_(std::move(read)), runs_(std::move(runs)) {}

  explicit operator bool() const { return static_cast<bool>(read_); }
  Status operator()(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) const {
    return read_(begin, n, out);
  }
  RowsFrom runs(std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& out) const {
    return runs_ ? runs_(begin, n, out) : RowsFrom::anywhere;
  }

 private:
  Read read_;
  Runs runs_;
};

/// Returns the relation of rows some of which have the relation `a` and the others `b`.
constexpr RowsFrom weaker(RowsFrom a, RowsFrom b) { return a < b ? a : b; }
/// Returns the runs of `rows` for rows that are computed from them one by one.
RowsOf::Runs same_runs(RowsOf rows);

struct LoadedTensor {
  std::string name;
  std::string type;                     // in the source's words: "BF16", "Q8_0"
  FormatId format = FormatId::inherit;  // inherit: the type cannot be read
  std::vector<std::uint64_t> shape;     // outermost first
  RowsOf rows_of;                       // in `format`; a vector is one row
  RowsOf stored_rows = {};              // for a decoded type, the rows in their stored form
  bool turned = false;                  // the rows are already in the order that a recipe calls "transposed"
};

/// The contents of a .qsf file except its weights.
struct FileContents {
  Header header;
  LayerTableBuilder layers;  // with a kind for every layer
  std::vector<MetaEntry> meta;
  std::vector<std::byte> tokenizer;                    // the TOKN section; empty: none, or another one is used
  std::vector<float> importance;                       // as in FileSpec
  std::vector<std::pair<std::uint32_t, Role>> places;  // stage and role of each of LoadedModel::tensors
};

struct LoadedModel {
  std::string kind;  // "safetensors", "GGUF", "llama2.c"
  std::shared_ptr<const Recipe> recipe;
  Naming naming = Naming::hugging_face;
  ModelConfig config;
  LayerRules layers;                      // the recipe's rules, resolved with the source's configuration
  std::map<std::string, double> factors;  // of the recipe's tensors, by keys of the configuration
  std::vector<LoadedTensor> tensors;
  bool interleaved_rope = false;  // rows of q and k are stored for RoPE over neighbouring pairs
  bool carry_formats = false;     // every matrix keeps its format by default
  std::optional<TokenizerSource> tokenizer;
  std::vector<std::pair<std::string, std::string>> chat;  // keys and texts of the metadata; see chat_template.h
  std::vector<std::string> warnings;
  std::shared_ptr<const FileContents> file;  // of a .qsf file, which needs no recipe to become one; null for others
  std::shared_ptr<LocalFiles> files;         // all files that were read; null if the model does not come from files
};

/// Returns rows of `row_size` bytes from `size` bytes of an input from `begin` on.
RowsOf rows_in(const Input& input, std::uint64_t begin, std::uint64_t size, std::uint64_t row_size);

/// i2_s, which stores ternary weights with any float scale.
inline constexpr FormatId kScaledTernary = own_type(21);

/// Returns rows in `format`, made from the `cols` weights that weights_of(row, weights) computes. Errors use `name`;
/// check_finite's is one of them. `runs` are the runs that weights_of reads, if they are known.
RowsOf rows_made(FormatId format, std::uint32_t cols, std::string name,
                 std::function<Status(std::uint32_t row, std::span<float> weights)> weights_of, RowsOf::Runs runs = {});

/// Returns bad_input, with tensor, row and column, if a weight is not finite.
Status check_finite(std::string_view name, std::uint32_t row, std::span<const float> weights);
/// Returns the error for n rows that do not have `size` bytes.
Error wrong_size(std::string_view name, std::uint32_t n, std::size_t size);
/// Returns the error for weights that are not -1, 0 or 1 times a scale.
Error not_ternary(std::string_view name, std::uint32_t row);

/// Returns extents as [rows, cols]; a vector is one row. Empty unless there are one or two extents that fit.
std::optional<std::array<std::uint32_t, 2>> matrix_shape(std::span<const std::uint64_t> shape);

}  // namespace qsf::convert
