// Pre-tokenizers: where a text is cut before byte pairs are merged. Each is a regular expression of a known tokenizer
// written as a scanner; kPretokenizers is the one list of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace qsf {

struct Pretokenizer {
  std::uint32_t id;  // as in the TOKN section
  std::string_view name;
  std::array<std::string_view, 2>
      steps;  // regular expressions, each cutting what the one before has left; may be empty
  /// Where the pre-token that begins at `at` ends; at < text.size(). Always further than `at`.
  std::size_t (*next)(std::string_view text, std::size_t at);
};

std::span<const Pretokenizer> pretokenizers();
/// nullptr when there is none with that id.
const Pretokenizer* find_pretokenizer(std::uint32_t id);

/// Names that GGUF's tokenizer.ggml.pre gives to the pre-tokenizers.
struct PretokenizerName {
  std::string_view name;
  std::uint32_t id;
  bool ignore_merges;
};
std::span<const PretokenizerName> pretokenizer_names();

}  // namespace qsf
