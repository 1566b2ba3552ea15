// The options of sampling: their limits and names.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "qsf/base/try.h"
#include "qsf/run/sampling.h"

namespace qsf {
namespace {

using boundary::kAboveZero;

constexpr double kMostWhole = 0x1p53;  // doubles have all whole numbers to here

template <class T>
constexpr bool kWhole = !std::is_floating_point_v<T>;

/// Checks a value of a row of boundary.def. `whole`: the row's type has whole numbers only.
template <class T>
Status check(std::string_view name, T value, double least, double most, bool whole) {
  const double number = static_cast<double>(value);
  if (number >= least && number <= most && (!whole || std::floor(number) == number)) return {};
  if (whole) {
    return make_error(ErrorCode::bad_argument, "{} is {}; it must be a whole number from {} to {}", name, value,
                      static_cast<std::int64_t>(least), static_cast<std::int64_t>(std::min(most, kMostWhole)));
  }
  if (least == static_cast<double>(kAboveZero)) {
    return make_error(ErrorCode::bad_argument, "{} is {}; it must be above 0 and at most {}", name, value, most);
  }
  return make_error(ErrorCode::bad_argument, "{} is {}; it must be {} to {}", name, value, least, most);
}

Status check_order(std::span<const SamplerKind> order) {
  std::array<bool, kSamplerNames.size()> named{};
  for (const SamplerKind kind : order) {
    const auto i = static_cast<std::size_t>(kind);
    if (i >= named.size()) return make_error(ErrorCode::bad_argument, "there is no sampler with number {}", i);
    if (named[i]) return make_error(ErrorCode::bad_argument, "the sampler {} is named twice", kSamplerNames[i]);
    named[i] = true;
  }
  return {};
}

Status check_biases(std::span<const TokenBias> biases) {
  for (const auto& [token, bias] : biases) {
    if (bias < std::numeric_limits<float>::infinity()) continue;
    return make_error(ErrorCode::bad_argument, "the bias of token {} is {}; it must be a number or -infinity", token,
                      bias);
  }
  return {};
}

Status check_breakers(std::span<const std::string_view> texts) {
  if (texts.size() > kMaxDryBreakers) {
    return make_error(ErrorCode::bad_argument, "{} texts that end repetitions were given, {} are possible",
                      texts.size(), kMaxDryBreakers);
  }
  if (std::ranges::none_of(texts, &std::string_view::empty)) return {};
  return make_error(ErrorCode::bad_argument, "a text that ends repetitions is empty");
}

}  // namespace

Status check(const SamplerOptions& options) {
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) \
  QSF_TRY(check(#name, options.name, static_cast<double>(least), static_cast<double>(most), kWhole<boundary::type>));
#include "qsf/base/boundary.def"
  QSF_TRY(check_order(options.samplers));
  QSF_TRY(check_biases(options.logit_bias));
  return check_breakers(options.dry_sequence_breakers);
}

Status set_option(SamplerOptions& options, std::string_view name, double value) {
#define QSF_SAMPLER_OPTION(type, field, js, fallback, least, most, meaning)                                   \
  if (name == #field) {                                                                                       \
    constexpr bool whole = kWhole<boundary::type>;                                                            \
    const double limit = whole ? std::min(static_cast<double>(most), kMostWhole) : static_cast<double>(most); \
    QSF_TRY(check(name, value, static_cast<double>(least), limit, whole));                                    \
    options.field = static_cast<boundary::type>(value);                                                       \
    return {};                                                                                                \
  }
#include "qsf/base/boundary.def"
  return make_error(ErrorCode::bad_argument, "there is no option of sampling '{:.40}'", name);
}

std::optional<SamplerKind> find_sampler(std::string_view name) {
  const auto found = std::ranges::find(kSamplerNames, name);
  if (found == kSamplerNames.end()) return {};
  return static_cast<SamplerKind>(found - kSamplerNames.begin());
}

}  // namespace qsf
