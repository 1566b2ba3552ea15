// Sampling of the next token from logits. The same logits, options and seed give the same token on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/base/boundary.h"
#include "qsf/base/result.h"

namespace qsf {

/// Every sampler once, in the default order.
inline constexpr std::array kAllSamplers{
#define QSF_SAMPLER(name, meaning) SamplerKind::name,
#include "qsf/base/enumerations.def"
};
/// The texts that end repetitions by default.
inline constexpr std::array<std::string_view, 4> kDryBreakers{"\n", ":", "\"", "*"};
inline constexpr std::size_t kMaxDryBreakers = 16;

/// A number that is added to the logit of a token, finite or -infinity. A token with -infinity is never sampled.
struct TokenBias {
  std::uint32_t token;
  float bias;
};

struct SamplerOptions {
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  // Lists, which must outlive the generation.
  /// The samplers in the order in which they are applied. One that is absent does nothing, even if its options are set.
  std::span<const SamplerKind> samplers = kAllSamplers;
  std::span<const TokenBias> logit_bias = {};  // added before the first sampler
  /// Texts that end repetitions: no repetition of `dry` extends over one. At most kMaxDryBreakers.
  std::span<const std::string_view> dry_sequence_breakers = kDryBreakers;
};
/// Fails with bad_argument if a number is out of range, a sampler is named twice, a bias is a NaN or infinity, or a
/// text of `dry_sequence_breakers` is empty or one too many.
Status check(const SamplerOptions& options);

/// Sets a number by the name of its field, such as "min_p". Fails with bad_argument, and changes nothing, for an
/// unknown name or a value out of range.
Status set_option(SamplerOptions& options, std::string_view name, double value);

/// Returns the sampler of that name, such as "top_k".
std::optional<SamplerKind> find_sampler(std::string_view name);

struct Candidate {
  float logit;
  std::uint32_t id;
};

/// Samples one token without a sequence, so the samplers see an empty context. The options must have passed check().
/// `logits` may be overwritten; `scratch` must be as long as `logits`. A token of -infinity is never sampled. Returns
/// not_finite for a NaN or an infinity, or if no token is left.
Result<std::uint32_t> sample_token(const SamplerOptions& options, std::span<float> logits,
                                   std::span<Candidate> scratch);

}  // namespace qsf
