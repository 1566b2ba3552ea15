// The positions that a KV head keeps under a policy, in double precision and by the definitions: a list of positions
// and a sum of attention for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace qsf::test {

struct ReferencePolicy {
  std::uint32_t window = 0, sinks = 0, chosen = 0;  // as OpenOptions
  std::size_t shrinks_at = ~std::size_t{0};         // the next position when the window shrinks
  std::uint32_t smaller = 0;                        // the window from then on
  bool aligned = false;                             // LayerKind::window_aligned
};

class ReferenceKept {
 public:
  explicit ReferenceKept(const ReferencePolicy& policy) : policy_(policy) {}

  /// Returns the positions that the token at `position`, the next one, sees.
  std::vector<std::size_t> next(std::size_t position) {
    if (position == policy_.shrinks_at) shrink(position);
    const std::size_t n = policy_.window;
    if (policy_.chosen == 0) {
      kept_.push_back(position);
      if (policy_.aligned) {
        std::erase_if(kept_, [&](std::size_t t) { return t / n != position / n; });
        return kept_;
      }
      std::erase_if(kept_, [&](std::size_t t) { return n != 0 && position - t >= n && t >= policy_.sinks; });
      return kept_;
    }
    if (kept_.size() == n && policy_.chosen == 1) evict(position + 1 - (n - n / 2));
    if (kept_.size() == n) compress();
    kept_.push_back(position);
    sums_[position] = 0;
    return kept_;
  }

  /// Adds the weights of a query head of the last token, in the order of the positions.
  void weigh(const std::vector<double>& weights) {
    if (policy_.chosen == 2 && kept_.size() <= policy_.window - observed()) return;
    for (std::size_t i = 0; i < weights.size(); ++i) sums_[kept_[i]] += weights[i];
  }

 private:
  std::size_t observed() const { return std::min(32u, policy_.window / 4); }

  /// Of the positions before `recent`, evicts the one with the smallest sum.
  void evict(std::size_t recent) {
    const auto end = std::ranges::lower_bound(kept_, recent);
    const auto least =
        std::min_element(kept_.begin(), end, [&](std::size_t a, std::size_t b) { return sums_[a] < sums_[b]; });
    sums_.erase(*least);
    kept_.erase(least);
  }

  /// Keeps the observation window, and of the others those with the largest pooled sums, half of all in total.
  void compress() {
    keep_pooled(observed(), kept_.size() / 2);
    sums_.clear();
  }

  /// Keeps the last positions, and of the others those with the largest pooled sums, `stays` in total. The pooled sums
  /// are theirs then.
  void keep_pooled(std::size_t last, std::size_t stays) {
    const std::size_t prefix = kept_.size() - last;
    std::vector<std::pair<double, std::size_t>> pooled;  // the largest first, of equal ones the earliest
    for (std::size_t i = 0; i < prefix; ++i) {
      double sum = 0;
      for (std::size_t j = i < 3 ? 0 : i - 3; j < std::min(i + 4, prefix); ++j) sum += sums_[kept_[j]];
      pooled.emplace_back(-sum, i);
    }
    std::ranges::sort(pooled);
    std::vector<std::size_t> stay;
    std::map<std::size_t, double> sums;
    for (std::size_t i = 0; i < stays - last; ++i) {
      stay.push_back(kept_[pooled[i].second]);
      sums[stay.back()] = -pooled[i].first;
    }
    for (std::size_t i = prefix; i < kept_.size(); ++i) {
      stay.push_back(kept_[i]);
      sums[kept_[i]] = sums_[kept_[i]];
    }
    std::ranges::sort(stay);
    kept_ = stay;
    sums_ = sums;
  }

  /// Keeps fewer from now on. H2O: the last half of as many, and of the others those with the largest sums. SnapKV,
  /// whose slots are full: as many as its slots have at this position if it has had the smaller number all along.
  void shrink(std::size_t position) {
    policy_.window = policy_.smaller;
    const std::size_t half = policy_.window / 2, in_turn = policy_.window - half;
    while (policy_.chosen == 1 && kept_.size() > policy_.window) evict(position - in_turn);
    if (policy_.chosen != 2 || kept_.size() <= policy_.window - observed()) return;
    const std::size_t rest = (position - half) % in_turn, recent = rest == 0 ? in_turn : rest;
    keep_pooled(std::max(recent, observed()), half + recent);
    if (kept_.size() <= policy_.window - observed()) sums_.clear();
  }

  ReferencePolicy policy_;
  std::vector<std::size_t> kept_;  // ascending
  std::map<std::size_t, double> sums_;
};

}  // namespace qsf::test
