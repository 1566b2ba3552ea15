// Every computation on vectors and matrices, as one table of functions per instruction set. All tables give the same
// bits: see docs/design.md, "Arithmetic". Kernels see spans and sizes, never files or models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/half.h"
#include "formats/format.h"

namespace qsf {

/// Activation columns rounded to int8 per kGroup values: x = d * code, code in [-127, 127]. Sizes for one column of
/// `cols` values; the tail up to a multiple of `padded` holds zeros. Column c begins at c * stride elements.
struct QuantizedColumns {
  std::int8_t* codes = nullptr;  // [n, padded_cols(cols)]
  float* d = nullptr;            // [n, padded_cols(cols) / kGroup]
  float* sums = nullptr;         // [n, padded_cols(cols) / kGroup]  sum of each group's codes, exact
  float* half_sums = nullptr;    // [n, padded_cols(cols) / kGroup * 2]  of each half of a group
  std::uint32_t padded = 0;      // padded_cols(cols): the stride between columns, in codes
};

/// Columns are padded so that whole blocks of every format have activations, and to an odd number of cache lines, so
/// that the same place in several columns does not fall into the same cache set.
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

enum class KvType : std::uint8_t { f16, q8, f32 };
inline constexpr std::array<std::string_view, 3> kKvNames{"f16", "8bit", "f32"};
constexpr std::uint32_t kv_code_bytes(KvType type) { return type == KvType::f32 ? 4 : type == KvType::f16 ? 2 : 1; }

/// The cached keys or values of one layer and one KV head: a ring of `capacity` positions.
struct KvHead {
  std::byte* codes;  // [capacity, head_dim]  f16, int8 or float
  float* scales;     // [capacity]            q8 only: value = scale * code
};

/// One query head at one position over positions first .. first + count - 1, stored at (position % capacity).
struct AttendArgs {
  const float* q;  // [head_dim]
  KvHead k;
  KvHead v;
  std::uint32_t head_dim;
  std::uint32_t capacity;
  std::uint32_t first;  // oldest visible position
  std::uint32_t count;  // visible positions, the query's own included
  float scale;          // on every score, 1 / sqrt(head_dim)
  float* scores;        // [count] scratch
  float* out;           // [head_dim], may be q
};

/// Lanes and order, the same everywhere: a sum over a vector keeps 16 lanes, lane j adding elements 16i + j in order
/// (a short tail is padded with +0), then the tree l[j] + l[j+8], l[j] + l[j+4], l[j] + l[j+2], l[0] + l[1].
/// Attention: score_i = dot(q, k_i) * scale (q8: dot(q, float(code)) * k_scale * scale); softmax with the true maximum;
/// out[d] = sum over i ascending of p_i * v_i[d] (q8: (p_i * v_scale) * float(code)), one accumulator per d.
struct Kernels {
  std::string_view isa;
  void (*quantize_columns)(const float* x, std::uint32_t x_stride, std::uint32_t cols, std::uint32_t n,
                           const QuantizedColumns& out);
  std::array<void (*)(const MatmulArgs&), kFormats.size()> matmul;  // by position in kFormats
  void (*rms_norm)(const float* x, const float* weight, float* y, std::uint32_t n, float epsilon);  // y may be x
  void (*add)(float* x, const float* y, std::uint32_t n);                                           // x += y
  void (*silu_mul)(float* gate, const float* up, std::uint32_t n);  // gate = silu(gate) * up
  void (*softmax)(float* x, std::uint32_t n);
  /// Rotates pairs (v[i], v[i + half]); cos and sin are [head_dim / 2].
  void (*rope)(float* v, const float* cos, const float* sin, std::uint32_t head_dim);
  std::array<void (*)(const float* x, std::uint32_t head_dim, const KvHead& to, std::uint32_t slot), kKvNames.size()>
      kv_store;
  std::array<void (*)(const AttendArgs&), kKvNames.size()> attend;  // both by KvType
  std::uint32_t (*argmax)(const float* x, std::uint32_t n);         // the first of equals
};

/// The tables this build holds and this machine can run, slowest first; the scalar one is always there.
std::span<const Kernels* const> available_kernels();
/// The fastest available table.
const Kernels& best_kernels();
/// By name (see cmake/QsfIsas.cmake); nullptr when not available.
const Kernels* find_kernels(std::string_view isa);

}  // namespace qsf
