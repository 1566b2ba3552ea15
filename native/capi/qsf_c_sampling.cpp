// The C API's settings of sampling.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/capi/qsf_c.h"
#include "qsf/base/try.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

Status set(SamplerOptions& options, std::string_view name, double value) {
  for (const std::string_view elsewhere : {"temperature", "top_p", "seed"}) {
    if (name == elsewhere) return make_error(ErrorCode::bad_argument, "{} is not set by qsf_sampling_set()", name);
  }
  return set_option(options, name, value);
}

Status set_order(SamplerLists& lists, const char* names) {
  if (names == nullptr) {
    lists.use_default_samplers();
    return {};
  }
  return lists.set_samplers(names);
}

Status set_bias(QSFEngine& engine, const int* tokens, const float* biases, int n) {
  if (n < 0 || (n > 0 && (tokens == nullptr || biases == nullptr))) return wrong("tokens and biases are needed");
  std::vector<TokenBias> read;
  SamplerOptions checked;
  const std::uint32_t vocab_size = engine.host->session().stats().vocab_size;
  for (int i = 0; i < n; ++i) {
    if (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) >= vocab_size) {
      return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", tokens[i], vocab_size);
    }
    read.push_back({static_cast<std::uint32_t>(tokens[i]), biases[i]});
  }
  checked.logit_bias = read;
  QSF_TRY(check(checked));
  engine.sampler_lists.set_biases(std::move(read));
  return {};
}

Status set_breakers(SamplerLists& lists, const char* const* texts, int n) {
  if (texts == nullptr) {
    lists.use_default_breakers();
    return {};
  }
  std::vector<std::string> read;
  SamplerOptions checked;
  for (int i = 0; i < n; ++i) {
    if (texts[i] == nullptr) return make_error(ErrorCode::bad_argument, "text {} is NULL", i);
    read.emplace_back(texts[i]);
  }
  const std::vector<std::string_view> views(read.begin(), read.end());
  checked.dry_sequence_breakers = views;
  QSF_TRY(check(checked));
  lists.set_breakers(std::move(read));
  return {};
}

}  // namespace

int qsf_sampling_set(QSFEngine* engine, const char* name, double value) {
  return setting(engine, [&]() -> Status {
    if (name == nullptr) return wrong("the name of an option is needed");
    return set(engine->sampler, name, value);
  });
}

int qsf_sampling_seed(QSFEngine* engine, uint64_t seed) {
  return setting(engine, [&]() -> Status {
    engine->config.seed = seed;
    return {};
  });
}

int qsf_sampling_order(QSFEngine* engine, const char* names) {
  return setting(engine, [&] { return set_order(engine->sampler_lists, names); });
}

int qsf_sampling_bias(QSFEngine* engine, const int* tokens, const float* biases, int num_tokens) {
  return setting(engine, [&] { return set_bias(*engine, tokens, biases, num_tokens); });
}

int qsf_sampling_breakers(QSFEngine* engine, const char* const* texts, int num_texts) {
  return setting(engine, [&] { return set_breakers(engine->sampler_lists, texts, num_texts); });
}
