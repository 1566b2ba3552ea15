// Seeded inputs, weights and buffers for the kernel tests: the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "qsf/base/half.h"
#include "qsf/formats/format.h"
#include "support/seeded.h"

namespace qsf::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Returns `n` values from -1 to 1.
std::vector<float> unit_values(std::size_t n, std::uint64_t seed);

enum class Values { zero, largest, subnormal, random };
inline constexpr Values kAllValues[] = {Values::zero, Values::largest, Values::subnormal, Values::random};

std::vector<float> make_values(Values kind, std::size_t n, std::uint64_t seed);

/// A weight matrix in one format: as the kernels read it, and row-major as the format defines it.
struct Weights {
  const Format* format;
  std::uint32_t rows;
  std::uint32_t cols;
  std::vector<std::byte> row_major;
  std::vector<std::byte> kernel;  // tiles for a quantized format
};

/// Sets the scale of a block, if it is a binary16.
void set_scale(const Format& f, f16 scale, std::byte* block);

/// Random codes, scales and minima (not quantized weights): every code occurs, scales of both signs.
Weights make_weights(const Format& f, std::uint32_t rows, std::uint32_t cols, std::uint64_t seed);

/// Activation columns rounded by `kernels`, with the memory they lie in.
class Columns {
 public:
  Columns(const Kernels& kernels, std::span<const float> x, std::uint32_t x_stride, std::uint32_t cols, std::uint32_t n,
          ScaleOf scale_of = ScaleOf::group);
  const QuantizedColumns& view() const { return view_; }
  /// Where a group of a column lies in codes(), d() and sums(), in groups.
  std::size_t place(std::size_t column, std::size_t group) const { return view_.place(column, n_, group); }
  std::span<const std::int8_t> codes() const { return codes_; }
  std::span<const float> d() const { return d_; }
  std::span<const float> sums() const { return sums_; }
  std::span<const float> half_sums() const { return half_sums_; }

 private:
  std::vector<std::int8_t> codes_;
  std::vector<float> d_;
  std::vector<float> sums_;
  std::vector<float> half_sums_;
  QuantizedColumns view_;
  std::uint32_t n_;
};

/// y [n, rows] of the product; x is [n, cols].
std::vector<float> multiply(const Kernels& kernels, const Weights& w, std::span<const float> x, std::uint32_t n);

/// `size` bytes with an unreadable page right after them and one before the page they begin in; as WebAssembly, which
/// has no pages to protect, with bytes around them that must stay as they were.
class Guarded {
 public:
  explicit Guarded(std::size_t size);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  void fill(std::span<const T> values) const {
    std::memcpy(data_, values.data(), values.size_bytes());
  }

 private:
  std::size_t size_;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace qsf::test
