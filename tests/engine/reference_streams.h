// Several streams of a model, predicted and corrected (AltUp, Baykal et al. 2023, as Gemma 3n has it), in double
// precision and independent of the engine: streams are columns of a matrix, which factors multiply.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "qsf/file/roles.h"

namespace qsf::test {

struct StreamsReference {
  using Vec = std::vector<double>;
  using Weight = std::function<const std::vector<float>*(Role)>;

  Weight weight;  // of the layer

  static Vec product(const std::vector<float>& w, const Vec& x, std::size_t first_row, std::size_t n_rows) {
    Vec y(n_rows);
    for (std::size_t r = 0; r < n_rows; ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += double{w[(first_row + r) * x.size() + c]} * x[c];
    }
    return y;
  }
  static double length(const Vec& x) {
    double sum = 0;
    for (const double e : x) sum += e * e;
    return std::sqrt(sum / static_cast<double>(x.size()));
  }
  static void level(const Vec& as, Vec& x) {
    const double by = length(as) / std::max(length(x), std::sqrt(1e-5));
    for (double& e : x) e *= by;
  }

  /// All streams, of which the first is x.
  static std::vector<Vec> begin(const Vec& x, const std::vector<float>& projections, std::size_t n) {
    std::vector<Vec> all{x};
    for (std::size_t i = 1; i < n; ++i) {
      all.push_back(product(projections, x, (i - 1) * x.size(), x.size()));
      level(x, all.back());
    }
    return all;
  }

  static Vec end(const std::vector<Vec>& all, const std::vector<float>& projections) {
    const std::size_t dim = all[0].size(), n = all.size();
    Vec mean = all[0];
    for (std::size_t i = 1; i < n; ++i) {
      Vec x = product(projections, all[i], (i - 1) * dim, dim);
      level(all[0], x);
      for (std::size_t c = 0; c < dim; ++c) mean[c] += x[c];
    }
    for (double& e : mean) e /= static_cast<double>(n);
    return mean;
  }

  Vec routed(const Vec& x, std::size_t n) const {
    const std::vector<float>& scale = *weight(Role::stream_router_norm);
    const double by = 1 / std::sqrt(length(x) * length(x) + double{1e-5f}) / static_cast<double>(x.size());
    Vec normed(x.size());
    for (std::size_t c = 0; c < x.size(); ++c) normed[c] = x[c] * by * double{scale[c]};
    Vec y = product(*weight(Role::stream_router), normed, 0, n);
    for (double& e : y) e = std::tanh(e);
    return y;
  }

  void predict(std::vector<Vec>& all) const {
    const std::size_t n = all.size();
    const Vec factors = product(*weight(Role::stream_predict), routed(all[0], n), 0, n * n);
    const std::vector<Vec> before = all;
    for (std::size_t to = 0; to < n; ++to) {
      for (std::size_t from = 0; from < n; ++from) {
        for (std::size_t c = 0; c < all[to].size(); ++c) all[to][c] += factors[to * n + from] * before[from][c];
      }
    }
  }

  /// `x` is what the layer made of the first stream.
  void correct(std::vector<Vec>& all, const Vec& x) const {
    const Vec factors = product(*weight(Role::stream_correct), routed(x, all.size()), 0, all.size());
    const Vec before = all[0];
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t c = 0; c < x.size(); ++c) all[i][c] += (1 + factors[i]) * (x[c] - before[c]);
    }
  }
};

}  // namespace qsf::test
