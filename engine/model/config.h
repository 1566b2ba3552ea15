// A model as data: sizes, kinds of layers and tokens. It names no architecture.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf {

struct Config {
  std::uint32_t n_layers = 0;     // that compute a text
  std::uint32_t guess_stage = 0;  // of the layer after these that guesses tokens; 0: none does
  std::uint32_t dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_seq_len = 0;
  std::uint32_t bos = kNoToken;
  std::array<std::uint32_t, kMaxEndTokens> ends{};  // tokens that end a text
  std::uint32_t n_ends = 0;
  bool tied = false;  // the output head is the embedding
  LayerTable table;
  std::span<const float> rope_divisors;  // [dims / 2], or [2, dims / 2] with long_rope_from; or empty

  std::uint32_t head_stage() const { return std::max(n_layers, guess_stage) + 1; }
  bool is_end(std::uint32_t token) const {
    return std::find(ends.begin(), ends.begin() + n_ends, token) != ends.begin() + n_ends;
  }
};

/// Returns the model of a header and the META, LAYR and ROPE sections. Fails with bad_section if an end token or the
/// ROPE section is not valid, and with unsupported for too many end tokens.
Result<Config> read_config(const Header& header, std::span<const std::byte> meta, const LayerTable& table,
                           std::span<const float> rope_divisors);

}  // namespace qsf
