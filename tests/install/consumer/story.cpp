// story MODEL: a few words by the C++ interface, from a file that lies in memory.
#include <qsf/base/align.h>
#include <qsf/engine.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <vector>

namespace {

constexpr std::uint64_t kBudget = 16u << 20;

struct Freed {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{qsf::kAlignment}); }
};

/// Steps to the end of what the session is doing, giving it what it asks for.
qsf::Status drive(qsf::Session& session, const std::vector<char>& file) {
  while (true) {
    while (const auto request = session.next_request()) {
      if (request->offset > file.size() || request->size > file.size() - request->offset) return {};
      std::memcpy(request->into, file.data() + request->offset, request->size);
      if (qsf::Status status = session.complete(request->ticket); !status) return status;
    }
    switch (session.step()) {
      case qsf::Step::error:
        return session.error();
      case qsf::Step::ready:
      case qsf::Step::done:
        std::fwrite(session.piece().data(), 1, session.piece().size(), stdout);
        return {};
      case qsf::Step::token:
        std::fwrite(session.piece().data(), 1, session.piece().size(), stdout);
        break;
      default:
        break;
    }
  }
}

qsf::Status tell(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t size = kBudget - qsf::kHostReserve;
  const std::unique_ptr<std::byte[], Freed> memory(new (std::align_val_t{qsf::kAlignment}) std::byte[size]);
  auto session = qsf::open_session({memory.get(), size}, file.size(), {});
  if (!session) return session.error();
  if (qsf::Status status = drive(**session, file); !status) return status;
  qsf::Prompt prompt;
  prompt.text = "<|endoftext|>Once upon a time";
  prompt.max_tokens = 4;
  prompt.sampler.temperature = 0;
  if (qsf::Status status = (*session)->start(prompt); !status) return status;
  return drive(**session, file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const qsf::Status status = tell(argv[1]);
  if (!status) std::fprintf(stderr, "%s\n", status.error().sentence);
  return status ? 0 : 1;
}
