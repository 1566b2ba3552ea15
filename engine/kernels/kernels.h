// Every computation on vectors and matrices, as one table of functions per instruction set. All tables give the same
// bits: see docs/design.md, "Arithmetic". Kernels see spans and sizes, never files or models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/half.h"
#include "qsf/formats/format.h"
#include "qsf/formats/kv.h"

namespace qsf {

inline constexpr std::uint32_t kPanel = 4;

/// Which activations are rounded under one scale: kGroup neighbours, or all of a column.
enum class ScaleOf : std::uint8_t { group, column };

/// Activation columns rounded to int8 under scales of their groups or of each column: x = d * code, code in [-127,
/// 127], zeros from cols to padded. Four columns are a panel, the last one with n % 4 where that is not 0. A panel
/// holds a group of each of its columns side by side, then their next groups, so that a pass over columns reads on from
/// where it is.
struct QuantizedColumns {
  std::int8_t* codes = nullptr;  // [n / 4, padded / kGroup, 4, kGroup]
  float* d = nullptr;            // [n / 4, padded / kGroup, 4]
  float* sums = nullptr;         // [n / 4, padded / kGroup, 4]  sum of each group's codes, exact
  float* half_sums = nullptr;    // [n / 4, padded / kGroup, 4, 2]  of each half of a group
  std::uint32_t padded = 0;      // padded_cols(cols)

  /// The columns from `column`, a multiple of kPanel, on.
  QuantizedColumns from(std::size_t column) const {
    const std::size_t groups = column * padded / kGroup;
    return {codes + column * padded, d + groups, sums + groups, half_sums + 2 * groups, padded};
  }
  /// Where a group of one of n columns lies, counted in groups.
  std::size_t place(std::size_t column, std::size_t n, std::size_t group) const {
    const std::size_t in_panel = column % kPanel, first = column - in_panel;
    return first * (padded / kGroup) + group * panel_width(column, n) + in_panel;
  }
  /// Columns in the panel of one of n columns.
  static std::size_t panel_width(std::size_t column, std::size_t n) {
    const std::size_t first = column - column % kPanel;
    return n - first < kPanel ? n - first : kPanel;
  }
};

/// Columns are padded so that whole blocks of every format have activations, and to an odd number of cache lines, so
/// that the same place in two panels does not fall into the same cache set.
constexpr std::uint32_t padded_cols(std::uint32_t cols) { return (cols + 255) / 256 * 256 + 64; }

/// y[c * y_stride + r] = sum over k of w[r, k] * x[c, k], r in [0, rows), c in [0, n). Rows begin at a strip.
struct MatmulArgs {
  const std::byte* weights;  // tiles for quantized formats, row-major for float formats; any alignment
  std::uint32_t rows;        // need not be a multiple of 16: y is written only up to `rows`
  std::uint32_t cols;
  const float* x;  // [n, x_stride] for float formats
  std::uint32_t x_stride;
  QuantizedColumns xq;  // for quantized formats
  std::uint32_t n;      // activation columns, any number >= 1
  float* y;
  std::uint32_t y_stride;
};

/// The query heads that share one KV head, at one or several neighbouring positions; position p is cached in slot
/// p % capacity. A query sees its own position and those before it, `window` at most, and `ahead` behind it; what the
/// first query sees must still be cached when the last position is.
struct AttendArgs {
  const float* q;  // [n_positions, stride]: n_heads * head_dim of each row
  std::size_t stride;
  const std::byte* k;             // [capacity, kv_bytes]
  const std::byte* v;             // the same
  std::uint32_t n_heads;          // query heads
  std::uint32_t head_dim;         // at most kMaxHeadDim
  std::uint32_t capacity;         // at least window + n_positions - 1, or as many as there are positions
  std::uint32_t position;         // of the first query
  std::uint32_t n_positions;      // with a query
  std::uint32_t window;           // most visible positions
  float scale;                    // on every score, 1 / sqrt(head_dim)
  float cap = 0;                  // c where a score s becomes c tanh(s / c); 0: it stays
  const float* sinks = nullptr;   // [n_heads] scores of nothing, which softmax sees beside the others; or null
  const float* slopes = nullptr;  // [n_heads] times the distance to a position is taken from its score; or null
  float* scores;                  // [n_positions, n_heads, capacity] scratch
  float* out;                     // as q, may be q
  std::uint32_t ahead = 0;        // most positions that a query sees behind its own; then all of them are cached
  std::uint32_t length = 0;       // with `ahead`: cached positions

