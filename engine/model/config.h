// A model as data: sizes, kinds of layers and tokens. No architecture is named here.
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
  std::uint32_t n_layers = 0;
  std::uint32_t dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_seq_len = 0;
  std::uint32_t bos = kNoToken;
  std::array<std::uint32_t, kMaxEndTokens> ends{};  // tokens that end a text
  std::uint32_t n_ends = 0;
  bool tied = false;  // the output head is the embedding
  LayerTable table;
  std::span<const float> rope_divisors;  // [dims / 2], twice with long_rope_from; or empty

  bool is_end(std::uint32_t token) const {
    return std::find(ends.begin(), ends.begin() + n_ends, token) != ends.begin() + n_ends;
  }
};

/// From the header, the META section and what was read of the LAYR and ROPE sections; unsupported for what the engine
/// cannot run.
Result<Config> read_config(const Header& header, std::span<const std::byte> meta, const LayerTable& table,
                           std::span<const float> rope_divisors);

}  // namespace qsf
