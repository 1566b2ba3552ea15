// The transformer as a resumable program: one pass takes a chunk of tokens through all layers and stops wherever a
// segment is not there yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/weights.h"
#include "qsf/base/workers.h"
#include "qsf/model/work.h"
#include "stream/plan.h"
#include "stream/streamer.h"

namespace qsf {

/// The activations of a pass, by name.
enum class Buf : std::uint8_t { x, normed, q, k, v, gate, up, none };
inline constexpr std::size_t kBufs = 7;
inline constexpr std::uint32_t kTogether = 4;  // tokens of a chunk whose attention shares the reading of the cache

class Forward {
 public:
  enum class Advance : std::uint8_t { working, blocked, done };

  /// Bytes per column of a chunk, and per cached position of attention scores.
  static std::uint64_t bytes_per_column(const Config& config);
  static std::uint64_t fixed_bytes(const Config& config);
  /// Positions that are kept of a sliding window: as far back as the oldest of kTogether queries sees. 0: all.
  static std::uint32_t kept_positions(const Config& config) {
    const bool all = config.window == 0 || config.window >= config.max_seq_len;
    return all ? 0 : config.window + kTogether - 1;
  }
  static std::uint64_t score_bytes_per_position(const Config& config) {
    return kTogether * config.n_heads * sizeof(float);
  }
  static std::uint64_t embedding_row_bytes(const Config& config) {
    return align_up(config.dim * sizeof(float)) + sizeof(Cached);
  }

  /// `rope_divisors`: [head_dim / 2] or empty. Everything given must outlive this.
  Status init(Arena& arena, const Config& config, const Weights& weights, Streamer& streamer, const Kernels& kernels,
              const Workers& workers, const Plan& plan, std::span<const float> rope_divisors,
              std::uint32_t logits_rows);

  /// Begins a pass over tokens at positions first, first + 1, ...; the last `logits_rows` of them get logits.
  /// tokens.size() is in [1, plan.chunk]; the tokens stay where they are until the pass is done.
  void begin(std::span<const std::uint32_t> tokens, std::uint32_t first, std::uint32_t logits_rows);
  /// Does one piece of the pass: a segment's product, a token's attention, a norm. blocked: a segment is awaited.
  Advance advance();
  /// What the last advance() did, or was about to do when it was blocked.
  Work work() const { return work_; }

  std::span<float> logits() const { return logits_.first(std::size_t{logits_rows_} * config_->vocab_size); }
  std::span<const KernelCount> counts() const { return counts_; }

 private:
  struct Cached {
    std::uint32_t token;  // 1 + id, 0 for none
    std::uint32_t used;   // when, in look-ups
  };
  enum Counter : std::size_t {
    kCountMatmul = 0,
    kCountQuantize = kFormats.size(),
    kCountNorm,
    kCountAttend,
    kCountSilu = kCountAttend + kKvNames.size(),
    kCountAdd,
    kCountRope,
    kCountEmbed,
    kCounters
  };

  Advance embed();
  Advance layer_op();
  Advance head_op();
  bool embed_token(std::uint32_t column);
  Advance matmul(const TensorEntry& tensor, Buf in, std::uint32_t first_column, std::uint32_t n, float* y,
                 std::uint32_t y_stride);
  /// body(begin, count) over n columns, cut for the workers between panels.
  template <class Body>
  void for_columns(std::uint32_t n, Body body) {
    const std::uint32_t panels = (n + kPanel - 1) / kPanel;
    const std::uint32_t parts = std::min(panels, workers_.count);
    parallel_for(workers_, parts, [&](std::uint32_t part) {
      const std::uint32_t begin = panels * part / parts * kPanel;
      body(begin, std::min(panels * (part + 1) / parts * kPanel, n) - begin);
    });
  }
  void rotate(const TensorEntry* weight, Buf buf);
  void attention(std::uint32_t column, std::uint32_t n);
  void norm(const TensorEntry& weight, Buf in, Buf out, std::uint32_t first_column, std::uint32_t n);
  /// A vector of the current section: pinned, so there once its segment was awaited.
  const float* vector(const TensorEntry& tensor, std::span<float> to);
  bool vectors_ready(std::uint32_t section);
  void quantize(Buf buf, std::uint32_t first_column, std::uint32_t n, std::uint32_t cols);
  float* at(Buf buf, std::uint32_t column) const {
    return bufs_[static_cast<std::size_t>(buf)].data() + std::size_t{column} * width(buf);
  }
  std::uint32_t width(Buf buf) const { return widths_[static_cast<std::size_t>(buf)]; }

  const Config* config_ = nullptr;
  const Weights* weights_ = nullptr;
  Streamer* streamer_ = nullptr;
  const Kernels* kernels_ = nullptr;
  Workers workers_;
  KvCache kv_;
  std::array<std::span<float>, kBufs> bufs_;  // each [chunk, width]
  std::array<std::uint32_t, kBufs> widths_{};
  QuantizedColumns xq_;
  Buf quantized_ = Buf::none;             // what xq_ holds
  std::span<float> rope_cos_, rope_sin_;  // [chunk, head_dim / 2]
  std::span<float> rope_frequency_;       // [head_dim / 2]
  std::span<float> scores_;               // [n_heads, kTogether, kv capacity]
  std::span<float> vector_;               // a norm or bias, widened to float
  std::span<float> logits_;               // [logits rows, vocab_size]
  std::span<float> rows_;                 // [embedding_rows, dim] cached
  std::span<Cached> cached_;              // [embedding_rows]
  std::uint32_t row_stride_ = 0;
  std::uint32_t lookups_ = 0;

  std::span<const std::uint32_t> tokens_;
  std::uint32_t first_ = 0, logits_rows_ = 0;
  std::uint32_t layer_ = 0, op_ = 0;  // layer_ == n_layers: the head
  std::uint32_t item_ = 0;            // token or segment within an op
  bool embedded_ = false;
  Work work_ = Work::embed;
  std::array<KernelCount, kCounters> counts_{};
};

}  // namespace qsf
