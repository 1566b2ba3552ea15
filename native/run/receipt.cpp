#include <charconv>
#include <cmath>

#include "native/host/draft.h"
#include "native/run/plan_json.h"
#include "native/run/report.h"
#include "native/sources/address.h"
#include "system/memory.h"

namespace qsf::run {
namespace {

/// Returns the double with the shortest decimal of a float, not the double to which the float widens.
double shortest(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  double out = 0;
  std::from_chars(text, end.ptr, out);
  return out;
}

Json kernels_of(const Session& session) {
  Json kernels = Json::array();
  for (const KernelCount& count : session.kernel_counts()) {
    if (count.calls != 0) kernels.push_back({{"op", count.op}, {"type", count.type}, {"calls", count.calls}});
  }
  return kernels;
}

/// Returns, by format, the instruction sets of a batch's products that were chosen by measuring.
Json chosen_kernels_of(const Host& host, Batch batch) {
  Json kernels = Json::object();
  for (const KernelSpeed& kernel : host.kernels()) {
    if (kernel.batch == batch) kernels[std::string(find_format(kernel.format)->name)] = kernel.isa;
  }
  return kernels;
}

template <class T>
auto decimal_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return shortest(value);
  } else {
    return value;
  }
}

Json sampler_of(const SamplerOptions& options) {
  Json sampler = {
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) {#name, decimal_of(options.name)},
#include "qsf/base/boundary.def"
  };
  Json samplers = Json::array(), biases = Json::array(), breakers = Json::array();
  for (const SamplerKind kind : options.samplers) samplers.push_back(kSamplerNames[static_cast<std::size_t>(kind)]);
  for (const auto& [token, bias] : options.logit_bias) {
    biases.push_back({{"token", token}, {"bias", std::isfinite(bias) ? Json(shortest(bias)) : Json("-inf")}});
  }
  for (const std::string_view text : options.dry_sequence_breakers) breakers.push_back(text);
  sampler.update({{"samplers", samplers}, {"logit_bias", biases}, {"dry_sequence_breakers", breakers}});
  return sampler;
}

/// Returns a token with its log-probability; a value that JSON does not have is null.
Json logprob_of(const Session& session, const TokenLogprob& one) {
  return {{"token", one.token},
          {"text", session.detokenize(one.token, true)},
          {"logprob", std::isfinite(one.logprob) ? Json(shortest(one.logprob)) : Json()}};
}

/// Returns the log-probabilities of each token and of the likeliest ones.
Json logprobs_of(const Session& session, const std::vector<std::vector<TokenLogprob>>& tokens) {
  Json all = Json::array();
  for (const std::vector<TokenLogprob>& found : tokens) {
    Json token = logprob_of(session, found.front());
    token["top"] = Json::array();
    for (const TokenLogprob& one : std::span(found).subspan(1)) token["top"].push_back(logprob_of(session, one));
    all.push_back(std::move(token));
  }
  return all;
}

/// Returns the first fields of every receipt.
Json setting_of(const Options& options, Host& host, const std::string& hash) {
  const Session& session = host.session();
  const Stats s = session.stats();
  return {{"program", "qsf-run " QSF_VERSION},
          {"model", {{"file", without_secrets(options.model)}, {"bytes", s.model_bytes}, {"hash", hash}}},
          {"isa", s.isa},
          {"token_kernels", chosen_kernels_of(host, Batch::one)},
          {"prompt_kernels", chosen_kernels_of(host, Batch::many)},
          {"threads", host.threads()},
          {"source", host.source().kind().name}};
}

/// Returns the guesses of a sequence's last generation, and the draft model.
Json guesses_of(const Options& options, Host& host, std::uint32_t sequence) {
  const SequenceStats s = host.session().sequence_stats(sequence);
  Json guesses = {{"guessed", s.guessed_tokens}, {"right", s.right_tokens}};
  Draft* const draft = host.draft();
  if (draft == nullptr) return guesses;
  const Stats d = draft->session().stats();
  guesses["draft"] = {{"file", without_secrets(options.speculate)},
                      {"hash", draft->session().model_hash()},
                      {"budget", draft->bytes()},
                      {"max_seq_len", d.max_seq_len},
                      {"weight_bytes", d.weight_bytes},
                      {"pinned_bytes", d.pinned_bytes},
                      {"bytes_read", d.bytes_read}};
  return guesses;
}

/// Returns the fields of a text.
Json text_of(const Options& options, Host& host, const Generation& g, std::uint32_t sequence) {
  Json text = {{"reused_tokens", g.n_reused},
               {"generated_tokens", g.generated_ids},
               {"text", g.text},
               {"ended", end_name(g.ended)},
               {"logits_hash", g.logits_hash}};
  if (host.session().stats().guesses != 0) text["guesses"] = guesses_of(options, host, sequence);
  if (options.logprobs) text["logprobs"] = logprobs_of(host.session(), g.logprobs);
  return text;
}

/// Returns the receipt with the last fields of every receipt.
std::string finished(Json receipt, Host& host, const Json& work) {
  const Session& session = host.session();
  Json seconds = {{"open", host.open_seconds()}};
  seconds.update(work);
  receipt.update({{"bytes_read", session.stats().bytes_read},
                  {"kernels", kernels_of(session)},
                  {"plan", plan_of(session)},
                  {"seconds", std::move(seconds)},
                  {"peak_resident_bytes", peak_resident_bytes()}});
  if (const Stats s = session.stats(); s.experts_chosen != 0) {
    receipt["experts"] = {{"chosen", s.experts_chosen}, {"found", s.experts_found}, {"bytes_read", s.expert_bytes}};
  }
  return receipt.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string receipt_of(const Options& options, Host& host, std::span<const Generation> texts, const std::string& hash) {
  Json receipt = setting_of(options, host, hash);
  const SamplerOptions sampler = options.sampling();
  receipt.update({{"sampler", sampler_of(sampler)}, {"prompt_tokens", texts.front().prompt_ids}});
  if (texts.size() == 1) receipt.update(text_of(options, host, texts.front(), 0));
  for (std::uint32_t i = 0; texts.size() > 1 && i < texts.size(); ++i) {
    Json text = {{"seed", sampler.seed + i}};
    text.update(text_of(options, host, texts[i], i));
    receipt["answers"].push_back(std::move(text));
  }
  return finished(std::move(receipt), host,
                  {{"prompt", texts.front().prompt_seconds}, {"generation", generation_seconds(texts)}});
}

std::string receipt_of(const Options& options, Host& host, const Perplexity& p, const std::string& hash) {
  Json receipt = setting_of(options, host, hash);
  receipt.update({{"text_file", options.mode_value},
                  {"window", p.window},
                  {"windows", p.windows},
                  {"ids_crc", p.ids_crc},
                  {"counted_tokens", p.counted},
                  {"perplexity", p.value},
                  {"standard_error", p.standard_error}});
  if (const std::optional<Divergence>& d = p.divergence) {
    receipt["divergence"] = {{"mean", d->mean},
                             {"quantile_99", d->quantile_99},
                             {"same_top", d->same_top},
                             {"perplexity_ratio", d->perplexity_ratio}};
  }
  receipt["logits_hash"] = p.logits_hash;
  return finished(std::move(receipt), host, {{"perplexity", p.seconds}});
}

}  // namespace qsf::run
