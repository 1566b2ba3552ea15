// Every sampler by its definition: in double precision, with the standard library, by sorting and searching everything.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "qsf/run/sampling.h"

namespace qsf::test {

class Reference {
 public:
  struct Token {
    std::uint32_t id;
    double logit;
  };

  /// The tokens whose logits are not -infinity. `texts` is the text of each token of the vocabulary, or empty.
  Reference(std::span<const float> logits, std::span<const std::uint32_t> context,
            std::span<const std::string> texts = {})
      : context_(context.begin(), context.end()), texts_(texts.begin(), texts.end()) {
    for (std::uint32_t id = 0; id < logits.size(); ++id) {
      if (!std::isinf(logits[id])) tokens_.push_back({id, double{logits[id]}});
    }
  }

  void apply(SamplerKind kind, const SamplerOptions& o) {
    switch (kind) {
      case SamplerKind::penalties:
        return penalties(o);
      case SamplerKind::dry:
        return dry(o);
      case SamplerKind::top_n_sigma:
        return top_n_sigma(double{o.top_n_sigma});
      case SamplerKind::temperature:
        return temperature(o);
      case SamplerKind::top_k:
        sort();
        return cut(o.top_k == 0 ? tokens_.size() : o.top_k);
      case SamplerKind::typical_p:
        return typical_p(double{o.typical_p});
      case SamplerKind::top_p:
        sort();
        return cut_at_share(double{o.top_p});
      case SamplerKind::min_p:
        return min_p(double{o.min_p});
      case SamplerKind::xtc:
        return xtc(double{o.xtc_threshold});
    }
  }

  /// The probabilities by id.
  std::map<std::uint32_t, double> probabilities() const {
    std::map<std::uint32_t, double> by_id;
    const std::vector<double> all = softmax();
    for (std::size_t i = 0; i < all.size(); ++i) by_id[tokens_[i].id] = all[i];
    return by_id;
  }

  /// Algorithm 1 of the paper.
  void mirostat_1(double limit, double vocab_size) {
    sort();
    const std::vector<double> p = softmax();
    double products = 0, squares = 0;
    for (std::size_t i = 0; i + 1 < std::min<std::size_t>(100, p.size()); ++i) {
      const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += t * std::log(p[i] / p[i + 1]);
      squares += t * t;
    }
    const double s = products / squares, epsilon = s - 1;
    const double k = std::pow(epsilon * std::exp2(limit) / (1 - std::pow(vocab_size, -epsilon)), 1 / s);
    cut(static_cast<std::size_t>(std::max(1.0, std::min(k, static_cast<double>(p.size())))));
  }
  /// Algorithm 2.
  void mirostat_2(double limit) {
    sort();
    const std::vector<double> p = softmax();
    std::size_t n = 0;
    while (n < p.size() && -std::log2(p[n]) <= limit) ++n;
    cut(std::max<std::size_t>(n, 1));
  }

