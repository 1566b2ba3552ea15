#include <algorithm>

#include "native/run/measure.h"
#include "native/run/report.h"
#include "qsf/base/try.h"
#include "system/memory.h"

namespace qsf::run {
namespace {

constexpr int kRounds = 3;

}  // namespace

Status bench(std::FILE* to, const Options& options, Host& host) {
  const Stats plan = host.session().stats();
  if (plan.max_seq_len < 4) return make_error(ErrorCode::context_full, "a context of 4 tokens is the least to measure");
  QSF_TRY(warm_up(host));

  Prompt prompt;
  std::vector<std::uint32_t> ids = options.tokens;
  if (options.prompt) {
    prompt.text = *options.prompt;
  } else {
    if (ids.empty()) ids = filler_tokens(std::min(256u, plan.max_seq_len / 2), plan.vocab_size);
    prompt.tokens = ids;
  }
  prompt.max_tokens = std::min(std::max(options.max_tokens, 2u), 64u);
  prompt.ignore_eos = true;
  prompt.sampler.temperature = 0;
  std::vector<double> prompt_rates, generation_rates;
  Round last;
  for (int i = 0; i < kRounds; ++i) {
    Result<Round> round = measure(host, prompt);
    if (!round) return round.error();
    last = std::move(*round);
    prompt_rates.push_back(last.prompt_rate());
    generation_rates.push_back(last.generation_rate());
  }
  std::fprintf(to, "prompt      %8.1f tokens/s  (%zu tokens)\n", median(prompt_rates), last.made.prompt_ids.size());
  std::fprintf(to, "generation  %8.1f tokens/s  (%zu tokens)\n", median(generation_rates),
               last.made.generated_ids.size());
  std::fprintf(to, "read        %8.3f MiB per run\n", static_cast<double>(last.bytes_read) / (1 << 20));
  std::fprintf(to, "memory      %8.3f MiB resident at most, budget %.3f MiB\n",
               static_cast<double>(peak_resident_bytes()) / (1 << 20), static_cast<double>(plan.budget) / (1 << 20));
  std::fprintf(to, "with        %s kernels, %u threads, %s\n", plan.isa.data(), host.threads(),
               plan.ring_slots == 0 ? "all weights in memory" : "weights streamed");
  return {};
}

}  // namespace qsf::run
