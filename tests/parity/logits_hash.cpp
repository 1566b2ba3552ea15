// logits-hash MODEL.qsf IDS [N [WAY]]: feeds the ids (comma-separated), generates N tokens greedily, and prints for
// every instruction set and every way of running that this build has, or for WAY with an f16 cache alone: "isa kv way
// logits-hash tokens". Built natively, for ARM and as WebAssembly; parity.test.ts compares what they print.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "qsf/engine.h"
#ifndef __EMSCRIPTEN__
#include "threads/thread_pool.h"
#endif

namespace {

constexpr std::uint64_t kBudget = 64u << 20, kBudgetStep = 32u << 10;

struct Way {
  const char* name;
  std::uint32_t chunk;
  bool stream_all;
  std::uint32_t sequences = 1;  // of which the first is told, the others only share its passes
  std::uint32_t threads = 1;
  bool backwards = false;  // the threads are one, which does the last task first
  bool smallest = false;   // of all budgets

  /// Whether it is no matter of the cache's type: one is enough, and qemu is slow.
  bool once() const { return sequences > 1 || threads > 1 || smallest; }
};
constexpr std::array kWays{
    Way{"planned", 0, false},
    Way{"chunk-1", 1, false},
    Way{"chunk-7", 7, false},
    Way{"chunk-32", 32, false},
    Way{"streamed", 0, true},
    Way{"with-1", 0, false, 2},
    Way{"with-3", 5, false, 4},
    Way{"with-7", 0, true, 8},
    Way{.name = "smallest", .chunk = 0, .stream_all = false, .smallest = true},
    Way{.name = "threads-3-backwards", .chunk = 0, .stream_all = false, .threads = 3, .backwards = true},
#ifndef __EMSCRIPTEN__
    Way{.name = "threads-2", .chunk = 0, .stream_all = false, .threads = 2},
    Way{.name = "threads-2-with-3", .chunk = 5, .stream_all = true, .sequences = 4, .threads = 2},
#endif
};

qsf::Workers workers_of(const Way& way) {
  if (way.backwards) {
    const auto run = [](void*, void (*task)(void*, std::uint32_t), void* context, std::uint32_t n) {
      for (std::uint32_t i = n; i > 0; --i) task(context, i - 1);
    };
    return {run, nullptr, way.threads};
  }
#ifndef __EMSCRIPTEN__
  static qsf::ThreadPool pool(2);
  if (way.threads == pool.count()) return pool.workers();
#endif
  return {};
}

std::vector<std::byte> read_file(const char* path) {
  std::vector<std::byte> bytes;
  if (std::FILE* file = std::fopen(path, "rb")) {
    std::array<std::byte, 65536> part;
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), file)) {
      bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
    }
    std::fclose(file);
  }
  return bytes;
}

std::vector<std::uint32_t> parse_ids(const char* text) {
  std::vector<std::uint32_t> ids;
  for (char* end = nullptr; *text != 0; text = *end == ',' ? end + 1 : end) {
    ids.push_back(static_cast<std::uint32_t>(std::strtoul(text, &end, 10)));
    if (end == text) break;
  }
  return ids;
}

/// Steps until Step::ready or sequence 0 is done, or until another chose a token where that is enough, answering every
/// request from `file`; the tokens of sequence 0 go to `tokens`.
qsf::Status pump(qsf::Session& session, std::span<const std::byte> file, std::string& tokens, bool any_token = false) {
  while (true) {
    const qsf::Step step = session.step();
    while (const auto request = session.next_request()) {
      std::memcpy(request->into, file.data() + request->offset, request->size);
      if (const qsf::Status status = session.complete(request->ticket); !status) return status;
    }
    if (step == qsf::Step::error) return session.error();
    if (step == qsf::Step::ready) return {};
    if (step == qsf::Step::token && any_token) return {};
    if (session.sequence() != 0) continue;
    if (step == qsf::Step::token) tokens += (tokens.empty() ? "" : ",") + std::to_string(session.token());
    if (step == qsf::Step::done) return {};
  }
}

