#include <algorithm>
#include <array>
#include <vector>

#include "native/resident.h"
#include "native/run_report.h"

namespace qsf::run {
namespace {

constexpr std::size_t kRounds = 3;

double median(std::array<double, kRounds> values) {
  std::sort(values.begin(), values.end());
  return values[kRounds / 2];
}

}  // namespace

Status bench(std::FILE* to, const Options& options, Host& host) {
  Session& session = host.session();
  const Stats plan = session.stats();
  if (plan.max_seq_len < 4) return make_error(ErrorCode::context_full, "a context of 4 tokens is the least to measure");
  if (const Status s = session.preload(); !s) return s;
  if (const Result<Step> s = host.next(); !s) return s.error();

  Prompt prompt;
  std::vector<std::uint32_t> ids = options.tokens;
  if (options.prompt) {
    prompt.text = *options.prompt;
  } else {
    // Any ids cost the same; these differ, so that embedding rows are not all one.
    const std::uint32_t n = std::min(256u, plan.max_seq_len / 2);
    for (std::uint32_t i = 0; ids.size() < n; ++i) ids.push_back(i * 7 % plan.vocab_size);
    prompt.tokens = ids;
  }
  prompt.max_tokens = std::min(std::max(options.max_tokens, 2u), 64u);
  prompt.ignore_eos = true;
  prompt.sampler.temperature = 0;
  std::array<double, kRounds> prompt_rate{}, generation_rate{};
  Generation g;
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < kRounds; ++i) {
    if (const Status s = session.rewind(0); !s) return s;
    const std::uint64_t before = session.stats().bytes_read;
    Result<Generation> made = generate(host, prompt, {});
    if (!made) return made.error();
    g = std::move(*made);
    if (g.ended == "cancelled") return make_error(ErrorCode::cancelled, "stopped by the caller");
    read = session.stats().bytes_read - before;
    // The prompt's time ends with the first token; the others are what generation took.
    prompt_rate[i] = static_cast<double>(g.prompt_ids.size()) / std::max(g.prompt_seconds, 1e-9);
    generation_rate[i] = static_cast<double>(g.generated_ids.size() - 1) / std::max(g.generation_seconds, 1e-9);
  }
  std::fprintf(to, "prompt      %8.1f tokens/s  (%zu tokens)\n", median(prompt_rate), g.prompt_ids.size());
  std::fprintf(to, "generation  %8.1f tokens/s  (%zu tokens)\n", median(generation_rate), g.generated_ids.size());
  std::fprintf(to, "read        %8.3f MiB per run\n", static_cast<double>(read) / (1 << 20));
  std::fprintf(to, "memory      %8.3f MiB resident at most, budget %.3f MiB\n",
               static_cast<double>(peak_resident_bytes()) / (1 << 20), static_cast<double>(plan.budget) / (1 << 20));
  std::fprintf(to, "with        %s kernels, %u threads, %s\n", plan.isa.data(), host.threads(),
               plan.ring_slots == 0 ? "all weights in memory" : "weights streamed");
  return {};
}

}  // namespace qsf::run
