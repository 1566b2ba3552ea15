// Keys or values as a cache keeps them, in double precision and by docs/internals/attention-and-kv.md: rotated by the
// matrix of Hadamard (Sylvester's), rounded, and some positions in f16 only.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "qsf/base/half.h"
#include "qsf/formats/kv.h"

namespace qsf::test {

/// The bf16 next to x, rounded by `to` floor or ceil.
inline double to_bf16(double x, double (*to)(double), int bits = 8) {
  const int step = x == 0 ? 0 : std::ilogb(x) - (bits - 1);
  return std::ldexp(to(std::ldexp(x, -step)), step);
}

inline void round_to_half(std::span<double> head) {
  for (double& e : head) e = double{f16_to_f32(f32_to_f16(static_cast<float>(e)))};
}

/// Rounds to a whole number, and keeps in `tie` the least distance from a number between two.
inline double nearest(double x, double& tie) {
  tie = std::min(tie, std::abs(x - std::floor(x) - 0.5));
  return std::nearbyint(x);
}

/// Rounds one head's key or value. Returns how far the codes are from a tie at least, in codes. Single precision may
/// round a number the other way that is nearer to a tie than its own error.
inline double keep(std::span<double> head, KvForm form) {
  double tie = 0.5;
  if (form == KvForm::f32) return tie;
  if (form == KvForm::f16) {
    round_to_half(head);
    return tie;
  }
  if (form == KvForm::q8) {
    double most = 0;
    for (const double e : head) most = std::max(most, std::abs(e));
    for (double& e : head) e = most / 127 * nearest(e * 127 / most, tie);
    return tie;
  }
  const bool rotated = form >= KvForm::r8;
  const int bits = form == KvForm::q4 || form == KvForm::r4 ? 4 : form == KvForm::r3 ? 3 : form == KvForm::r8 ? 8 : 2;
  const double top = bits == 8 ? 127 : (1 << bits) - 1;
  for (std::size_t at = 0; at < head.size(); at += 32) {
    const std::span<double> group = head.subspan(at, std::min<std::size_t>(32, head.size() - at));
    const auto [least, most] = std::minmax_element(group.begin(), group.end());
    if (!rotated) {
      const double minimum = to_bf16(*least, std::floor), scale = to_bf16((*most - minimum) / top, std::ceil);
      for (double& e : group) e = minimum + scale * nearest((e - minimum) / scale, tie);
      continue;
    }
    const double scale = to_bf16(std::max(-*least, *most) / top, std::ceil, std::min(11 - (bits == 8 ? 7 : bits), 8));
    for (double& e : group) {
      e = bits == 8 ? scale * nearest(e / scale, tie) : scale * (2 * nearest((e / scale + top) / 2, tie) - top);
    }
  }
  return tie;
}

/// A query's value, or a weight, as attention over such a cache takes it.
inline double taken(double x, KvForms forms) {
  if (forms.key != KvForm::f16 && !forms.rotates()) return x;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 13)), exponent - 13);
}

/// Multiplies blocks by the matrix and a power of two: both scales together are 1 / block.
inline void turn(std::span<double> x, std::size_t block, bool back) {
  const int log = std::countr_zero(block);
  for (std::size_t at = 0; at < x.size(); at += block) {
    std::vector<double> sums(block);
    for (std::size_t i = 0; i < block; ++i) {
      for (std::size_t j = 0; j < block; ++j) sums[i] += (std::popcount(i & j) % 2 == 0 ? 1 : -1) * x[at + j];
      sums[i] = std::ldexp(sums[i], back ? -(log / 2) : -(log - log / 2));
    }
    std::ranges::copy(sums, x.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

/// The least distance from a tie among the codes that references have read since it was set, in codes.
inline double nearest_tie = 0.5;

/// The keys or the values of a layer.
struct ReferenceCache {
  KvForms forms;
  KvForm form;
  std::size_t head_dim = 0;
  std::size_t block = 1;            // that is rotated
  std::size_t last = 0, first = 0;  // exact positions
  std::vector<std::vector<double>> rounded{}, exact{};
  std::vector<double> ties{};  // of each position

  /// Adds a position's heads.
  void push(std::vector<double> x) {
    if (forms.rotates()) turn(x, block, false);
    exact.push_back(x);
    round_to_half(exact.back());
    double tie = 0.5;
    for (std::size_t h = 0; h < x.size(); h += head_dim) {
      tie = std::min(tie, keep(std::span(x).subspan(h, head_dim), form));
    }
    ties.push_back(tie);
    rounded.push_back(std::move(x));
  }
  /// Returns those of position t as the token at `position` reads them.
  const std::vector<double>& at(std::size_t t, std::size_t position) const {
    if (t < first || position - t < last) return exact[t];
    nearest_tie = std::min(nearest_tie, ties[t]);
    return rounded[t];
  }
  /// Rotates a query, or an output.
  void turn_back(std::span<double> x) const {
    if (forms.rotates()) turn(x, block, true);
  }
};

}  // namespace qsf::test
