// A model as data: sizes and flags. No architecture is named here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "qsf/base/result.h"
#include "qsf/file/layout.h"

namespace qsf {

struct Config {
  std::uint32_t n_layers = 0;
  std::uint32_t dim = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;  // divides n_heads
  std::uint32_t head_dim = 0;    // even
  std::uint32_t ffn_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_seq_len = 0;
  std::uint32_t window = 0;  // positions that a token sees, itself included; 0: all
  std::uint32_t bos = kNoToken;
  std::array<std::uint32_t, 8> ends{};  // tokens that end a text
  std::uint32_t n_ends = 0;
  float norm_epsilon = 0;
  float rope_theta = 0;
  bool tied = false;  // the output head is the embedding

  bool is_end(std::uint32_t token) const {
    return std::find(ends.begin(), ends.begin() + n_ends, token) != ends.begin() + n_ends;
  }
  std::uint32_t q_dim() const { return n_heads * head_dim; }
  std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

/// From the header and the META section; unsupported for what the engine cannot run.
Result<Config> read_config(const Header& header, std::span<const std::byte> meta);

}  // namespace qsf
