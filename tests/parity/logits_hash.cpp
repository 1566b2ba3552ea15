// logits-hash MODEL.qsf IDS [N]: feeds the ids (comma-separated), generates N tokens greedily, and prints for every
// instruction set and every way of running that this build has: "isa kv way logits-hash tokens". Built natively, for
// ARM and as WebAssembly; parity.test.ts compares what they print.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "qsf/engine.h"

namespace {

constexpr std::uint64_t kBudget = 64u << 20;

struct Way {
  const char* name;
  std::uint32_t chunk;
  bool stream_all;
  std::uint32_t sequences = 1;  // of which the first is told, the others only share its passes
};
constexpr std::array kWays{Way{"planned", 0, false},   Way{"chunk-1", 1, false}, Way{"chunk-7", 7, false},
                           Way{"chunk-32", 32, false}, Way{"streamed", 0, true}, Way{"with-1", 0, false, 2},
                           Way{"with-3", 5, false, 4}, Way{"with-7", 0, true, 8}};

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

qsf::Status run(std::span<const std::byte> file, std::span<const std::uint32_t> ids, std::uint32_t n, const Way& way,
                qsf::KvType kv, std::string_view isa) {
  std::vector<std::byte> memory(kBudget - qsf::kHostReserve);
  qsf::OpenOptions options;
  options.max_seq_len = static_cast<std::uint32_t>(ids.size()) + n;
  options.chunk = way.chunk;
  options.stream_all = way.stream_all;
  options.sequences = way.sequences;
  options.kv = kv;
  options.isa = isa;
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
  if (argc < 3) return std::fputs("usage: logits-hash MODEL.qsf IDS [N]\n", stderr), 2;
  const std::vector<std::byte> file = read_file(argv[1]);
  const std::vector<std::uint32_t> ids = parse_ids(argv[2]);
  const auto n = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 8);
  for (std::size_t i = 0; !qsf::instruction_set(i).empty(); ++i) {
    for (std::size_t kv = 0; kv < qsf::kKvNames.size(); ++kv) {
      for (const Way& way : kWays) {
        // What shares a pass is no matter of the cache's type: one is enough, and qemu is slow.
        if (way.sequences > 1 && static_cast<qsf::KvType>(kv) != qsf::KvType::f16) continue;
        if (const qsf::Status status = run(file, ids, n, way, static_cast<qsf::KvType>(kv), qsf::instruction_set(i));
            !status) {
          return std::fprintf(stderr, "%s\n", status.error().sentence), 1;
        }
      }
    }
  }
}
