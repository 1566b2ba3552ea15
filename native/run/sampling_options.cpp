#include "native/run/sampling_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <span>

#include "native/cli/command_line.h"
#include "system/file.h"

namespace qsf::run {
namespace {

/// Reads a bias such as "15043+1.5" or "15043-inf".
std::optional<TokenBias> read_bias(std::string_view text) {
  const char* const end = text.data() + text.size();
  TokenBias read{};
  const auto [sign, wrong_id] = std::from_chars(text.data(), end, read.token);
  if (wrong_id != std::errc() || sign == end || (*sign != '+' && *sign != '-')) return {};
  if (sign + 1 == end || sign[1] == '-') return {};
  const auto [rest, wrong_bias] = std::from_chars(sign + 1, end, read.bias);
  if (wrong_bias != std::errc() || rest != end) return {};
  if (*sign == '-') read.bias = -read.bias;
  return read;
}

}  // namespace

void SamplingOptions::add(CLI::App& app, Options& o) {
  SamplerOptions& s = o.sampler;
  for (const std::string_view name : kSamplerNames) samplers_.append(samplers_.empty() ? "" : ";").append(name);
  const auto fraction = [&](const char* name, float& to, const char* help) {
    app.add_option(name, to, help)->check(real());
  };
  const auto number = [&](const char* name, std::uint32_t& to, const char* help) {
    app.add_option(name, to, help)->check(natural<std::uint32_t>());
  };
  const auto window = [&](const char* name, std::int32_t& to, const char* help) {
    app.add_option(name, to, help)->transform(natural_or(+[] { return -1; }));
  };
  const auto texts = [&](const char* name, std::vector<std::string>& to, const char* help, const char* type) {
    app.add_option(name, to, help)->type_name(type)->default_str("")->take_all()->expected(1)->allow_extra_args(false);
  };
  fraction("--temperature,--temp", s.temperature, "0: always the most likely token");
  number("--top-k", s.top_k, "Sample from this many of the likeliest tokens; 0: from all");
  fraction("--top-p", s.top_p, "Sample from the likeliest tokens that make up this share; 1: from all");
  fraction("--min-p", s.min_p, "Sample from tokens at least this share as likely as the likeliest one; 0: from all");
  fraction("--typical-p,--typical", s.typical_p, "Sample from the most typical tokens of this share; 1: from all");
  fraction("--top-n-sigma,--top-nsigma", s.top_n_sigma,
           "Sample from logits this many standard deviations below the highest; 0 or less: from all");
  fraction("--xtc-probability", s.xtc_probability, "Probability of removing the likeliest tokens but one; 0: never");
  fraction("--xtc-threshold", s.xtc_threshold, "Least probability of the tokens that are removed");
  fraction("--repetition-penalty,--repeat-penalty", s.repetition_penalty, "Above 1: tokens already there become rarer");
  fraction("--presence-penalty", s.presence_penalty, "Subtracted from the logits of tokens already there");
  fraction("--frequency-penalty", s.frequency_penalty, "The same for each time that they are there");
  window("--repeat-last-n", s.repeat_last_n, "Last tokens that the penalties count; 0: none; -1: the whole context");
  fraction("--dry-multiplier", s.dry_multiplier, "Penalty on tokens that extend a repetition; 0: none");
  fraction("--dry-base", s.dry_base, "Its factor for each further token of the repetition");
  number("--dry-allowed-length", s.dry_allowed_length, "Tokens of the shortest repetition with that penalty");
  window("--dry-penalty-last-n", s.dry_penalty_last_n, "Last tokens searched for it; 0: none; -1: the whole context");
  texts("--dry-sequence-breaker", breakers_,
        "A text that ends repetitions, instead of a line end, :, \" and *; may be given again; none: no text", "TEXT");
  fraction("--dynatemp-range", s.dynatemp_range,
           "The temperature goes this much up and down with the entropy; 0: it is constant");
  fraction("--dynatemp-exponent,--dynatemp-exp", s.dynatemp_exponent, "Exponent of the entropy in it");
  number("--mirostat", s.mirostat, "1, 2: its version, which replaces samplers that remove tokens; 0: none");
  fraction("--mirostat-tau,--mirostat-ent", s.mirostat_tau, "Its target: a token's mean surprise in bits");
  fraction("--mirostat-eta,--mirostat-lr", s.mirostat_eta, "Its learning rate");
  texts("-l,--logit-bias", biases_, "Added to a token's logit, such as 15043+1 or 15043-inf; may be given again",
        "ID+BIAS");
  app.add_option("--samplers", samplers_, "The samplers in their order; one that is not named does nothing")
      ->type_name("NAMES");
  app.add_option("-s,--seed", s.seed, "The same seed gives the same text; -1: another one each time")
      ->transform(natural_or(+[] {
        std::uint64_t seed = 0;
        (void)sys::random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
        return seed;
      }));
}

std::optional<std::string> SamplingOptions::read(Options& o) const {
  if (const Status named = o.sampler_lists.set_samplers(samplers_); !named) return named.error().sentence;
  std::vector<TokenBias> biases;
  for (const std::string& text : biases_) {
    const std::optional<TokenBias> bias = read_bias(text);
    if (!bias) return "--logit-bias takes a token's id and a bias, such as 15043+1 or 15043-inf, not '" + text + "'";
    biases.push_back(*bias);
  }
  o.sampler_lists.set_biases(std::move(biases));
  if (!breakers_.empty()) {
    std::vector<std::string> breakers;
    for (const std::string& text : breakers_) {
      if (text == "none") breakers.clear();
      if (text != "none") breakers.push_back(text);
    }
    o.sampler_lists.set_breakers(std::move(breakers));
  }
  if (const Status status = check(o.sampling()); !status) return status.error().sentence;
  return std::nullopt;
}

}  // namespace qsf::run