/// The least budget that the model opens with, to kBudgetStep.
std::uint64_t smallest_budget(std::span<std::byte> memory, std::span<const std::byte> file,
                              const qsf::OpenOptions& options) {
  std::uint64_t low = qsf::kHostReserve, high = kBudget;
  while (high - low > kBudgetStep) {
    const std::uint64_t middle = low + (high - low) / 2;
    std::string tokens;
    const auto session = qsf::open_session(memory.first(middle - qsf::kHostReserve), file.size(), options);
    (session && pump(**session, file, tokens) ? high : low) = middle;
  }
  return high;
}

qsf::Status run(std::span<const std::byte> file, std::span<const std::uint32_t> ids, std::uint32_t n, const Way& way,
                qsf::KvType kv, std::string_view isa) {
  static std::vector<std::byte> whole(kBudget - qsf::kHostReserve);
  std::span<std::byte> memory = whole;
  qsf::OpenOptions options;
  options.max_seq_len = static_cast<std::uint32_t>(ids.size()) + n;
  options.chunk = way.chunk;
  options.stream_all = way.stream_all;
  options.sequences = way.sequences;
  options.kv = kv;
  options.isa = isa;
  options.workers = workers_of(way);
  if (way.smallest) memory = memory.first(smallest_budget(memory, file, options) - qsf::kHostReserve);
  const qsf::Result<qsf::Session*> session = qsf::open_session(memory, file.size(), options);
  if (!session) return session.error();
  std::string tokens;
  if (const qsf::Status status = pump(**session, file, tokens); !status) return status;
  qsf::Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = n;
  prompt.hash_logits = true;
  prompt.ignore_eos = true;
  prompt.sampler.temperature = 0;
  // The others begin with other parts of the prompt, and one of them decodes when the first begins.
  for (std::uint32_t s = 1; s < way.sequences; ++s) {
    qsf::Prompt other = prompt;
    other.tokens = ids.subspan(s * 3 % ids.size());
    other.max_tokens = n + s % 3;
    if (const qsf::Status status = (*session)->start(other, s); !status) return status;
  }
  if (way.sequences > 1) {
    if (const qsf::Status status = pump(**session, file, tokens, true); !status) return status;
  }
  if (const qsf::Status status = (*session)->start(prompt); !status) return status;
  if (const qsf::Status status = pump(**session, file, tokens); !status) return status;
  const std::string hash((*session)->logits_hash());
  const std::string name((*session)->stats().isa);
  std::printf("%s %s %s %s %s\n", name.c_str(), qsf::kKvNames[static_cast<std::size_t>(kv)].data(), way.name,
              hash.c_str(), tokens.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: logits-hash MODEL.qsf IDS [N [WAY]]\n", stderr), 2;
  const std::vector<std::byte> file = read_file(argv[1]);
  const std::vector<std::uint32_t> ids = parse_ids(argv[2]);
  const auto n = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 8);
  const std::string_view only = argc > 4 ? argv[4] : "";
  for (std::size_t i = 0; !qsf::instruction_set(i).empty(); ++i) {
    for (std::size_t kv = 0; kv < qsf::kKvNames.size(); ++kv) {
      for (const Way& way : kWays) {
        const auto type = static_cast<qsf::KvType>(kv);
        const bool f16 = type == qsf::KvType::f16;
        // Three of the rotated types have all forms. Positions must be older than the exact ones.
        using qsf::KvType;
        const bool rotated = type > KvType::q2;
        if (rotated && (&way != &kWays[0] || (type != KvType::k8v4 && type != KvType::k3v3 && type != KvType::k2v2)))
          continue;
        std::vector<std::uint32_t> fed = ids;
        while (rotated && fed.size() < 80) fed.insert(fed.end(), ids.begin(), ids.end());
        if (!f16 && (way.once() || !only.empty())) continue;
        if (!only.empty() && only != way.name) continue;
        if (const qsf::Status status = run(file, fed, n, way, type, qsf::instruction_set(i)); !status) {
          return std::fprintf(stderr, "%s\n", status.error().sentence), 1;
        }
      }
    }
  }
}
