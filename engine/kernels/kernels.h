// Every computation on vectors and matrices, as one table of functions for each instruction set. All tables compute the
// same bits (docs/internals/determinism.md). Kernels receive spans and sizes, never files or models.
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

/// The activations that are rounded with one scale: a group of kGroup neighbours, or a whole column.
enum class ScaleOf : std::uint8_t { group, column };

/// Activation columns rounded to int8: x = d * code, code in [-127, 127]. The scale d belongs to a group or to a whole
/// column. Codes from cols to padded are 0. Four columns are a panel; the last panel has n % 4 columns if n is not a
/// multiple of 4. A panel stores the first group of each of its columns, then the second group of each, and so on, so
/// that a pass over columns reads memory in order.
struct QuantizedColumns {
  std::int8_t* codes = nullptr;  // [n / 4, padded / kGroup, 4, kGroup]
  float* d = nullptr;            // [n / 4, padded / kGroup, 4]
  float* sums = nullptr;         // [n / 4, padded / kGroup, 4]  sum of each group's codes, exact
  float* half_sums = nullptr;    // [n / 4, padded / kGroup, 4, 2]  of each half of a group
  std::uint32_t padded = 0;      // padded_cols(cols)

  /// Returns the columns from `column` on, which must be a multiple of kPanel.
  QuantizedColumns from(std::size_t column) const {
    const std::size_t groups = column * padded / kGroup;
    return {codes + column * padded, d + groups, sums + groups, half_sums + 2 * groups, padded};
  }
  /// Returns the index of a group of one of n columns, counted in groups.
  std::size_t place(std::size_t column, std::size_t n, std::size_t group) const {
    const std::size_t in_panel = column % kPanel, first = column - in_panel;
    return first * (padded / kGroup) + group * panel_width(column, n) + in_panel;
  }
  /// Returns the number of columns in the panel of `column`, one of n columns.
  static std::size_t panel_width(std::size_t column, std::size_t n) {
    const std::size_t first = column - column % kPanel;
    return n - first < kPanel ? n - first : kPanel;
  }
};

/// Returns the padded length of a column. It covers whole blocks of every format, and it is an odd number of cache
/// lines, so that equal offsets in two panels do not share a cache set.
constexpr std::uint32_t padded_cols(std::uint32_t cols) { return (cols + 255) / 256 * 256 + 64; }

/// y[c * y_stride + r] = sum over k of w[r, k] * x[c, k], r in [0, rows), c in [0, n). The first row begins a strip.
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

/// Positions that a cache of fewer bits also has in f16: the first ones in the first slots, the others in the remaining
/// slots in turn. A query reads the first `first` positions and the last `window` ones up to its own from here, as far
/// as it sees them. `window` is at most that of the query, and `first` at most its first_kept if it has a window.
struct ExactPositions {
  const std::byte* k = nullptr;  // [capacity, head_dim] of f16
  const std::byte* v = nullptr;  // the same; k itself if values begin their keys
  std::uint32_t capacity = 0;    // at least first + window + n_positions - 1, or the number of all positions
  std::uint32_t window = 0;      // 0: there are none
  std::uint32_t first = 0;
};

/// Numbers that are added to scores by distance. A position `d` after the query's, before it if negative, is of the
/// bucket `of_distance[d]`, where d is limited to -reach .. reach.
struct DistanceBiases {
  const float* biases = nullptr;              // [n_heads, n_buckets]; null: none
  const std::uint8_t* of_distance = nullptr;  // the middle of [2 * reach + 1]
  std::uint32_t n_buckets = 0;
  std::uint32_t reach = 0;
};

/// The query heads that share one KV head, at one or several consecutive positions. The first `first_kept` positions
/// are cached in the first slots, and the others in the remaining slots in turn. A query sees its own position and
/// earlier ones, at most `window` in total, those first positions, and `ahead` later ones. The oldest position of its
/// window that the first query sees must still be cached when the last query's position is.
struct AttendArgs {
  const float* q;  // [n_positions, stride]: n_heads * head_dim of each row
  std::size_t stride;
  const std::byte* k;             // [capacity, kv_bytes of the key's form]
  const std::byte* v;             // the same of the value's; k itself if values begin their keys
  std::uint32_t n_heads;          // query heads
  std::uint32_t head_dim;         // at most kMaxHeadDim
  std::uint32_t capacity;         // at least first_kept + window + n_positions - 1, or the number of all positions
  std::uint32_t position;         // of the first query
  std::uint32_t n_positions;      // positions that have a query
  std::uint32_t window;           // most visible positions
  float scale;                    // multiplies every score; 1 / sqrt(head_dim)
  float cap = 0;                  // if not 0, a score s becomes cap tanh(s / cap)
  const float* sinks = nullptr;   // [n_heads] additional scores without a value, for softmax; or null
  const float* slopes = nullptr;  // [n_heads] slope times distance is subtracted from a score; or null
  float* scores;                  // [n_positions, n_heads, most_seen()] scratch
  float* out;                     // shape of q; may be q
  std::uint32_t ahead = 0;        // later positions that a query sees; if not 0, all positions are cached
  std::uint32_t length = 0;       // with `ahead`: cached positions
  std::uint32_t first_kept = 0;   // positions from 0 on that every query sees, if they are not later than it
  ExactPositions exact = {};
  DistanceBiases by_distance = {};  // not with first_kept
  bool aligned = false;             // windows begin at multiples of `window`; not with first_kept or `ahead`

