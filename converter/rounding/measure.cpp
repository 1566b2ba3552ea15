#include "converter/rounding/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "qsf/base/align.h"
#include "qsf/formats/search.h"
#include "qsf/model/observed.h"

namespace qsf::convert {
namespace {

// Fewer positions reduce moments off the diagonal (kTrust). Every column has a small cost of its own (kDamping).
constexpr double kDamping = 0.01;
constexpr double kTrust = 0.1;  // positions per column that halve moments off the diagonal

constexpr double kSure = 1e-3;      // relative precision of sums of floats
constexpr std::size_t kAtOnce = 4;  // rows, or moved weights, that share a pass over numbers

/// Returns the products of rows `a` with vectors `b`: eight sums each for one row, four for two. The order of sums is
/// the same on all machines.
template <std::size_t kA, std::size_t kB>
std::array<std::array<float, kB>, kA> dots(const std::array<const float*, kA>& a, const std::array<const float*, kB>& b,
                                           std::size_t n) {
  typedef float Four __attribute__((vector_size(16)));
  const auto four = [](const float* at) {
    Four out;
    __builtin_memcpy(&out, at, sizeof out);
    return out;
  };
  constexpr std::size_t kSums = 2 / kA;
  std::array<std::array<std::array<Four, kSums>, kB>, kA> sums{};
  std::size_t i = 0;
  for (; i + 4 * kSums <= n; i += 4 * kSums) {
    for (std::size_t s = 0; s < kSums; ++s) {
      for (std::size_t k = 0; k < kB; ++k) {
        for (std::size_t r = 0; r < kA; ++r) sums[r][k][s] += four(a[r] + i + 4 * s) * four(b[k] + i + 4 * s);
      }
    }
  }
  std::array<std::array<float, kB>, kA> out;
  for (std::size_t r = 0; r < kA; ++r) {
    for (std::size_t k = 0; k < kB; ++k) {
      Four all = sums[r][k][0];
      for (std::size_t j = i; j < n; ++j) all[0] += a[r][j] * b[k][j];
      if constexpr (kSums == 2) all += sums[r][k][1];
      out[r][k] = (all[0] + all[2]) + (all[1] + all[3]);
    }
  }
  return out;
}
float dot(const float* a, const float* b, std::size_t n) { return dots<1, 1>({a}, {b}, n)[0][0]; }

/// Computes the same products with n_rows vectors. of(row) returns a vector; to(row, k, product) takes its product with
/// a[k].
template <std::size_t kA, class Of, class To>
void dots_of_rows(std::size_t n_rows, const std::array<const float*, kA>& a, std::size_t n, Of of, To to) {
  const auto take = [&]<std::size_t kB>(std::size_t first, const std::array<const float*, kB>& b) {
    const auto found = dots(a, b, n);
    for (std::size_t r = 0; r < kA; ++r) {
      for (std::size_t k = 0; k < kB; ++k) to(first + k, r, found[r][k]);
    }
  };
  std::size_t at = 0;
  static_assert(kAtOnce == 4);
  for (; at + kAtOnce <= n_rows; at += kAtOnce) take(at, std::array{of(at), of(at + 1), of(at + 2), of(at + 3)});
  for (; at < n_rows; ++at) take(at, std::array{of(at)});
}

/// Subtracts the pull of moved weights from the pull at some columns. h has a row of `stride` floats for each weight.
void take_moved(std::span<const float> moved, const float* h, std::size_t stride, std::span<float> pull) {
  std::array<std::size_t, kAtOnce> at;
  std::size_t n = 0;
  for (std::size_t i = 0; i < moved.size() && !pull.empty(); ++i) {
    if (moved[i] != 0) at[n++] = i;
    if (n == kAtOnce) {
      const float *const a = h + at[0] * stride, *const b = h + at[1] * stride, *const c = h + at[2] * stride,
                         *const d = h + at[3] * stride;
      const std::array<float, kAtOnce> by{moved[at[0]], moved[at[1]], moved[at[2]], moved[at[3]]};
      for (std::size_t k = 0; k < pull.size(); ++k) {
        pull[k] = pull[k] - by[0] * a[k] - by[1] * b[k] - by[2] * c[k] - by[3] * d[k];
      }
      n = 0;
    }
  }
  for (std::size_t j = 0; j < n && !pull.empty(); ++j) {
    const float* const row = h + at[j] * stride;
    for (std::size_t k = 0; k < pull.size(); ++k) pull[k] -= moved[at[j]] * row[k];
  }
}

/// Factors a block as H = U^T D U with U unit upper triangular. Overwrites h with U's rows; `pivots` gets D.
void factor(std::vector<double>& h, std::uint32_t n, std::span<double> pivots) {
  // e H e^T is the sum over i of D[i] * (e[i] + sum over j > i of U[i][j] e[j])^2. U[i][j] is the share of column j's
  // error that column i carries while the columns before i are free. So the factorization starts at the first column.
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

/// Returns the decrease of e H e^T by moved weights, from the pull at them before and after the move.
double gain(std::span<const float> moved, std::span<const float> before, std::span<const float> then) {
  double sum = 0;
  for (std::size_t i = 0; i < moved.size(); ++i) sum += double{moved[i]} * (double{before[i]} + double{then[i]});
  return sum;
}

}  // namespace

double Moments::of(std::uint32_t i, std::uint32_t j) const {
  if (i < j) std::swap(i, j);
  if (i / width != j / width) return 0;
  return double{(*sums)[observed_row(i, width) + j % width]};
}

RowCost RowCost::plain(std::uint32_t cols) {
  RowCost out;
  out.cols_ = out.width_ = cols;
  out.plain_ = true;
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
  out.plain_ = false;
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

/// A row that is converted together with others, so that each row of moments is read once for all of them.
struct RowCost::Row {
  std::span<const float> weights;
  std::span<std::byte> out;
  double cost = 0;                 // of the bytes in `out`, up to rounding errors
  std::vector<std::byte> other{};  // bytes that may cost less
  std::vector<float> errors{};     // [padded to a block]
  std::vector<float> pull{};       // H times the errors
  std::vector<float> block{}, moved{};
  double gained = 0;  // the decrease of cost by `other`
  bool changed = true;

  /// Reads the errors of n columns: whole blocks, or the row's last one.
  void read_errors(const Format& f, std::span<const std::byte> bytes, std::uint32_t begin, std::uint32_t n) {
    const std::span here = std::span(errors).subspan(begin, n);
    dequantize_row(f, bytes, here);
    for (std::uint32_t i = 0; i < n; ++i) here[i] = weights[begin + i] - here[i];
  }
};

/// Rounds a row block by block, for costs without moments between columns.
void RowCost::round(const Format& f, Row& row) const {
  SearchBlock* const own = search_of(f);
  row.block.resize(f.block);
  for (std::uint32_t begin = 0; begin < cols_; begin += f.block) {
    const std::uint32_t n = std::min<std::uint32_t>(f.block, cols_ - begin);
    std::ranges::fill(row.block, 0.0f);
    std::ranges::copy(row.weights.subspan(begin, n), row.block.begin());
    BlockCost cost;
    if (!plain_ || n != f.block) cost.cost = std::span(cost_).subspan(begin, f.block);
    std::byte* const out = &row.out[std::size_t{begin} / f.block * f.block_bytes];
    own != nullptr ? own(row.block, cost, out) : static_cast<void>(best_block(f, row.block, cost, out));
  }
}

void RowCost::search(const Format& f, std::span<Row> rows) const {
  SearchBlock* const own = search_of(f);
  const bool improved = own == nullptr;  // codes are improved after the search
  std::vector<SearchedBlock> blocks;
  for (Row& row : rows) {
    row.errors.resize(cost_.size());
    row.pull.resize(cost_.size());
    row.block.resize(f.block);
    row.moved.resize(f.block);
    blocks.push_back({row.block, nullptr, row.moved});
  }
  for (auto b = static_cast<std::uint32_t>(rows[0].out.size() / f.block_bytes); b-- > 0;) {
    const std::uint32_t begin = b * f.block, n = std::min<std::uint32_t>(f.block, cols_ - begin);
    const std::uint32_t of = begin / width_ * width_, end = std::min(of + width_, cols_);
    // The block's weights, moved to make up for the errors of later columns.
    const auto by = [&](std::uint32_t i, std::uint32_t column) { return carry(begin + i) + (begin + column - of); };
    for (Row& row : rows) std::ranges::fill(row.moved, 0.0f);
    const bool last = begin + n == end;
    for (std::uint32_t i = 0; i + 1 < n && !last; i += 2) {
      dots_of_rows(
          rows.size(), std::array{by(i, n), by(i + 1, n)}, end - begin - n,
          [&](std::size_t r) { return std::as_const(rows[r].errors).data() + begin + n; },
          [&](std::size_t r, std::size_t k, float behind) { rows[r].moved[i + k] = behind; });
    }
    for (std::uint32_t i = n; i-- > 0 && !last;) {
      dots_of_rows(
          rows.size(), std::array{by(i, i + 1)}, n - i - 1,
          [&](std::size_t r) { return std::as_const(rows[r].moved).data() + i + 1; },
          [&](std::size_t r, std::size_t, float within) { rows[r].moved[i] -= within; });
    }
    for (Row& row : rows) {
      for (std::uint32_t i = 0; i < n; ++i) row.block[i] = row.weights[begin + i] + row.moved[i];
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::fill(rows[r].block.begin() + n, rows[r].block.end(), 0.0f);
      blocks[r].out = &rows[r].out[std::size_t{b} * f.block_bytes];
    }
    const BlockCost cost{std::span(cost_).subspan(begin, f.block), carry(begin) + (begin - of), stride_};
    if (improved) search_blocks(f, cost, blocks);
    for (const SearchedBlock& each : blocks) {
      if (!improved) own(each.weights, cost, each.out);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      Row& row = rows[r];
      row.cost += blocks[r].cost;
      row.read_errors(f, row.out.subspan(std::size_t{b} * f.block_bytes, f.block_bytes), begin, n);
      if (!improved) continue;
      // H e is U^T D (U e), and the cost is that of U e: each column pulls at itself and at later columns.
      for (std::uint32_t i = 0; i < n; ++i) {
        row.pull[begin + i] = cost_[begin + i] * row.moved[i];
        row.moved[i] = -row.pull[begin + i];
      }
    }
    for (std::uint32_t i = 0; improved && i < n; i += kAtOnce) {
      const std::uint32_t from = begin + i;
      for (Row& row : rows) {
        take_moved(std::span(row.moved).subspan(i, std::min<std::uint32_t>(kAtOnce, n - i)), carry(from) + (from - of),
                   stride_, std::span(row.pull).subspan(from, end - from));
      }
    }
  }
}

/// Changes blocks of rows if that lowers their cost.
void RowCost::improve(const Format& f, std::span<Row> rows) const {
  for (Row& row : rows) row.other.assign(row.out.begin(), row.out.end());
  std::vector<Row*> going;
  std::vector<ImprovedBlock> blocks;
  for (int descent = 0; descent < descents(f); ++descent) {
    going.clear();
    for (Row& row : rows) {
      if (std::exchange(row.changed, false)) going.push_back(&row);
    }
    for (auto b = static_cast<std::uint32_t>(rows[0].out.size() / f.block_bytes); b-- > 0;) {
      const std::uint32_t begin = b * f.block, of = begin / width_ * width_, end = std::min(of + width_, cols_);
      blocks.clear();
      for (Row* const row : going) {
        const std::span pull = std::span(row->pull).subspan(begin, f.block);
        std::ranges::copy(pull, row->block.begin());
        blocks.push_back({pull, &row->other[std::size_t{b} * f.block_bytes], row->moved});
      }
      improve_blocks(f, {moments(begin) + (begin - of), stride_}, blocks);
      for (std::size_t r = 0; r < going.size(); ++r) {
        going[r]->changed |= blocks[r].changed;
        going[r]->gained += gain(blocks[r].moved, going[r]->block, blocks[r].pull);
      }
      // The block's own columns are up to date. After the last descent, the pull at later columns is not needed.
      const std::uint32_t behind = std::min(begin + f.block, end), all = descent + 1 < descents(f) ? end : behind;
      for (Row* const row : going) {
        const std::span moved = std::span(row->moved).first(behind - begin);
        take_moved(moved, moments(begin), stride_, std::span(row->pull).subspan(of, begin - of));
        take_moved(moved, moments(begin) + (behind - of), stride_, std::span(row->pull).subspan(behind, all - behind));
      }
    }
  }
  for (Row& row : rows) {
    if (!(row.gained > kSure * row.cost)) continue;
    row.cost -= row.gained;
    std::ranges::copy(row.other, row.out.begin());
  }
}

/// Replaces rows by plain rounding if that costs less. The first columns have the largest shares, so that rows which
/// cost more are soon dropped.
void RowCost::take_rounded(const Format& f, std::span<Row> rows) const {
  constexpr std::uint32_t kBetween = 16;  // columns
  struct Other {
    Row* row;
    double sum = 0;
    bool costs_more() const { return sum >= row->cost * (1 + kSure); }
  };
  std::vector<Other> going;
  for (Row& row : rows) {
    quantize_row(f, row.weights, row.other);
    row.read_errors(f, row.other, 0, cols_);
    going.push_back({&row});
  }
  for (std::uint32_t k = 0; k < width_ && !going.empty(); ++k) {
    for (std::uint32_t i = k; i < cols_; i += width_) {
      dots_of_rows(
          going.size(), std::array{carry(i) + (k + 1)}, std::min(i + width_ - k, cols_) - i - 1,
          [&](std::size_t r) { return std::as_const(going[r].row->errors).data() + i + 1; },
          [&](std::size_t r, std::size_t, float carried) {
            const double away = going[r].row->errors[i] + carried;
            going[r].sum += double{cost_[i]} * away * away;
          });
    }
    if (k % kBetween == 0) std::erase_if(going, [](const Other& other) { return other.costs_more(); });
  }
  for (const Other& other : going) {
    Row& row = *other.row;
    if (other.costs_more()) continue;
    const double rounded = (*this)(row.errors);
    row.read_errors(f, row.out, 0, cols_);
    if (rounded < (*this)(row.errors)) std::ranges::copy(row.other, row.out.begin());
  }
}

std::vector<RowCost::Row> RowCost::rows_of(std::size_t row_size, std::span<const float> weights,
                                           std::span<std::byte> out) const {
  std::vector<Row> rows;
  for (std::size_t at = 0; at < out.size(); at += row_size, weights = weights.subspan(cols_)) {
    rows.push_back({weights.first(cols_), out.subspan(at, row_size)});
  }
  return rows;
}

void RowCost::quantize(const Format& f, std::span<const float> weights, std::span<std::byte> out) const {
  std::vector<Row> rows = rows_of(row_bytes(f, cols_), weights, out);
  if (!carries()) {
    for (Row& row : rows) round(f, row);
    return;
  }
  search(f, rows);
  if (search_of(f) != nullptr) return;
  improve(f, rows);
  take_rounded(f, rows);
}

}  // namespace qsf::convert
