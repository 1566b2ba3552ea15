#include "native/run/report.h"

#include <algorithm>
#include <cmath>

#include "native/cli/terminal.h"
#include "native/host/draft.h"
#include "native/sources/address.h"
#include "system/memory.h"

namespace qsf::run {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double rate(std::size_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

}  // namespace

void print_memory_map(std::FILE* to, Host& host) {
  const Session& session = host.session();
  const Stats s = session.stats();
  std::fprintf(to, "%-24s %14s %10s\n", "region", "bytes", "MiB");
  std::uint64_t total = 0;
  for (const MemoryRegion& region : session.memory_map()) {
    std::fprintf(to, "%-24.*s %14llu %10.3f\n", static_cast<int>(region_name(region.region).size()),
                 region_name(region.region).data(), static_cast<unsigned long long>(region.bytes), mib(region.bytes));
    total += region.bytes;
  }
  std::fprintf(to, "%-24s %14llu %10.3f\n", "budget", static_cast<unsigned long long>(s.budget), mib(s.budget));
  if (total != s.budget) {
    std::fprintf(to, "%-24s %14lld %10.3f\n", "alignment", static_cast<long long>(s.budget - total),
                 mib(s.budget) - mib(total));
  }
  std::fprintf(to, "\nweights    %.3f MiB in %u segments; %u segments (%.3f MiB) stay in memory\n", mib(s.weight_bytes),
               s.n_segments, s.n_pinned, mib(s.pinned_bytes));
  if (s.ring_slots == 0 && s.pinned_bytes < s.weight_bytes) {
    std::fprintf(to, "streaming  none: %.3f MiB are used in the mapped file\n", mib(s.weight_bytes - s.pinned_bytes));
  } else if (s.ring_slots == 0) {
    std::fprintf(to, "streaming  none: everything stays in memory\n");
  } else {
    std::fprintf(to, "streaming  %u segments through %u slots of %.3f MiB\n", s.n_segments - s.n_pinned, s.ring_slots,
                 mib(s.ring_bytes / s.ring_slots));
  }
  if (s.token_rate > 0) std::fprintf(to, "expected   about %.*f tokens/s", s.token_rate < 10 ? 1 : 0, s.token_rate);
  if (s.token_rate > 0 && s.ring_slots != 0) {
    std::fprintf(to, ", reading %.3f MiB for each; with %.0f MiB everything stays: about %.*f tokens/s",
                 mib(s.token_bytes), std::ceil(mib(s.resident_budget)), s.resident_rate < 10 ? 1 : 0, s.resident_rate);
  }
  if (s.token_rate > 0) std::fprintf(to, "\n");
  std::fprintf(to, "context    %u tokens (%s), KV as %s (%s); prompt in chunks of %u\n", s.max_seq_len,
               s.context_reason.data(), kv_name(s.kv).data(), s.kv_reason.data(), s.chunk);
  if (Draft* const draft = host.draft(); draft != nullptr) {
    const Stats d = draft->session().stats();
    std::fprintf(to, "draft      %.3f MiB of the budget: %.3f MiB of weights %s, %u tokens of context\n",
                 mib(draft->bytes()), mib(d.weight_bytes), d.ring_slots == 0 ? "in memory" : "streamed", d.max_seq_len);
  }
  if (s.kv_window == 0) return;
  if (host.monitor() != nullptr && host.monitor()->evictions() != 0) {
    std::fprintf(to, "evicted    %u times because memory was short\n", host.monitor()->evictions());
  }
  std::fprintf(to, "kept       %s %u positions", s.kv_chosen == 0 ? "the last" : "at most", s.kv_window);
  if (s.kv_sinks != 0) std::fprintf(to, " and the first %u", s.kv_sinks);
  std::fprintf(to, "; %s\n", s.kv_chosen == 0 ? "others are evicted" : "attention chooses them");
}

void print_setting(std::FILE* to, const Options& options, Host& host) {
  const Stats s = host.session().stats();
  std::fprintf(to, "model      %s, %.3f MiB, %u layers, a vocabulary of %u\n",
               printable(without_secrets(options.model)).c_str(), mib(s.model_bytes), s.n_layers, s.vocab_size);
  std::fprintf(to, "host       %s kernels, %u threads, reading by %s, opened in %.3f s\n", s.isa.data(), host.threads(),
               host.source().kind().name.data(), host.open_seconds());
  for (const KernelSpeed& kernel : host.kernels()) {
    std::fprintf(to, "kernel     %s for a %s by %s: %.1f GB/s\n", find_format(kernel.format)->name.data(),
                 kernel.batch == Batch::one ? "token" : "prompt", kernel.isa.data(), kernel.rate / 1e9);
  }
  print_memory_map(to, host);
}

void print_speed(std::FILE* to, std::span<const Generation> texts, Host& host) {
  const Stats s = host.session().stats();
  const Generation& g = texts.front();
  std::size_t computed = 0, generated = 0;
  std::uint32_t guessed = 0, right = 0;
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    computed += texts[i].prompt_ids.size() - texts[i].n_reused;
    generated += texts[i].generated_ids.size();
    const SequenceStats sequence = host.session().sequence_stats(i);
    guessed += sequence.guessed_tokens;
    right += sequence.right_tokens;
  }
  const double seconds = generation_seconds(texts);
  std::fprintf(to, "prompt     %zu tokens in %.3f s, %.1f tokens/s", computed, g.prompt_seconds,
               rate(computed, g.prompt_seconds));
  if (g.n_reused != 0) std::fprintf(to, "; %u others were computed before", g.n_reused);
  if (g.restore_seconds > 0) std::fprintf(to, " and read in %.4f s", g.restore_seconds);
  std::fprintf(to, "\n");
  std::fprintf(to, "generated  %zu tokens in %.3f s, %.1f tokens/s, ", generated, seconds, rate(generated, seconds));
  if (texts.size() == 1) std::fprintf(to, "ended by %s\n", end_name(g.ended).data());
  if (texts.size() > 1) std::fprintf(to, "%zu texts\n", texts.size());
  if (s.guesses != 0) std::fprintf(to, "guessed    %u tokens, %u of them right\n", guessed, right);
  for (const KernelCount& count : host.session().kernel_counts()) {
    if (count.calls == 0) continue;
    std::fprintf(to, "kernel     %.*s%s%.*s: %llu calls\n", static_cast<int>(count.op.size()), count.op.data(),
                 count.type.empty() ? "" : "/", static_cast<int>(count.type.size()), count.type.data(),
                 static_cast<unsigned long long>(count.calls));
  }
  if (s.experts_chosen != 0) {
    const auto chosen = static_cast<double>(s.experts_chosen);
    const auto tokens = static_cast<double>(computed + generated);
    std::fprintf(to, "experts    %llu chosen, %.1f %% found in memory; %.3f MiB read, %.3f for each token\n",
                 static_cast<unsigned long long>(s.experts_chosen), 100 * static_cast<double>(s.experts_found) / chosen,
                 mib(s.expert_bytes), mib(s.expert_bytes) / std::max(tokens, 1.0));
  }
  std::fprintf(to, "memory     %.3f MiB resident at most; %.3f MiB read\n", mib(peak_resident_bytes()),
               mib(s.bytes_read));
}

void print_perplexity(std::FILE* to, const Perplexity& p) {
  std::fprintf(to, "perplexity  %.4f ", p.value);
  if (p.counted > 1) std::fprintf(to, "+/- %.4f ", p.standard_error);  // a single number has none
  std::fprintf(to, " (%u windows of %u tokens, %llu counted)\n", p.windows, p.window,
               static_cast<unsigned long long>(p.counted));
  if (!p.divergence) return;
  const Divergence& d = *p.divergence;
  std::fprintf(to, "divergence  %.6f mean, %.6f at 99 %%, in nats per token\n", d.mean, d.quantile_99);
  std::fprintf(to, "same top    %.3f %%\n", 100 * d.same_top);
  std::fprintf(to, "ratio       %.6f of the perplexities\n", d.perplexity_ratio);
}

}  // namespace qsf::run