 private:
  void sort() {
    std::ranges::sort(
        tokens_, [](const Token& a, const Token& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
  }
  void cut(std::size_t n) { tokens_.resize(std::min(n, tokens_.size())); }
  /// Keeps the first tokens whose probabilities sum to the share.
  void cut_at_share(double share) {
    if (share >= 1) return;
    double sum = 0;
    const std::vector<double> p = softmax();
    for (std::size_t i = 0; i < p.size(); ++i) {
      sum += p[i];
      if (sum >= share) return cut(i + 1);
    }
  }
  std::vector<double> softmax() const {
    double top = -HUGE_VAL, sum = 0;
    for (const Token& token : tokens_) top = std::max(top, token.logit);
    std::vector<double> p;
    for (const Token& token : tokens_) p.push_back(std::exp((token.logit - top) / temperature_));
    for (const double each : p) sum += each;
    for (double& each : p) each /= sum;
    return p;
  }
  double entropy() const {
    double sum = 0;
    for (const double p : softmax()) sum -= p > 0 ? p * std::log(p) : 0;
    return sum;
  }
  std::vector<std::uint32_t> last(std::int32_t n) const {
    const auto all = static_cast<std::int32_t>(context_.size());
    return {n < 0 || n > all ? context_.begin() : context_.end() - n, context_.end()};
  }

  void penalties(const SamplerOptions& o) {
    const std::vector<std::uint32_t> window = last(o.repeat_last_n);
    for (Token& token : tokens_) {
      const auto count = static_cast<double>(std::ranges::count(window, token.id));
      if (count == 0) continue;
      token.logit =
          token.logit > 0 ? token.logit / double{o.repetition_penalty} : token.logit * double{o.repetition_penalty};
      token.logit -= double{o.presence_penalty} + count * double{o.frequency_penalty};
    }
  }

  bool breaks(std::uint32_t id, const SamplerOptions& o) const {
    return !texts_.empty() && std::ranges::any_of(o.dry_sequence_breakers, [&](std::string_view text) {
      return texts_[id].find(text) != std::string::npos;
    });
  }
  /// Tokens of the context after the last breaker.
  std::size_t unbroken(const SamplerOptions& o) const {
    std::string text;
    std::vector<std::size_t> token_of;  // each byte's
    for (std::size_t i = 0; i < context_.size() && !texts_.empty(); ++i) {
      text += texts_[context_[i]];
      token_of.resize(text.size(), i);
    }
    std::size_t begin = 0;
    for (const std::string_view breaker : o.dry_sequence_breakers) {
      const std::size_t at = text.rfind(breaker);
      if (at != std::string::npos) begin = std::max(begin, token_of[at + breaker.size() - 1] + 1);
    }
    return context_.size() - begin;
  }
  void dry(const SamplerOptions& o) {
    const std::vector<std::uint32_t> window = last(o.dry_penalty_last_n);
    const std::size_t most = std::min(unbroken(o), window.size());
    for (Token& token : tokens_) {
      std::size_t longest = 0;
      for (std::size_t at = 0; at < window.size(); ++at) {
        if (window[at] != token.id) continue;
        for (std::size_t n = 1; n <= std::min(at, most); ++n) {
          const auto begin = window.begin() + static_cast<std::ptrdiff_t>(at - n);
          const auto end = window.begin() + static_cast<std::ptrdiff_t>(at);
          if (std::equal(begin, end, window.end() - static_cast<std::ptrdiff_t>(n))) longest = std::max(longest, n);
        }
      }
      if (longest < o.dry_allowed_length || o.dry_multiplier == 0 || breaks(token.id, o)) continue;
      token.logit -=
          double{o.dry_multiplier} * std::pow(double{o.dry_base}, static_cast<double>(longest) - o.dry_allowed_length);
    }
  }

  void top_n_sigma(double n) {
    if (n <= 0) return;
    double mean = 0, variance = 0, top = -HUGE_VAL;
    const auto count = static_cast<double>(tokens_.size());
    for (const Token& token : tokens_) mean += token.logit / count;
    for (const Token& token : tokens_) variance += (token.logit - mean) * (token.logit - mean) / count;
    for (const Token& token : tokens_) top = std::max(top, token.logit);
    std::erase_if(tokens_, [&](const Token& token) { return token.logit < top - n * std::sqrt(variance); });
  }

  void temperature(const SamplerOptions& o) {
    double t = double{o.temperature};
    if (o.dynatemp_range > 0) {
      const double least = std::max(0.0, t - double{o.dynatemp_range}), most = t + double{o.dynatemp_range};
      const double share = tokens_.size() < 2 ? 0 : entropy() / std::log(static_cast<double>(tokens_.size()));
      t = least + (most - least) * std::pow(share, double{o.dynatemp_exponent});
    }
    if (t == 0) {
      sort();
      return cut(1);
    }
    temperature_ = t;
  }

  void typical_p(double share) {
    if (share >= 1) return;
    const double expected = entropy();
    const std::vector<double> p = softmax();
    std::map<std::uint32_t, double> distance;
    for (std::size_t i = 0; i < p.size(); ++i) distance[tokens_[i].id] = std::abs(-std::log(p[i]) - expected);
    std::ranges::sort(tokens_, [&](const Token& a, const Token& b) {
      if (distance[a.id] != distance[b.id]) return distance[a.id] < distance[b.id];
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    cut_at_share(share);
  }

  void min_p(double share) {
    const std::vector<double> p = softmax();
    const double top = *std::ranges::max_element(p);
    std::vector<Token> kept;
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] >= share * top) kept.push_back(tokens_[i]);
    }
    tokens_ = kept;
  }

  void xtc(double threshold) {
    sort();
    const std::vector<double> p = softmax();
    std::size_t n = 0;
    while (n < p.size() && p[n] >= threshold) ++n;
    if (n > 1) tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n - 1));
  }

  std::vector<Token> tokens_;
  std::vector<std::uint32_t> context_;
  std::vector<std::string> texts_;
  double temperature_ = 1;
};

}  // namespace qsf::test
