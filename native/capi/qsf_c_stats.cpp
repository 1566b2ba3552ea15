// Statistics in the C API.
#include <cstdio>

#include "native/capi/qsf_c.h"
#include "system/memory.h"

namespace {

double rate(std::uint64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

}  // namespace

void qsf_print_stats(QSFEngine* engine) {
  using namespace qsf;
  if (engine == nullptr) return;
  const Stats s = engine->host->session().stats();
  const SequenceStats sequence = engine->host->session().sequence_stats();
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::fprintf(stderr, "budget      %.1f MiB, %.1f MiB resident at most\n", mib(s.budget), mib(peak_resident_bytes()));
  for (const MemoryRegion& region : engine->host->session().memory_map()) {
    std::fprintf(stderr, "  %-24.*s %10.3f MiB\n", static_cast<int>(region_name(region.region).size()),
                 region_name(region.region).data(), mib(region.bytes));
  }
  std::fprintf(stderr, "weights     %u of %u segments (%.1f of %.1f MiB) stay in memory\n", s.n_pinned, s.n_segments,
               mib(s.pinned_bytes), mib(s.weight_bytes));
  std::fprintf(stderr, "context     %u of %u tokens (%s), keys and values in %s (%s)\n", sequence.position,
               s.max_seq_len, s.context_reason.data(), kv_name(s.kv).data(), s.kv_reason.data());
  if (!s.warning.empty()) std::fprintf(stderr, "warning     %s\n", s.warning.data());
  std::fprintf(stderr, "prompt      %.1f tokens/s\n",
               rate(sequence.prompt_tokens - sequence.reused_tokens, engine->prompt_seconds));
  std::fprintf(stderr, "generation  %.1f tokens/s\n", rate(sequence.generated_tokens, engine->generation_seconds));
  std::fprintf(stderr, "host        %.*s kernels, %u threads, %.1f MiB read\n", static_cast<int>(s.isa.size()),
               s.isa.data(), engine->host->threads(), mib(s.bytes_read));
}
