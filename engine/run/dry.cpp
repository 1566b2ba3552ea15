// DRY, "don't repeat yourself" (Weidmann 2024, text-generation-webui #5677): a token that would extend a repetition
// loses multiplier * base^(length - allowed_length) of its logit. A repetition is a text at the end of the context that
// is in the context before.
#include <algorithm>
#include <utility>

#include "qsf/base/exact.h"
#include "run/samplers.h"

namespace qsf {
namespace {

/// Tokens beyond allowed_length that raise the penalty. The bound limits the comparisons for each token of the context;
/// with the default base it is a factor of 10^62.
constexpr std::size_t kMostCounted = 256;

/// The texts of tokens, in which breakers are searched.
class Breakers {
 public:
  explicit Breakers(const SamplerInput& in) : tokenizer_(in.tokenizer) {
    if (tokenizer_ != nullptr) texts_ = in.options.dry_sequence_breakers;
  }

  /// Whether a breaker is within the text of the token.
  bool in(std::uint32_t token) const {
    return std::ranges::any_of(
        texts_, [&](std::string_view text) { return tokenizer_->bytes(token).find(text) != std::string_view::npos; });
  }

  /// Returns the number of tokens after the last one in which a breaker ends, at most `most`.
  std::size_t tokens_after(std::span<const std::uint32_t> context, std::size_t most) const {
    most = std::min(most, context.size());
    if (texts_.empty()) return most;
    for (std::size_t n = 0; n < most; ++n) {
      const std::span<const std::uint32_t> before = context.first(context.size() - n);
      if (std::ranges::any_of(texts_, [&](std::string_view text) { return ends_in_last(before, text); })) return n;
    }
    return most;
  }

 private:
  /// Whether the breaker ends in the last of the tokens.
  bool ends_in_last(std::span<const std::uint32_t> tokens, std::string_view breaker) const {
    const std::string_view last = tokenizer_->bytes(tokens.back());
    for (std::size_t end = last.size(); end > 0; --end) {
      if (ends_at(tokens, last.substr(0, end), breaker)) return true;
    }
    return false;
  }

  /// Whether the text of the tokens, in which `text` replaces the last one's, ends with the breaker.
  bool ends_at(std::span<const std::uint32_t> tokens, std::string_view text, std::string_view breaker) const {
    while (true) {
      const std::size_t n = std::min(text.size(), breaker.size());
      if (!text.ends_with(breaker.substr(breaker.size() - n))) return false;
      breaker.remove_suffix(n);
      tokens = tokens.first(tokens.size() - 1);
      if (breaker.empty()) return true;
      if (tokens.empty()) return false;
      text = tokenizer_->bytes(tokens.back());
    }
  }

  const Tokenizer* tokenizer_;
  std::span<const std::string_view> texts_;
};

}  // namespace

void samplers::dry(Candidates& candidates, const SamplerInput& in) {
  const SamplerOptions& o = in.options;
  const std::span<const std::uint32_t> window = last_tokens(in.context, o.dry_penalty_last_n);
  if (o.dry_multiplier == 0 || window.empty()) return;
  const Breakers breakers(in);
  const std::size_t allowed = o.dry_allowed_length, last = window.size() - 1;
  const std::size_t most = std::min(breakers.tokens_after(in.context, allowed + kMostCounted), window.size());
  if (most < allowed) return;

  // The longest repetition that each token would extend.
  const auto [logits, longest] = candidates.logits();
  for (const std::uint32_t id : window) {
    if (id < logits.size()) longest[id].id = 0;
  }
  for (std::size_t next = allowed; next < window.size(); ++next) {
    std::size_t n = 0;
    while (n < std::min(most, next) && window[next - 1 - n] == window[last - n]) ++n;
    if (n < allowed || window[next] >= logits.size()) continue;
    std::uint32_t& length = longest[window[next]].id;
    length = std::max(length, static_cast<std::uint32_t>(n));
  }
  for (const std::uint32_t id : window) {
    if (id >= logits.size() || longest[id].id == 0) continue;
    const std::size_t length = std::exchange(longest[id].id, 0);
    if (breakers.in(id)) continue;
    const double growth = exact::pow(double{o.dry_base}, static_cast<double>(length - allowed));
    logits[id] = lowered(logits[id], double{o.dry_multiplier} * growth);
  }
}

}  // namespace qsf