  /// The first position that query t sees.
  std::uint32_t oldest(std::uint32_t t) const {
    const std::uint32_t seen = position + t + 1;
    return seen > window ? seen - window : 0;
  }
  /// The one behind the last that it sees.
  std::uint32_t end(std::uint32_t t) const {
    const std::uint32_t own = position + t + 1;
    return ahead == 0 || ahead < length - own ? own + ahead : length;
  }
};

/// Columns of RoPE: column c turns every head of its v by the angles whose cosines and sines are its row of cos and
/// sin.
struct RopeArgs {
  float* v;         // [n, stride]: n_heads * head_dim of each row
  std::uint32_t n;  // columns
  std::uint32_t stride;
  std::uint32_t n_heads;
  std::uint32_t head_dim;
  std::uint32_t dims;  // the first values of a head, which turn; even
  const float* cos;    // [n, dims / 2]
  const float* sin;    // the same
};

/// x = f(x), times up where that is not null.
using Activate = void(float* x, const float* up, std::uint32_t n);

/// Lanes and order, the same everywhere: a sum over a vector keeps 16 lanes, lane j adding elements 16i + j in order
/// (a short tail is padded with +0), then the tree l[j] + l[j+8], l[j] + l[j+4], l[j] + l[j+2], l[0] + l[1].
/// Attention: score_i = dot(q, k_i) * scale, capped where that is asked for; softmax with the true maximum; out[d] =
/// sum over i ascending of p_i * v_i[d], one accumulator per d. Cached values are widened to float first, so that
/// attention over any cache has the bits of attention over the floats it stands for, but for f16: there q and p are
/// rounded to 13 significant bits, so that products with values of 11 are floats, and fused sums have the bits of those
/// that are not; and e^x is within 2^-16.
struct Kernels {
  std::string_view isa;
  void (*quantize_columns)(const float* x, std::uint32_t x_stride, std::uint32_t cols, std::uint32_t n,
                           ScaleOf scale_of, const QuantizedColumns& out);
  std::array<void (*)(const MatmulArgs&), kFormats.size()> matmul;  // by position in kFormats
  /// y may be x, and weight null for ones.
  void (*rms_norm)(const float* x, const float* weight, float* y, std::uint32_t n, float epsilon);
  /// (x - mean) / sqrt(variance + epsilon) * weight + bias; bias may be null, y may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float* y, std::uint32_t n, float epsilon);
  void (*add)(float* x, const float* y, std::uint32_t n);  // x += y
  void (*mul)(float* x, const float* y, std::uint32_t n);  // x *= y
  void (*scale)(float* x, float by, std::uint32_t n);      // x *= by
  void (*exp)(float* x, std::uint32_t n);                  // in place, as tanh; error bounds in exact.inl
  void (*tanh)(float* x, std::uint32_t n);
  void (*soft_cap)(float* x, std::uint32_t n, float cap);                    // x = cap * tanh(x / cap)
  void (*sin_cos)(const float* x, float* sin, float* cos, std::uint32_t n);  // either may be x
  Activate* silu;
  Activate* gelu;       // the tanh form
  Activate* gelu_fast;  // a table of it: within 2^-15
  Activate* gelu_erf;   // x / 2 (1 + erf(x / sqrt 2)), within 2^-21 of |x|
  Activate* relu;
  Activate* relu2;
  void (*softmax)(float* x, std::uint32_t n, float temperature);  // of x / temperature, in place
  /// Rotates pairs (v[i], v[i + dims / 2]) of every head of every column.
  void (*rope)(const RopeArgs& args);
  /// Rounds one position of one head into the cache.
  std::array<void (*)(const float* x, std::uint32_t head_dim, std::byte* to), kKvNames.size()> kv_store;
  std::array<void (*)(const AttendArgs&), kKvNames.size()> attend;  // both by KvType
  void (*widen_f16)(const std::byte* from, float* to, std::uint32_t n);
  std::uint32_t (*argmax)(const float* x, std::uint32_t n);  // the first of equals
};

/// The tables this build holds and this machine can run, slowest first; the scalar one is always there.
std::span<const Kernels* const> available_kernels();
/// The fastest available table.
const Kernels& best_kernels();
/// By name (see cmake/QsfIsas.cmake); nullptr when not available.
const Kernels* find_kernels(std::string_view isa);

}  // namespace qsf
