// A decoder-only transformer in double precision, written from the papers' formulas and independent of the engine:
// RMSNorm (Zhang & Sennrich 2019), LayerNorm (Ba et al. 2016), GELU by tanh (Hendrycks & Gimpel 2016), RoPE in
// half-split form (Su et al. 2021), grouped-query attention, SwiGLU, mixtures of experts (Shazeer et al. 2017), ALiBi
// (Press et al. 2021).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/reference_cache.h"
#include "engine/reference_latent.h"
#include "engine/reference_policy.h"
#include "engine/reference_states.h"
#include "engine/reference_streams.h"
#include "file/small_file.h"
#include "kernels/kernels.h"

namespace qsf::test {

using Vec = std::vector<double>;

/// ALiBi's slopes: 2^(-8 / n), 2^(-16 / n) and so on for a power of two n; for other n those of the one below, then
/// the odd ones of its double.
inline Vec alibi_slopes(std::uint32_t n) {
  std::uint32_t below = 1;
  while (2 * below <= n) below *= 2;
  Vec slopes;
  for (std::uint32_t i = 1; i <= below; ++i) slopes.push_back(std::pow(2.0, -8.0 * i / below));
  for (std::uint32_t i = 1; slopes.size() < n; i += 2) slopes.push_back(std::pow(2.0, -8.0 * i / (2 * below)));
  return slopes;
}

/// Logits [tokens, vocab] of a small file's model, from the weights it was made from.
inline std::vector<Vec> reference_logits(const SmallOptions& o, const SmallFile& file,
                                         const std::vector<std::uint32_t>& tokens, KvType kv_type,
                                         const ReferencePolicy& policy = {}) {
  const auto weight = [&](std::uint32_t stage, Role role) -> const std::vector<float>* {
    const auto found = file.weights.find({stage, role});
    return found == file.weights.end() ? nullptr : &found->second;
  };
  const auto product = [](const std::vector<float>& w, const Vec& x, const std::vector<float>* bias) {
    Vec y(w.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += double{w[r * x.size() + c]} * x[c];
      if (bias != nullptr) y[r] += double{(*bias)[r]};
    }
    return y;
  };
  const auto rms = [](const double* x, const std::vector<float>& w) {
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += x[i] * x[i];
    Vec y(w.size());
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(w.size()) + double{1e-5f});
    for (std::size_t i = 0; i < w.size(); ++i) y[i] = x[i] * inverse * double{w[i]};
    return y;
  };
  const auto unit_rms = [&](double* x, std::size_t n) {
    const Vec y = rms(x, std::vector<float>(n, 1.0f));
    std::copy(y.begin(), y.end(), x);
  };
  const auto norm = [&](const Vec& x, const std::vector<float>& w, const std::vector<float>* bias, Norm kind) {
    if (kind == Norm::rms_norm) return rms(x.data(), w);
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double e : x) mean += e / n;
    for (const double e : x) variance += (e - mean) * (e - mean) / n;
    Vec y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + double{1e-5f}) * double{w[i]};
      if (bias != nullptr) y[i] += double{(*bias)[i]};
    }
    return y;
  };
  const auto activate = [](double x, Activation activation) {
    if (activation == Activation::relu) return std::max(x, 0.0);
    if (activation == Activation::relu2) return std::max(x, 0.0) * std::max(x, 0.0);
    if (activation == Activation::silu) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  };
  const std::uint32_t final_stage = o.n_layers + 1;
  std::vector<LayerKind> kinds(o.n_layers, usual_kind(o));
  for (std::uint32_t layer = 0; layer < o.n_layers && o.shape; ++layer) o.shape(layer, kinds[layer]);
  const auto heads = [&](Vec& v, std::size_t position, const std::vector<float>* head_norm, const LayerKind& kind) {
    const std::uint32_t hd = kind.head_dim;
    for (std::size_t h = 0; h < v.size() / hd; ++h) {
      double* x = &v[h * hd];
      const auto normalize = [&] {
        const std::size_t first = head_norm != nullptr && head_norm->size() > hd ? h * hd : 0;
        const Vec y = norm(Vec(x, x + hd), {&(*head_norm)[first], &(*head_norm)[first] + hd}, nullptr, kind.norm);
        std::copy(y.begin(), y.end(), x);
      };
      if (head_norm != nullptr && kind.late_head_norm == 0) normalize();
      for (std::uint32_t i = 0; i < kind.rope_dims / 2; ++i) {
        double angle = static_cast<double>(position) * std::pow(double{kind.rope_theta}, -2.0 * i / hd);
        if (!o.rope_divisors.empty()) angle /= double{o.rope_divisors[i]};
        const double a = x[i], b = x[i + hd / 2];
        x[i] = a * std::cos(angle) - b * std::sin(angle);
        x[i + hd / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
      if (head_norm != nullptr && kind.late_head_norm != 0) normalize();
      if (head_norm == nullptr && kind.bare_head_norm != 0) unit_rms(x, hd);  // RoPE does not change it
    }
  };

  const KvForms forms = forms_of(kv_type);
  std::vector<ReferenceCache> keys(o.n_layers), values(o.n_layers);
  std::vector<ReferenceState> states(o.n_layers);
  std::vector<std::vector<ReferenceKept>> kept(o.n_layers);  // of each KV head
  for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
    const std::uint32_t window = kinds[layer].window;
    const ReferencePolicy own =
        window != 0 ? ReferencePolicy{.window = window, .aligned = kinds[layer].window_aligned != 0} : policy;
    kept[layer].assign(kinds[layer].n_kv_heads, ReferenceKept(own));
    const std::size_t head_dim = kinds[layer].head_dim, latent = kinds[layer].latent_dim;
    ReferenceCache cache{forms, forms.key, head_dim, std::size_t{1} << std::countr_zero(head_dim | latent)};
    if (forms.rotates() && own.chosen == 0) {
      cache.last = own.window == 0 ? 64 : std::min(64u, own.window);
      cache.first = own.window == 0 ? 4 : std::min(4u, own.sinks);
    }
    keys[layer] = values[layer] = cache;
    values[layer].form = forms.value;
  }
  std::vector<Vec> logits;
  const std::vector<float>& embedding = *weight(0, Role::token_embd);
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    Vec x(o.dim);
    for (std::uint32_t i = 0; i < o.dim; ++i) x[i] = double{embedding[tokens[position] * o.dim + i]};
    for (double& e : x) e *= double{o.model.embedding_scale};
    const std::uint32_t n_input = kinds[0].layer_input;
    Vec inputs;
    if (n_input != 0) {
      const std::vector<float>& rows = *weight(0, Role::layer_embd);
      inputs = product(*weight(0, Role::layer_inputs_proj), x, nullptr);
      for (double& e : inputs) e *= double{o.model.layer_proj_scale};
      for (std::size_t i = 0; i < inputs.size(); i += n_input) {
        const Vec part = rms(&inputs[i], *weight(final_stage, Role::layer_inputs_norm));
        for (std::uint32_t j = 0; j < n_input; ++j) {
          const double row = double{rows[tokens[position] * inputs.size() + i + j]};
          inputs[i + j] = (part[j] + row * double{o.model.layer_embd_scale}) * double{o.model.layer_input_scale};
        }
      }
    }
    const std::uint32_t n_streams = kinds[0].streams;
    std::vector<Vec> streams;
    if (n_streams != 0) streams = StreamsReference::begin(x, *weight(0, Role::streams_in), n_streams);
    for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
      const LayerKind& kind = kinds[layer];
      const std::uint32_t s = layer + 1, hd = kind.head_dim;
      const StreamsReference all{[&](Role role) { return weight(s, role); }};
      if (n_streams != 0) {
        all.predict(streams);
        x = streams[0];
      }
      const bool on_stream = kind.norm_place == NormPosition::stream, before = kind.norm_place != NormPosition::after;
      const bool after = kind.norm_place != NormPosition::before && !on_stream;
      const auto add = [&](Vec& to, Vec what, Role post_norm) {
        if (after) what = norm(what, *weight(s, post_norm), nullptr, kind.norm);
        const float kept = post_norm == Role::attn_post_norm ? kind.stream_scale : kind.network_stream_scale;
        for (std::size_t i = 0; i < to.size(); ++i)
          to[i] = to[i] * double{kept} + what[i] * double{kind.residual_scale};
      };
      const auto attend = [&](const Vec& in) {
        const bool by_head = kind.norms_by_head != 0;
        Vec q = product(*weight(s, Role::attn_q), in, weight(s, Role::attn_q_bias));
        heads(q, position, weight(s, by_head ? Role::attn_q_norm_all : Role::attn_q_norm), kind);
        if (kind.query_growth != 0) {
          const double counted = static_cast<double>(position) + kind.query_from_one;
          const double spans = std::floor(counted / kind.query_span);
          for (double& e : q) e *= 1 + double{kind.query_growth} * std::log(1 + spans);
        }
        if (kind.kv_from == 0) {
          Vec k = product(*weight(s, Role::attn_k), in, weight(s, Role::attn_k_bias));
          Vec v = kind.v_from_k != 0 ? k : product(*weight(s, Role::attn_v), in, weight(s, Role::attn_v_bias));
          for (std::size_t h = 0; h < v.size() && kind.v_norm != 0; h += hd) unit_rms(&v[h], hd);
          heads(k, position, weight(s, by_head ? Role::attn_k_norm_all : Role::attn_k_norm), kind);
          keys[layer].push(k);
          values[layer].push(v);
        }
        const std::uint32_t from = kind.kv_from != 0 ? kind.kv_from - 1 : layer;
        keys[from].turn_back(q);
        const Vec slopes = alibi_slopes(kind.n_heads);
        const double scale =
            kind.attention_scale != 0 ? double{kind.attention_scale} : 1 / std::sqrt(static_cast<double>(hd));
        Vec attended(q.size());
        std::vector<std::size_t> seen;
        for (std::uint32_t h = 0; h < kind.n_heads; ++h) {
          const std::uint32_t group = kind.n_heads / kind.n_kv_heads, kv = h / group;
          if (h % group == 0) seen = kept[layer][kv].next(position);
          Vec p;
          double most = -1e300, sum = 0;
          for (const std::size_t t : seen) {
            double dot = 0;
            for (std::uint32_t i = 0; i < hd; ++i)
              dot += taken(q[h * hd + i], forms) * keys[from].at(t, position)[kv * hd + i];
            const double slope = slopes[h] * (kind.alibi_scale != 0 ? double{kind.alibi_scale} : scale);
            p.push_back(dot * scale - (kind.alibi != 0 ? slope * static_cast<double>(position - t) : 0));
            most = std::max(most, p.back());
          }
          if (const auto* sinks = weight(s, Role::attn_sinks)) {
            most = std::max(most, double{(*sinks)[h]});
            sum = std::exp(double{(*sinks)[h]} - most);
          }
          for (double& e : p) sum += e = std::exp(e - most);
          for (double& e : p) e = taken(e / sum, forms);
          for (std::size_t at = 0; at < seen.size(); ++at) {
            const Vec& value = values[from].at(seen[at], position);
            for (std::uint32_t i = 0; i < hd; ++i) attended[h * hd + i] += p[at] * value[kv * hd + i];
          }
          kept[layer][kv].weigh(p);
        }
        keys[from].turn_back(attended);
        if (kind.attention_gate != 0) {
          const Vec gate = product(*weight(s, Role::attn_gate), in, nullptr);
          for (std::size_t i = 0; i < gate.size(); ++i) attended[i] *= StateReference::sigmoid(gate[i]);
        }
        return product(*weight(s, Role::attn_o), attended, weight(s, Role::attn_o_bias));
      };
      const auto mix = [&](const Vec& in) {
        if (kind.mixer == Mixer::latent) {
          return LatentReference{kind, [&](Role role) { return weight(s, role); }, keys[layer], kept[layer][0]}.mix(
              in, position);
        }
        if (kind.mixer == Mixer::attention) return attend(in);
        if (kind.mixer == Mixer::lightning) {
          return StateReference{kind, [&](Role role) { return weight(s, role); }, states[layer]}.lightning(in, layer,
                                                                                                           o.n_layers);
        }
        Vec out = StateReference{kind, [&](Role role) { return weight(s, role); }, states[layer]}.mix(in);
        if (kind.mixer != Mixer::attention_and_mamba2) return out;
        const Vec other = attend(in);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += other[i];
        return out;
      };
      const auto gated = [&](Vec gate, Vec up) {
        const double most = kind.gate_limit != 0 ? double{kind.gate_limit} : 1e300, slope = double{kind.gate_slope};
        for (std::size_t i = 0; i < up.size(); ++i) {
          const double u = std::clamp(up[i], -most, most) + double{kind.up_offset};
          gate[i] = activate(slope * std::min(gate[i], most), kind.activation) / slope * u;
        }
        return gate;
      };
      /// Rows of one expert.
      const auto of_expert = [&](Role role, std::size_t e) {
        const std::vector<float>* all = weight(s, role);
        std::vector<float> part;
        if (all == nullptr) return part;
        const std::size_t n = all->size() / kind.n_experts;
        part.assign(all->begin() + static_cast<std::ptrdiff_t>(e * n),
                    all->begin() + static_cast<std::ptrdiff_t>((e + 1) * n));
        return part;
      };
      const auto expert = [&](const Vec& in, std::size_t e) {
        const auto times = [&](Role matrix, Role bias, const Vec& x) {
          const std::vector<float> b = of_expert(bias, e);
          return product(of_expert(matrix, e), x, b.empty() ? nullptr : &b);
        };
        Vec hidden = times(Role::expert_up, Role::expert_up_bias, in);
        if (kind.plain_experts == 0) {
          hidden = gated(times(Role::expert_gate, Role::expert_gate_bias, in), hidden);
        } else {
          for (double& e : hidden) e = activate(e, kind.activation);
        }
        return times(Role::expert_down, Role::expert_down_bias, hidden);
      };
      const auto mixture = [&](const Vec& seen, const Vec& in) {  // by the router, by the experts
        Vec logit = product(*weight(s, Role::router), seen, weight(s, Role::router_bias));
        for (double& l : logit) l *= double{kind.router_logit_scale};
        Vec weights = logit;
        double sum = 0;
        for (double& w : weights) sum += w = std::exp(w);
        for (std::size_t e = 0; e < weights.size(); ++e) {
          weights[e] = kind.router == Router::sigmoid ? 1 / (1 + std::exp(-logit[e])) : weights[e] / sum;
        }
        Vec keys = weights;
        if (const auto* bias = weight(s, Role::router_choice_bias)) {
          for (std::size_t e = 0; e < keys.size(); ++e) keys[e] += double{(*bias)[e]};
        }
        if (kind.router_groups != 0) {
          const std::size_t size = keys.size() / kind.router_groups;
          std::vector<std::pair<double, std::size_t>> groups;  // best first
          for (std::size_t g = 0; g < kind.router_groups; ++g) {
            Vec own(keys.begin() + static_cast<std::ptrdiff_t>(g * size),
                    keys.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
            std::sort(own.rbegin(), own.rend());
            groups.emplace_back(-(own[0] + (kind.router == Router::sigmoid && size > 1 ? own[1] : 0)), g);
          }
          std::sort(groups.begin(), groups.end());
          for (std::size_t g = kind.router_groups_used; g < groups.size(); ++g) {
            for (std::size_t e = 0; e < size; ++e) keys[groups[g].second * size + e] = -1e300;
          }
        }
        std::vector<std::size_t> order(keys.size());
        for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
        order.resize(kind.experts_used);
        for (std::size_t k = 0; k < order.size() && kind.router == Router::softmax_near; ++k) {
          const double most = logit[order[k]];
          double near = 0;
          for (std::size_t e = 0; e < logit.size(); ++e) {
            const double far = 2 * double{kind.router_jitter} * std::max(std::fabs(logit[e]), most);
            const bool taken = std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), e) !=
                               order.begin() + static_cast<std::ptrdiff_t>(k);
            if (!taken && most - logit[e] <= far) near += std::exp(logit[e] - most);
          }
          weights[order[k]] = 1 / near;
        }
        sum = 0;
        for (const std::size_t e : order) sum += weights[e];
        const bool whole = kind.router_norm != 0 || kind.router == Router::softmax_chosen;
        Vec out(in.size());
        for (const std::size_t e : order) {
          const auto* factors = weight(s, Role::router_expert_scale);
          const double factor = factors != nullptr ? double{(*factors)[e]} : 1.0;
          const double by = weights[e] / (whole ? sum : 1) * double{kind.router_scale} * factor;
          const bool first = kind.weighted_inputs != 0;
          Vec of_expert = in;
          for (double& x : of_expert) x *= first ? by : 1;
          const Vec made = expert(of_expert, e);
          for (std::size_t i = 0; i < out.size(); ++i) out[i] += (first ? 1 : by) * made[i];
        }
        if (kind.shared_dim == 0) return out;
        Vec hidden = product(*weight(s, Role::shared_up), in, nullptr);
        if (kind.plain_experts == 0) {
          hidden = gated(product(*weight(s, Role::shared_gate), in, nullptr), hidden);
        } else {
          for (double& e : hidden) e = activate(e, kind.activation);
        }
        const Vec shared = product(*weight(s, Role::shared_down), hidden, nullptr);
        double by = 1;
        if (const auto* router = weight(s, Role::shared_router)) {
          by = 1 / (1 + std::exp(-product(*router, in, nullptr)[0]));
        }
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += by * shared[i];
        return out;
      };
      const auto dense = [&](const Vec& in) {
        const Vec up = product(*weight(s, Role::ffn_up), in, weight(s, Role::ffn_up_bias));
        Vec hidden(up.size());
        if (kind.ffn != Ffn::plain) {
          Vec gate = product(*weight(s, Role::ffn_gate), in, weight(s, Role::ffn_gate_bias));
          if (kind.gate_cut != 0) {
            double sum = 0, squares = 0;
            for (const double g : gate) sum += g, squares += g * g;
            const double n = static_cast<double>(gate.size()), mean = sum / n;
            const double cut = mean + double{kind.gate_cut} * std::sqrt(squares / n - mean * mean);
            for (double& g : gate) g = std::max(g - cut, 0.0);
          }
          hidden = gated(gate, up);
        } else {
          for (std::size_t i = 0; i < up.size(); ++i) hidden[i] = activate(up[i], kind.activation);
          const auto number = [&](Role role) { return double{weight(s, role)->front()}; };
          for (std::size_t i = 0; i < up.size() && kind.activation == Activation::xielu; ++i) {
            const double beta = number(Role::xielu_beta), x = up[i];
            const double above = std::log1p(std::exp(number(Role::xielu_p)));
            const double below = beta + std::log1p(std::exp(number(Role::xielu_n)));
            const double curve = below * (std::expm1(std::min(x, number(Role::xielu_eps))) - x);
            hidden[i] = (x > 0 ? above * x * x : curve) + beta * x;
          }
        }
        return product(*weight(s, Role::ffn_down), hidden, weight(s, Role::ffn_bias));
      };
      const auto feed = [&](const Vec& stream, const Vec& in) {
        if (kind.ffn == Ffn::mixture) return mixture(in, in);
        Vec made = dense(in);
        if (kind.ffn != Ffn::gated_and_mixture) return made;
        const auto own = [&](const Vec& of, Role role) { return norm(of, *weight(s, role), nullptr, kind.norm); };
        made = own(made, Role::dense_post_norm);
        const Vec chosen =
            own(mixture(own(stream, Role::router_norm), own(stream, Role::expert_norm)), Role::expert_post_norm);
        for (std::size_t i = 0; i < made.size(); ++i) made[i] += chosen[i];
        return made;
      };
      const auto normed = [&](const Vec& in, Role role, Role bias) {
        return before ? norm(in, *weight(s, role), weight(s, bias), kind.norm) : in;
      };
      const Vec stream = x;
      Vec mixer_in;
      if (kind.mixer != Mixer::none) {
        mixer_in = normed(stream, Role::attn_norm, Role::attn_norm_bias);
        if (on_stream) x = mixer_in;
        add(x, mix(mixer_in), Role::attn_post_norm);
        if (kind.laurel_rank != 0) {
          const Vec narrow = product(*weight(s, Role::laurel_left), mixer_in, nullptr);
          const Vec other = norm(product(*weight(s, Role::laurel_right), narrow, nullptr),
                                 *weight(s, Role::laurel_norm), nullptr, kind.norm);
          for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] + mixer_in[i] + other[i]) / std::sqrt(2);
        }
      }
      if (kind.ffn == Ffn::none) continue;
      const bool parallel = kind.residual == Residual::parallel && kind.mixer != Mixer::none;
      const bool shared_norm = parallel && before && weight(s, Role::ffn_norm) == nullptr;
      if (on_stream) x = normed(x, Role::ffn_norm, Role::ffn_norm_bias);
      const Vec& fed = parallel ? stream : x;
      const Vec network_in = shared_norm ? mixer_in : on_stream ? x : normed(fed, Role::ffn_norm, Role::ffn_norm_bias);
      add(x, feed(fed, network_in), Role::ffn_post_norm);
      if (n_streams != 0) {
        all.correct(streams, x);
        x = streams[0];
      }
      if (n_input != 0) {
        Vec seen = x;
        const std::vector<float>* scales = weight(s, Role::stream_scale);
        for (std::size_t i = 0; i < x.size() && scales != nullptr; ++i) seen[i] *= double{(*scales)[i]};
        Vec gate = product(*weight(s, Role::layer_input_gate), seen, nullptr);
        for (std::uint32_t i = 0; i < n_input; ++i) {
          gate[i] = activate(gate[i], kind.activation) * inputs[std::size_t{layer} * n_input + i];
        }
        const Vec made = norm(product(*weight(s, Role::layer_input_proj), gate, nullptr),
                              *weight(s, Role::layer_input_post_norm), nullptr, kind.norm);
        for (std::size_t i = 0; i < x.size() && n_streams == 0; ++i) x[i] += made[i];
        for (std::size_t stream = 1; stream < n_streams; ++stream) {
          for (std::size_t i = 0; i < x.size(); ++i) streams[stream][i] += made[i];
        }
      }
      if (const std::vector<float>* factor = weight(s, Role::layer_scale)) {
        for (double& e : x) e *= double{factor->front()};
      }
    }
    if (n_streams != 0) x = StreamsReference::end(streams, *weight(final_stage, Role::streams_out));
    const std::vector<float>* head = weight(final_stage, Role::head);
    const Vec last =
        norm(x, *weight(final_stage, Role::final_norm), weight(final_stage, Role::final_norm_bias), kinds[0].norm);
    logits.push_back(product(head != nullptr ? *head : embedding, last, nullptr));
    for (double& e : logits.back()) e *= double{o.model.logit_scale};
  }
  return logits;
}

}  // namespace qsf::test
