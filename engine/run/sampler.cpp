#include "run/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "run/samplers.h"

namespace qsf {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Row {
  SamplerKind kind;
  void (*apply)(Candidates& candidates, const SamplerInput& in);
  bool only_removes;  // and is therefore left out with Mirostat
};
/// By the numbers of kinds.
constexpr std::array kRows{
    Row{SamplerKind::penalties, samplers::penalties, false},
    Row{SamplerKind::dry, samplers::dry, false},
    Row{SamplerKind::top_n_sigma, samplers::top_n_sigma, true},
    Row{SamplerKind::temperature, samplers::temperature, false},
    Row{SamplerKind::top_k, samplers::top_k, true},
    Row{SamplerKind::typical_p, samplers::typical_p, true},
    Row{SamplerKind::top_p, samplers::top_p, true},
    Row{SamplerKind::min_p, samplers::min_p, true},
    Row{SamplerKind::xtc, samplers::xtc, true},
};
static_assert(std::ranges::equal(kRows, kAllSamplers, {}, &Row::kind));

}  // namespace

void apply_samplers(Candidates& candidates, const SamplerInput& in) {
  for (const SamplerKind kind : in.options.samplers) {
    const Row& row = kRows[static_cast<std::size_t>(kind)];
    if (in.options.mirostat == 0 || !row.only_removes) row.apply(candidates, in);
  }
}

void Sampler::begin(const SamplerOptions& options, const Kernels& kernels, std::span<Candidate> scratch,
                    const Tokenizer* tokenizer) {
  options_ = options;
  kernels_ = &kernels;
  tokenizer_ = tokenizer;
  scratch_ = scratch;
  random_ = Random(options.seed);
  mirostat_.begin(options);
}

std::optional<std::uint32_t> Sampler::sample(std::span<float> logits, std::span<const std::uint32_t> context) {
  add_bias(logits, options_.logit_bias);
  Candidates candidates(logits, scratch_, *kernels_);
  if (candidates.empty()) return {};
  apply_samplers(candidates, {options_, context, tokenizer_, random_});
  if (mirostat_.is_on()) mirostat_.truncate(candidates, logits.size());
  const Candidate drawn = candidates.draw(random_.uniform());
  if (mirostat_.is_on()) mirostat_.follow(candidates, drawn);
  return drawn.id;
}

Result<std::uint32_t> sample_token(const SamplerOptions& options, std::span<float> logits,
                                   std::span<Candidate> scratch) {
  const auto wrong = std::ranges::find_if(logits, [](float logit) { return std::isnan(logit) || logit == kInfinity; });
  if (wrong != logits.end()) {
    return make_error(ErrorCode::not_finite, "the logit of token {} is {}, no finite number", wrong - logits.begin(),
                      *wrong);
  }
  Sampler sampler;
  sampler.begin(options, best_kernels(), scratch, nullptr);
  if (const std::optional<std::uint32_t> token = sampler.sample(logits, {})) return *token;
  return make_error(ErrorCode::not_finite, "all of {} logits are -infinity: there is no token to choose",
                    logits.size());
}

}  // namespace qsf
