#include "converter/measure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qsf/base/align.h"
#include "qsf/formats/search.h"

namespace qsf::convert {
namespace {

// Moments off the diagonal count less the fewer positions there were, and every column a little by itself.
constexpr double kDamping = 0.01;
constexpr double kTrust = 0.1;  // positions per column that halve what is off the diagonal
constexpr int kDescents = 2;    // over a row's blocks after its search

/// In eight sums, one order for all machines.
float dot(const float* a, const float* b, std::size_t n) {
  std::array<float, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// H = U^T D U of a block, U unit upper triangular with columns taken from the last: h is overwritten by U's rows.
void factor(std::vector<double>& h, std::uint32_t n, std::span<double> pivots) {
  // e H e^T with the last column eliminated first leaves cost[i] * (e[i] + sum over j > i of U[i][j] e[j])^2, where
  // U[i][j] is what column j carries to i once those before i are free: a factorization from the first column on.
  for (std::uint32_t i = 0; i < n; ++i) {
    const double pivot = h[std::size_t{i} * n + i];
    pivots[i] = pivot;
    for (std::uint32_t j = i + 1; j < n; ++j) {
      const double by = h[std::size_t{i} * n + j] / pivot;
      if (by == 0) continue;
      double* const row = &h[std::size_t{j} * n];
      const double* const top = &h[std::size_t{i} * n];
      for (std::uint32_t k = j; k < n; ++k) row[k] -= by * top[k];
    }
    for (std::uint32_t j = i + 1; j < n; ++j) h[std::size_t{i} * n + j] /= pivot;
  }
}

}  // namespace

double Moments::of(std::uint32_t i, std::uint32_t j) const {
  if (i < j) std::swap(i, j);
  if (i / width != j / width) return 0;
  return sums[std::size_t{i} * width + j % width];
}

RowCost RowCost::plain(std::uint32_t cols) {
  RowCost out;
  out.cols_ = out.width_ = cols;
  out.cost_.assign(align_up(cols, kMaxBlock), 0.0f);
  std::fill_n(out.cost_.begin(), cols, 1.0f);
  return out;
}

RowCost RowCost::of(const Moments& moments) {
  RowCost out = plain(moments.cols);
  double mean = 0;
  for (std::uint32_t i = 0; i < moments.cols; ++i) mean += moments.of(i, i);
  mean /= moments.cols;
  if (!(mean > 0) || !std::isfinite(mean)) return out;
  const std::uint32_t width = out.width_ = moments.width;
  const auto diagonal = [&](std::uint32_t i) { return moments.of(i, i) / mean + kDamping; };
  if (width == 1) {
    for (std::uint32_t i = 0; i < moments.cols; ++i) out.cost_[i] = static_cast<float>(diagonal(i));
    return out;
  }
  const double keep = moments.n / (moments.n + kTrust * width);
  out.stride_ = align_up(width, kMaxBlock);
  out.carry_.assign(out.cost_.size() * out.stride_, 0.0f);
  out.moments_ = out.carry_;
  std::vector<double> h, pivots(width);
  for (std::uint32_t begin = 0; begin < moments.cols; begin += width) {
    const std::uint32_t n = std::min(width, moments.cols - begin);
    h.assign(std::size_t{n} * n, 0.0);
    for (std::uint32_t i = 0; i < n; ++i) {
      h[std::size_t{i} * n + i] = diagonal(begin + i);
      for (std::uint32_t j = i + 1; j < n; ++j) {
        h[std::size_t{i} * n + j] = moments.of(begin + i, begin + j) / mean * keep;
      }
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        out.moments_[(begin + i) * out.stride_ + j] =
            static_cast<float>(h[std::size_t{std::min(i, j)} * n + std::max(i, j)]);
      }
    }
    factor(h, n, pivots);
    for (std::uint32_t i = 0; i < n; ++i) {
      out.cost_[begin + i] = static_cast<float>(pivots[i]);
      for (std::uint32_t j = i + 1; j < n; ++j) {
        out.carry_[(begin + i) * out.stride_ + j] = static_cast<float>(h[std::size_t{i} * n + j]);
      }
    }
  }
  return out;
}

double RowCost::of(std::uint32_t i, std::span<const float> errors) const {
  const std::uint32_t begin = i / width_ * width_, end = std::min(begin + width_, cols_);
  float away = errors[i];
  if (carries()) away += dot(carry(i) + (i + 1 - begin), &errors[i] + 1, end - i - 1);
  return double{cost_[i]} * double{away} * double{away};
}

double RowCost::operator()(std::span<const float> errors) const {
  double sum = 0;
  for (std::uint32_t i = 0; i < cols_; ++i) sum += of(i, errors);
  return sum;
}

bool RowCost::exceeds(std::span<const float> errors, double most) const {
  double sum = 0;
  for (std::uint32_t i = 0; i < cols_; ++i) {
    sum += of(i, errors);
    if (sum > most) return true;
  }
  return false;
}

double RowCost::search(const Format& f, std::span<const float> weights, std::span<std::byte> out) const {
  std::vector<float> errors(cost_.size()), block(f.block), moved(f.block);
  const auto n_blocks = static_cast<std::uint32_t>(out.size() / f.block_bytes);
  double sum = 0;
  for (std::uint32_t b = n_blocks; b-- > 0;) {
    const std::uint32_t begin = b * f.block, n = std::min<std::uint32_t>(f.block, cols_ - begin);
    const std::span<std::byte> to = out.subspan(std::size_t{b} * f.block_bytes, f.block_bytes);
    const std::uint32_t of = begin / width_ * width_, end = std::min(of + width_, cols_);
    std::ranges::fill(block, 0.0f);
    std::ranges::copy(weights.subspan(begin, n), block.begin());
    BlockCost cost{std::span(cost_).subspan(begin, f.block)};
    if (!carries()) {
      sum += best_block(f, block, cost, to.data());
      continue;
    }
    cost.carry = carry(begin) + (begin - of);
    cost.stride = stride_;
    // The weights that this block would have, were those behind it without errors.
    for (std::uint32_t i = n; i-- > 0;) {
      const float* const row = carry(begin + i);
      moved[i] = dot(row + (begin + n - of), errors.data() + begin + n, end - begin - n) -
                 dot(row + (begin + i + 1 - of), moved.data() + i + 1, n - i - 1);
      block[i] += moved[i];
    }
    sum += search_block(f, block, cost, to.data());
    const std::span<float> back = std::span(errors).subspan(begin, n);
    dequantize_row(f, to, back);
    for (std::uint32_t i = 0; i < n; ++i) back[i] = weights[begin + i] - back[i];
  }
  return sum;
}

/// The blocks of a row whose errors cost so much, brought to where they cost less; what they cost then.
double RowCost::improve(const Format& f, std::span<const float> weights, double cost, std::span<std::byte> out) const {
  std::vector<float> errors(cost_.size()), pull(cost_.size()), moved(f.block);
  std::vector<std::byte> better(out.begin(), out.end());
  const std::span<float> row = std::span(errors).first(cols_);
  const auto read_errors = [&] {
    dequantize_row(f, better, row);
    for (std::uint32_t i = 0; i < cols_; ++i) errors[i] = weights[i] - errors[i];
  };
  read_errors();
  for (std::uint32_t i = 0; i < cols_; ++i) {
    const std::uint32_t of = i / width_ * width_;
    pull[i] = dot(moments(i), &errors[of], std::min(width_, cols_ - of));
  }
  bool changed = true;
  for (int descent = 0; descent < kDescents && changed; ++descent) {
    changed = false;
    for (auto b = static_cast<std::uint32_t>(out.size() / f.block_bytes); b-- > 0;) {
      const std::uint32_t begin = b * f.block, of = begin / width_ * width_, end = std::min(of + width_, cols_);
      if (!improve_block(f, {moments(begin) + (begin - of), stride_}, std::span(pull).subspan(begin, f.block),
                         &better[std::size_t{b} * f.block_bytes], moved)) {
        continue;
      }
      changed = true;
      // The block's own columns are done, and nobody asks for those behind it after the last descent.
      const std::uint32_t behind = std::min(begin + f.block, end), all = descent + 1 < kDescents ? end : behind;
      for (std::uint32_t i = 0; i < behind - begin; ++i) {
        if (moved[i] == 0) continue;
        const float* const h = moments(begin + i);
        for (std::uint32_t k = of; k < begin; ++k) pull[k] -= moved[i] * h[k - of];
        for (std::uint32_t k = behind; k < all; ++k) pull[k] -= moved[i] * h[k - of];
      }
    }
  }
  read_errors();
  const double found = (*this)(row);
  if (!(found < cost)) return cost;
  std::ranges::copy(better, out.begin());
  return found;
}

void RowCost::quantize(const Format& f, std::span<const float> weights, std::span<std::byte> out) const {
  double found = search(f, weights, out);
  if (!carries()) return;  // each block is compared by itself
  found = improve(f, weights, found, out);
  std::vector<std::byte> plain(out.size());
  quantize_row(f, weights, plain);
  std::vector<float> errors(weights.size());
  dequantize_row(f, plain, errors);
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = weights[i] - errors[i];
  if (!exceeds(errors, found)) std::ranges::copy(plain, out.begin());
}

}  // namespace qsf::convert
