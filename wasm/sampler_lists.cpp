#include "wasm/sampler_lists.h"

#include <algorithm>

namespace qsf::wasm {

std::size_t split_texts(std::string_view texts, std::span<std::string_view> out) {
  std::size_t n = 0;
  for (; !texts.empty() && n < out.size(); ++n) {
    out[n] = texts.substr(0, texts.find('\0'));
    texts.remove_prefix(std::min(out[n].size() + 1, texts.size()));
  }
  return n;
}

Result<SamplerLists> SamplerLists::read(std::span<const std::byte> staged, std::uint32_t n_biases,
                                        std::optional<std::uint32_t> samplers, std::optional<std::uint32_t> breakers) {
  SamplerLists lists;
  const auto* const biases = reinterpret_cast<const TokenBias*>(staged.data());
  lists.biases_ = {biases, std::min<std::size_t>(n_biases, staged.size() / sizeof(TokenBias))};
  std::string_view rest(reinterpret_cast<const char*>(staged.data()), staged.size());
  rest.remove_prefix(lists.biases_.size_bytes());
  if (samplers) {
    std::array<std::string_view, kAllSamplers.size() + 1> names;
    const std::size_t n = split_texts(rest.substr(0, *samplers), names);
    rest.remove_prefix(std::min<std::size_t>(*samplers, rest.size()));
    for (std::size_t i = 0; i < n; ++i) {
      const std::optional<SamplerKind> kind = find_sampler(names[i]);
      if (!kind) return make_error(ErrorCode::bad_argument, "there is no sampler '{:.40}'", names[i]);
      lists.samplers_[i] = *kind;
    }
    lists.n_samplers_ = n;
  }
  if (breakers) lists.n_breakers_ = split_texts(rest.substr(0, *breakers), lists.breakers_);
  return lists;
}

SamplerOptions SamplerLists::with(const SamplerOptions& numbers) const {
  SamplerOptions options = numbers;
  options.logit_bias = biases_;
  if (n_samplers_) options.samplers = std::span(samplers_).first(*n_samplers_);
  if (n_breakers_) options.dry_sequence_breakers = std::span(breakers_).first(*n_breakers_);
  return options;
}

}  // namespace qsf::wasm
