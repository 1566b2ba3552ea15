// Mixers that keep a state instead of keys and values, one position after the other in double precision, from the
// papers' formulas and independent of the engine: gated short convolutions (LFM2), the gated delta rule (Yang et al.
// 2024), Mamba-2 (Dao and Gu 2024), Mamba (Gu and Dao 2023), lightning attention (Qin et al. 2024).
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "qsf/file/roles.h"

namespace qsf::test {

/// What one layer keeps of a sequence.
struct ReferenceState {
  std::vector<std::vector<double>> inputs;  // of the convolution, of all positions
  std::vector<double> state;                // [heads, key_dim, value_dim]
};

struct StateReference {
  using Vec = std::vector<double>;
  /// A tensor of the layer, null where it has none.
  using Weight = std::function<const std::vector<float>*(Role)>;

  const LayerKind& kind;
  Weight weight;
  ReferenceState& kept;

  Vec product(Role role, const Vec& x) const {
    const std::vector<float>& w = *weight(role);
    Vec y(w.size() / x.size());
    for (std::size_t i = 0; i < w.size(); ++i) y[i / x.size()] += double{w[i]} * x[i % x.size()];
    return y;
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  /// Of all inputs so far, the last one's output.
  Vec convolve(Vec input) const {
    kept.inputs.push_back(std::move(input));
    const std::size_t n = kept.inputs.size(), channels = kept.inputs[0].size();
    Vec out(channels);
    for (std::size_t back = 0; back < kind.conv_taps && back < n; ++back) {
      for (std::size_t c = 0; c < channels; ++c) {
        out[c] += double{(*weight(Role::conv_weight))[(kind.conv_taps - 1 - back) * channels + c]} *
                  kept.inputs[n - 1 - back][c];
      }
    }
    if (const auto* bias = weight(Role::conv_bias)) {
      for (std::size_t c = 0; c < channels; ++c) out[c] += double{(*bias)[c]};
    }
    return out;
  }

  Vec short_conv(const Vec& in) const {
    Vec gated = product(Role::conv_x, in);
    const Vec b = product(Role::conv_b, in), c = product(Role::conv_c, in);
    for (std::size_t i = 0; i < gated.size(); ++i) gated[i] *= b[i];
    Vec y = convolve(gated);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= c[i];
    return product(Role::conv_out, y);
  }

  static void make_unit(double* x, std::size_t n) {
    double sum = 1e-6;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * x[i];
    for (std::size_t i = 0; i < n; ++i) x[i] /= std::sqrt(sum);
  }

  Vec recurrence(const Vec& in) const {
    const bool delta = kind.mixer == Mixer::delta_net;
    const std::size_t keys = kind.state_keys(), values = kind.state_values();
    const std::size_t rows = kind.state_key_dim, columns = kind.state_value_dim;
    // Channels lie as q, k, v; of Mamba-2 as x, B, C.
    Vec parts[3] = {product(delta ? Role::state_q : Role::state_v, in), product(Role::state_k, in),
                    product(delta ? Role::state_v : Role::state_q, in)};
    Vec all;
    for (const Vec& part : parts) all.insert(all.end(), part.begin(), part.end());
    all = convolve(all);
    for (double& e : all) e *= sigmoid(e);
    double* const first = all.data();
    double *q = first, *k = first + keys, *v = first + 2 * keys;
    if (!delta) v = first, k = first + values, q = k + keys;
    for (std::size_t h = 0; delta && h < kind.state_key_heads; ++h) {
      make_unit(q + h * rows, rows);
      make_unit(k + h * rows, rows);
      for (std::size_t i = 0; i < rows; ++i) q[h * rows + i] /= std::sqrt(static_cast<double>(rows));
    }
    const Vec steps = product(Role::state_a, in);
    const Vec rates = delta ? product(Role::state_b, in) : Vec{};
    Vec gate = product(Role::state_z, in);
    for (double& e : gate) e *= sigmoid(e);
    kept.state.resize(kind.state_heads * rows * columns);
    Vec out(values);
    for (std::size_t h = 0; h < kind.state_heads; ++h) {
      const std::size_t key_head =
          kind.state_tiled != 0 ? h % kind.state_key_heads : h * kind.state_key_heads / kind.state_heads;
      const double* const key = k + key_head * rows;
      const double* const query = q + key_head * rows;
      const double step = std::log1p(std::exp(steps[h] + double{(*weight(Role::state_dt_bias))[h]}));
      const double decay = std::exp(double{(*weight(Role::state_decay))[h]} * step);
      for (std::size_t c = 0; c < columns; ++c) {
        const double value = v[h * columns + c];
        double* const state = &kept.state[h * rows * columns];
        double known = 0;
        for (std::size_t r = 0; r < rows; ++r) known += (state[r * columns + c] *= decay) * key[r];
        const double change = delta ? (value - known) * sigmoid(rates[h]) : value * step;
        for (std::size_t r = 0; r < rows; ++r) {
          out[h * columns + c] += (state[r * columns + c] += key[r] * change) * query[r];
        }
        if (!delta) out[h * columns + c] += value * double{(*weight(Role::state_skip))[h]};
      }
    }
    // Normed by heads and then gated, or gated and then normed, as a whole or by groups.
    const std::vector<float>* scale = weight(delta ? Role::state_norm : Role::state_norm_all);
    const bool late = delta || kind.state_norm_first != 0;
    for (std::size_t i = 0; !late && i < values; ++i) out[i] *= gate[i];
    const std::size_t size = delta ? columns : kind.state_group_norm != 0 ? values / kind.state_key_heads : values;
    for (std::size_t begin = 0; begin < values && scale != nullptr; begin += size) {
      double sum = 0;
      for (std::size_t i = 0; i < size; ++i) sum += out[begin + i] * out[begin + i];
      const double inverse = 1 / std::sqrt(sum / static_cast<double>(size) + double{kind.norm_epsilon});
      for (std::size_t i = 0; i < size; ++i) out[begin + i] *= inverse * double{(*scale)[(begin + i) % scale->size()]};
    }
    for (std::size_t i = 0; late && i < values; ++i) out[i] *= gate[i];
    return product(Role::state_out, out);
  }

  /// Mamba (Gu and Dao 2023): a state of state_key_dim numbers for each channel.
  Vec scan(const Vec& in) const {
    Vec x = convolve(product(Role::state_v, in)), gate = product(Role::state_z, in);
    for (double& e : x) e *= sigmoid(e);
    const auto made = [&](Role role, Role norm) {
      Vec y = product(role, x);
      double sum = 0;
      for (const double e : y) sum += e * e;
      const double inverse = 1 / std::sqrt(sum / static_cast<double>(y.size()) + double{kind.norm_epsilon});
      const auto* scale = weight(norm);
      for (std::size_t i = 0; scale != nullptr && i < y.size(); ++i) y[i] *= inverse * double{(*scale)[i]};
      return y;
    };
    const Vec key = made(Role::state_in_k, Role::state_k_norm), query = made(Role::state_in_q, Role::state_q_norm);
    const Vec steps = product(Role::state_step, made(Role::state_in_rank, Role::state_rank_norm));
    kept.state.resize(x.size() * key.size());
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double step = std::log1p(std::exp(steps[c] + double{(*weight(Role::state_dt_bias))[c]}));
      double sum = double{(*weight(Role::state_skip))[c]} * x[c];
      for (std::size_t i = 0; i < key.size(); ++i) {
        double& state = kept.state[c * key.size() + i];
        state =
            state * std::exp(double{(*weight(Role::state_decays))[c * key.size() + i]} * step) + key[i] * step * x[c];
        sum += state * query[i];
      }
      x[c] = sum * gate[c] * sigmoid(gate[c]);
    }
    return product(Role::state_out, x);
  }