  /// Returns the first position that query t sees after the first_kept ones.
  std::uint32_t oldest(std::uint32_t t) const {
    if (aligned) return (position + t) / window * window;
    const std::uint32_t seen = position + t + 1, first = seen > window ? seen - window : 0;
    return first > first_kept ? first : seen < first_kept ? seen : first_kept;
  }
  /// Returns the slot of a position.
  std::uint32_t slot(std::uint32_t at) const {
    return at < first_kept ? at : first_kept + (at - first_kept) % (capacity - first_kept);
  }
  /// Returns the position after the last one that query t sees.
  std::uint32_t end(std::uint32_t t) const {
    const std::uint32_t own = position + t + 1;
    return ahead == 0 || ahead < length - own ? own + ahead : length;
  }
  /// Returns the position after the last one that query t reads from `k` and `v`.
  std::uint32_t exact_from(std::uint32_t t) const {
    const std::uint32_t last = end(t), first = last > exact.window ? last - exact.window : 0;
    return aligned && first < oldest(t) ? oldest(t) : first;
  }
  /// Returns the number of positions that query t sees.
  std::uint32_t n_seen(std::uint32_t t) const {
    const std::uint32_t first = oldest(t);
    return end(t) - first + (first < first_kept ? first : first_kept);
  }
  /// Returns a number of positions that no query sees more of, at most `capacity`.
  std::uint32_t most_seen() const {
    const std::uint32_t last = end(n_positions - 1), most = first_kept + window + ahead;
    return last < most ? last : most;
  }
};

/// Columns of RoPE. Every head of column c of v is rotated by the angles in row c of cos and sin.
struct RopeArgs {
  float* v;         // [n, stride]: n_heads * head_dim of each row
  std::uint32_t n;  // columns
  std::uint32_t stride;
  std::uint32_t n_heads;
  std::uint32_t head_dim;
  std::uint32_t dims;  // the first values of a head, which are rotated; even
  const float* cos;    // [n, dims / 2]
  const float* sin;    // the same
};

/// x = f(x); if `up` is not null, x = f(x) * up.
using Activate = void(float* x, const float* up, std::uint32_t n);

/// All tables sum in the same order. A sum over a vector has 16 lanes; lane j adds elements 16i + j in ascending order,
/// and +0 pads a short tail. The lanes are added by the tree l[j] + l[j+8], l[j] + l[j+4], l[j] + l[j+2], l[0] + l[1].
///
/// Attention: score_i = dot(q, k_i) * scale, capped on request; softmax with the true maximum; out[d] = sum over i
/// ascending of p_i * v_i[d], with one accumulator for each d. Cached values are widened to float first, so that
/// attention over any cache type has the bits of attention over the widened floats, except f16 and the rotated forms,
/// whose values have at most 11 significant bits. With these, q and p are rounded to 13 significant bits and e^x is
/// within 2^-16. Products are then exact floats, so that fused sums have the bits of sums that are not fused.
struct Kernels {
  std::string_view isa;
  void (*quantize_columns)(const float* x, std::uint32_t x_stride, std::uint32_t cols, std::uint32_t n,
                           ScaleOf scale_of, const QuantizedColumns& out);
  std::array<void (*)(const MatmulArgs&), kFormats.size()> matmul;  // by index in kFormats
  /// y may be x. A null weight stands for ones.
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
  std::array<void (*)(const float* x, std::uint32_t head_dim, std::byte* to), kKvForms> kv_store;  // by KvForm
  std::array<void (*)(const AttendArgs&), kKvNames.size()> attend;                                 // by KvType
  void (*widen_f16)(const std::byte* from, float* to, std::uint32_t n);
  std::uint32_t (*argmax)(const float* x, std::uint32_t n);  // the first of equals
};

/// Returns the tables of this build that this machine can run, slowest first. The scalar table is always the first.
std::span<const Kernels* const> available_kernels();
/// Returns the fastest available table.
const Kernels& best_kernels();
/// Returns the table with a name of cmake/QsfIsas.cmake, or null if it is not available.
const Kernels* find_kernels(std::string_view isa);

}  // namespace qsf
