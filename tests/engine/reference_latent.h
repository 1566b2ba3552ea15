// Latent attention (DeepSeek-AI 2024) in double precision, from the paper's formulas and independent of the engine:
// each head's query meets the latents in their own space.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/reference_cache.h"
#include "engine/reference_policy.h"
#include "qsf/file/roles.h"

namespace qsf::test {

struct LatentReference {
  using Vec = std::vector<double>;
  using Weight = std::function<const std::vector<float>*(Role)>;

  const LayerKind& kind;
  Weight weight;
  ReferenceCache& keys;  // of all positions: [latent_dim + rope_dims]
  ReferenceKept& kept;   // the positions that a token sees

  Vec product(Role role, const Vec& x) const { return part(role, x, 0, 1); }
  /// The product with the rows of one of `n` heads.
  Vec part(Role role, const Vec& x, std::size_t head, std::size_t n) const {
    const std::vector<float>& w = *weight(role);
    Vec y(w.size() / n / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += double{w[(head * y.size() + r) * x.size() + c]} * x[c];
    }
    return y;
  }
  Vec norm(Vec x, Role role) const {
    double sum = 0;
    for (const double e : x) sum += e * e;
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(x.size()) + double{kind.norm_epsilon});
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= inverse * double{(*weight(role))[i]};
    return x;
  }
  void rotate(double* x, std::size_t position) const {
    const std::size_t half = kind.rope_dims / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(double{kind.rope_theta}, -static_cast<double>(i) / static_cast<double>(half));
      const double a = x[i], b = x[i + half];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + half] = b * std::cos(angle) + a * std::sin(angle);
    }
  }

  Vec mix(const Vec& in, std::size_t position) const {
    const std::size_t latent = kind.latent_dim, turned = kind.rope_dims;
    Vec key = norm(product(Role::latent_kv, in), Role::latent_kv_norm), end = product(Role::latent_k_rope, in);
    rotate(end.data(), position);
    key.insert(key.end(), end.begin(), end.end());
    keys.push(key);
    Vec queries = in;
    if (kind.query_rank != 0) queries = norm(product(Role::latent_q_down, in), Role::latent_q_norm);
    const double scale = kind.attention_scale != 0 ? double{kind.attention_scale}
                                                   : 1 / std::sqrt(static_cast<double>(kind.latent_head_dim));
    const std::vector<std::size_t> seen = kept.next(position);
    Vec out;
    for (std::size_t head = 0; head < kind.n_heads; ++head) {
      Vec q = part(Role::latent_k_up, part(Role::latent_q, queries, head, kind.n_heads), head, kind.n_heads);
      Vec last = part(Role::latent_q_rope, queries, head, kind.n_heads);
      rotate(last.data(), position);
      q.insert(q.end(), last.begin(), last.end());
      keys.turn_back(q);
      Vec scores;
      double most = -1e300, sum = 0;
      for (const std::size_t t : seen) {
        double dot = 0;
        for (std::size_t i = 0; i < latent + turned; ++i) dot += taken(q[i], keys.forms) * keys.at(t, position)[i];
        scores.push_back(dot * scale);
        most = std::max(most, scores.back());
      }
      for (double& e : scores) sum += e = std::exp(e - most);
      for (double& e : scores) e = taken(e / sum, keys.forms);
      Vec value(latent);
      for (std::size_t at = 0; at < seen.size(); ++at) {
        for (std::size_t i = 0; i < latent; ++i) value[i] += scores[at] * keys.at(seen[at], position)[i];
      }
      keys.turn_back(value);
      kept.weigh(scores);
      const Vec made = part(Role::latent_v_up, value, head, kind.n_heads);
      out.insert(out.end(), made.begin(), made.end());
    }
    return product(Role::latent_out, out);
  }
};

}  // namespace qsf::test