  /// Lightning attention (Qin et al. 2024) as a sum over all positions so far, of values weighed by their keys. Its
  /// norm has an epsilon of 1e-6.
  Vec lightning(const Vec& in, std::size_t layer, std::size_t n_layers) const {
    const auto activated = [&](Role role) {
      Vec y = product(role, in);
      for (double& e : y) e *= sigmoid(e);
      return y;
    };
    const Vec query = activated(Role::state_q);
    Vec both = activated(Role::state_k);
    const std::size_t keys = both.size(), rows = kind.state_key_dim, columns = kind.state_value_dim;
    for (const double e : activated(Role::state_v)) both.push_back(e);
    kept.inputs.push_back(both);
    Vec out(kind.state_values());
    const double depth = 1 - static_cast<double>(layer) / (static_cast<double>(n_layers) - 1 + 1e-5) + 1e-5;
    for (std::size_t h = 0; h < kind.state_heads; ++h) {
      const std::size_t key_head = h * kind.state_key_heads / kind.state_heads;
      const double slope = std::pow(2, -8.0 * static_cast<double>(h + 1) / kind.state_heads) * depth;
      for (std::size_t back = 0; back < kept.inputs.size(); ++back) {
        const Vec& then = kept.inputs[kept.inputs.size() - 1 - back];
        double weight = 0;
        for (std::size_t r = 0; r < rows; ++r) weight += query[key_head * rows + r] * then[key_head * rows + r];
        weight *= std::exp(-slope * static_cast<double>(back));
        for (std::size_t c = 0; c < columns; ++c) out[h * columns + c] += weight * then[keys + h * columns + c];
      }
    }
    double squares = 0;
    for (const double e : out) squares += e * e;
    const double by = 1 / std::sqrt(squares / static_cast<double>(out.size()) + 1e-6);
    const Vec gate = product(Role::state_z, in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] *= by * double{(*weight(Role::state_norm_all))[i]} * sigmoid(gate[i]);
    }
    return product(Role::state_out, out);
  }

  Vec mix(const Vec& in) const {
    if (kind.mixer == Mixer::short_conv) return short_conv(in);
    return kind.mixer == Mixer::mamba ? scan(in) : recurrence(in);
  }
};

}  // namespace qsf::test
