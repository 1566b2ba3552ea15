// no_alloc_test MODEL MIB...: after a session is open, generating allocates nothing, in the engine and in its host.
// Every allocation of the process is counted, as this program's malloc is the one that all libraries use.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "native/host/host.h"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
std::atomic<std::uint64_t> allocations{0};
}

extern "C" {
void* malloc(std::size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t each) { return ++allocations, __libc_calloc(n, each); }
void* realloc(void* old, std::size_t n) { return ++allocations, __libc_realloc(old, n); }
void* memalign(std::size_t alignment, std::size_t n) { return ++allocations, __libc_memalign(alignment, n); }
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  *out = memalign(alignment, n);
  return *out == nullptr ? ENOMEM : 0;
}
}

namespace {

using namespace qsf;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "no_alloc_test: %s does not hold\n", what);
  ++failures;
}

/// Saves the sequence and restores it, through memory that is there already.
bool saves_and_restores(Session& session) {
  static std::byte file[16 << 20];
  const Result<SavedHeaderBytes> header = session.begin_save();
  if (!header) return false;
  const Result<std::size_t> size = session.save(file);
  if (!size || !session.begin_restore(*header, kSavedHeaderSize + *size)) return false;
  const Result<bool> checked = session.restore(std::span(file).first(*size));
  const Result<bool> restored = checked ? session.restore(std::span(file).first(*size)) : checked;
  return restored && *restored;
}

/// Prefill and 40 tokens; `next` gives the next step that is neither working nor need_bytes. The allocations it made.
template <class Next>
std::uint64_t count_generation(Session& session, const Next& next) {
  const std::uint64_t before = allocations;
  std::uint32_t ids[] = {0, 1700, 328, 625, 259, 531, 17, 18, 19};
  for (std::uint32_t& id : ids) id %= session.stats().vocab_size;
  const std::string_view stops[] = {"never to be found"};
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 40;
  prompt.ignore_eos = true;
  prompt.hash_logits = true;
  prompt.stops = stops;
  SamplerOptions& sampler = prompt.sampler;
  sampler.repetition_penalty = 1.1f;
  sampler.dry_multiplier = 0.5f;
  sampler.top_n_sigma = 3;
  sampler.dynatemp_range = 0.2f;
  sampler.top_k = 0;
  sampler.typical_p = 0.95f;
  sampler.min_p = 0.01f;
  sampler.xtc_probability = 0.5f;
  const TokenBias biases[] = {{1, 0.5f}};
  sampler.logit_bias = biases;
  expect(static_cast<bool>(session.rewind(0)) && static_cast<bool>(session.start(prompt)), "start");
  std::uint64_t tokens = 0, text = 0;
  for (Step step = next(); step != Step::done; step = next()) {
    expect(step == Step::token, "a token");
    if (step != Step::token) break;
    ++tokens;
    text += session.piece().size();
  }
  (void)session.logits_hash();
  expect(saves_and_restores(session), "saving and restoring");
  expect(tokens == 40 && text > 0, "40 tokens with text");
  EmbedPrompt embedded;
  embedded.text = "Once upon a time";
  embedded.normalize = true;
  expect(static_cast<bool>(session.embed(embedded)), "embed");
  expect(next() == Step::embedding && session.embedding().size() == session.stats().dim, "an embedding");
  expect(next() == Step::done, "done");
  return allocations - before;
}

/// The engine alone, fed from memory, from its opening on: open_session itself must not allocate either.
void from_memory(const std::vector<std::byte>& file, std::uint64_t budget) {
  std::vector<std::byte> memory(budget - kHostReserve);
  const std::uint64_t before = allocations;
  const Result<Session*> opened = open_session(memory, file.size(), {});
  if (!opened) return expect(false, "open");
  Session& session = **opened;
  const auto next = [&] {
    while (true) {
      const Step step = session.step();
      while (const auto r = session.next_request()) {
        std::memcpy(r->into, file.data() + r->offset, r->size);
        (void)session.complete(r->ticket);
      }
      if (step != Step::working && step != Step::need_bytes) return step;
    }
  };
  expect(next() == Step::ready, "ready");
  expect(allocations == before, "opening without allocating");
  const Stats stats = session.stats();
  expect((stats.ring_slots == 0) == (stats.weight_bytes < budget / 2), "streamed where the budget is small");
  const std::uint64_t made = count_generation(session, next);
  std::printf("from memory, budget %llu: %llu allocations\n", static_cast<unsigned long long>(budget),
              static_cast<unsigned long long>(made));
  expect(made == 0, "generating without allocating");
}

/// With the native host's threads and sources around it.
void with_host(const char* path, std::uint64_t budget, std::string_view source) {
  std::atomic<bool> cancel{false};
  HostOptions options;
  options.budget = budget;
  options.threads = 3;
  options.source.kind = source;
  const Result<std::unique_ptr<Host>> host = Host::open(path, options, cancel);
  if (!host) {
    std::fprintf(stderr, "no_alloc_test: %s\n", host.error().sentence);
    return expect(false, "opening");
  }
  expect(static_cast<bool>((*host)->know_hash()), "hash");
  const auto next = [&] {
    const Result<Step> step = (*host)->next();
    return step ? *step : Step::error;
  };
  std::uint64_t made = count_generation((*host)->session(), next);
  // Each thread that converts rows of a made model takes memory for them once, at most for four lists of a few sizes.
  const int most = (*host)->made() != nullptr ? 4 * 4 * 3 : 0;
  for (int i = 0; made != 0 && i < most; ++i) made = count_generation((*host)->session(), next);
  std::printf("by %s, budget %llu: %llu allocations\n", source.data(), static_cast<unsigned long long>(budget),
              static_cast<unsigned long long>(made));
  expect(made == 0, "generating without allocating");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<std::byte> file;
  if (std::FILE* f = std::fopen(argv[1], "rb")) {
    std::byte buffer[65536];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, f)) file.insert(file.end(), buffer, buffer + n);
    std::fclose(f);
  }
  expect(allocations > 0, "counting");
  const bool is_qsf = file.size() > 4 && std::memcmp(file.data(), "QSF1", 4) == 0;
  for (int i = 2; i < argc; ++i) {
    const std::uint64_t budget = std::strtoull(argv[i], nullptr, 10) << 20;
    if (is_qsf) from_memory(file, budget);
    for (const SourceKind* kind : source_kinds()) {
      if (!kind->url) with_host(argv[1], budget, kind->name);
    }
  }
  return failures == 0 ? 0 : 1;
}
