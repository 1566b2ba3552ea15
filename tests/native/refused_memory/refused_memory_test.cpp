// refused_memory_test MODEL CHAT_MODEL URL GGUF: of every call of the C API, and of opening by every source, each
// allocation is refused once. The call fails with out_of_memory, the calls after it work, and nothing stays: no
// memory, no file, no thread.
#include "native/sources/refused_memory.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>

#include "native/host/host.h"
#include "qsf.h"

namespace {

constexpr std::int64_t kNever = -1;
std::atomic<std::int64_t> left{kNever};  // allocations until one is refused
std::atomic<std::int64_t> living{0};
std::atomic<bool> refused{false};

void* take(std::size_t size, std::size_t alignment) {
  if (left.load() != kNever && left.fetch_sub(1) == 0) {
    left = kNever;
    refused = true;
    throw std::bad_alloc();
  }
  void* const at = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (at == nullptr) throw std::bad_alloc();
  ++living;
  return at;
}

void give(void* at) {
  if (at != nullptr) --living;
  std::free(at);
}

}  // namespace

void* operator new(std::size_t size) { return take(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* at) noexcept { give(at); }
void operator delete(void* at, std::size_t) noexcept { give(at); }
void operator delete(void* at, std::align_val_t) noexcept { give(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { give(at); }

namespace {

using namespace qsf;

int failures = 0;

void expect(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "refused_memory_test: %.*s does not hold; last error: %s\n", static_cast<int>(what.size()),
               what.data(), qsf_last_error());
  ++failures;
}

std::int64_t entries(const char* folder) {
  using std::filesystem::directory_iterator;
  return std::distance(directory_iterator(folder), directory_iterator());
}

struct Held {
  std::int64_t memory = living, files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
};

std::uint64_t address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

/// Calls body() with the first allocation refused, the second, until it makes none that is refused. It gives whether it
/// succeeded, which it must if and only if nothing was refused.
template <class Body>
void refuse_each(const std::string& what, const Body& body) {
  expect(body(), what + ", to begin with");
  const Held before;
  const std::uint64_t space = address_space();
  std::int64_t n = 0;
  for (bool any = true; any && failures == 0; ++n) {
    refused = false;
    left = n;
    const bool good = body();
    left = kNever;
    any = refused;
    const Held now;  // before anything here takes memory
    const std::string which = what + ", allocation " + std::to_string(n);
    expect(good != any, which + ": refused or good");
    expect(now.memory == before.memory, which + ": all memory given back");
    expect(now.files == before.files, which + ": all files closed");
    expect(now.threads == before.threads, which + ": all threads ended");
  }
  expect(address_space() < space + (200u << 20), what + ": no arena stays");
  std::printf("%s: %lld allocations\n", what.c_str(), static_cast<long long>(n - 1));
}

/// Whether the last call did what it should: out_of_memory is the only error.
bool good(const void* result) {
  const int code = qsf_last_error_code();
  expect(code == 0 || code == static_cast<int>(ErrorCode::out_of_memory), "no other error");
  expect((result != nullptr) == (code == 0), "a result or an error");
  return code == 0;
}

QSFEngine* load(const char* model) {
  QSFConfig* const config = qsf_config_default();
  if (config == nullptr) return nullptr;
  qsf_config_set_ram_budget(config, 16);
  qsf_config_set_threads(config, 3);
  QSFEngine* const engine = qsf_load(model, config);
  qsf_config_free(config);
  return engine;
}

void check_calls(const char* model) {
  refuse_each("qsf_load", [&] {
    QSFEngine* const engine = load(model);
    qsf_free(engine);
    return engine != nullptr;
  });
  QSFEngine* const engine = load(model);
  std::string text, expected;
  const auto generate = [&](const char* prompt) {
    text.clear();
    text.reserve(1000);
    const QSFTokenCallback add = [](int, const char* piece, void* to) { *static_cast<std::string*>(to) += piece; };
    qsf_generate(engine, prompt, 8, 0.0f, 1.0f, add, &text);
    return good(qsf_last_error_code() == 0 ? engine : nullptr);
  };
  const char* const prompt = "Once upon a time there was a king who lived in a very large castle";
  expect(generate(prompt), "generate");
  expected = text;
  refuse_each("qsf_generate", [&] {
    const bool done = generate(prompt);
    if (!done) expect(generate(prompt), "generate after a refusal");
    expect(text == expected, "the same text");
    return done;
  });
  int n = 0;
  refuse_each("qsf_tokenize", [&] {
    int* const ids = qsf_tokenize(engine, prompt, &n);
    qsf_release(ids);
    return good(ids);
  });
  int ids[] = {1700, 328, 625, 259, 531};
  refuse_each("qsf_detokenize", [&] {
    char* const words = qsf_detokenize(engine, ids, 5);
    qsf_release(words);
    return good(words);
  });
  refuse_each("qsf_forward", [&] { return qsf_rewind(engine, 0) == 0 && good(qsf_forward(engine, ids, 5)); });
  refuse_each("qsf_embed", [&] {
    float* const row = qsf_embed(engine, prompt);
    qsf_release(row);
    return good(row);
  });
  refuse_each("qsf_embed_tokens", [&] {
    float* const rows = qsf_embed_tokens(engine, ids, 5, "none", 1);
    qsf_release(rows);
    return good(rows);
  });
  const float logits[] = {0, 1, 2, 3};
  refuse_each("qsf_sample", [&] {
    const int token = qsf_sample(logits, 4, 0.7f, 0.9f, 1);
    return good(token >= 0 ? logits : nullptr);
  });
  qsf_free(engine);
}

void check_conversation(const char* model) {
  const QSFChatMessage messages[] = {{"system", "You are a king.", nullptr}, {"user", "Where do you live?", nullptr}};
  refuse_each("a conversation", [&] {
    QSFEngine* const engine = load(model);
    if (engine == nullptr) return false;
    bool done = good(qsf_chat_configure(engine, nullptr, nullptr) == 0 ? engine : nullptr);
    char* const text = qsf_chat_render(engine, messages, 2);
    done = good(text) && done;
    int n = 0;
    int* const ids = qsf_chat_tokenize(engine, messages, 2, &n);
    done = good(ids) && done;
    qsf_chat_generate(engine, messages, 2, 4, 0.0f, 1.0f, nullptr, nullptr);
    done = good(qsf_last_error_code() == 0 ? engine : nullptr) && done;
    qsf_release(text);
    qsf_release(ids);
    qsf_free(engine);
    return done;
  });
}

void check_source(const std::string& where, std::string_view kind, const std::string& what = "") {
  HostOptions options;
  options.budget = 16u << 20;
  options.threads = 3;
  options.source.kind = kind;
  const std::atomic<bool> cancel{false};
  refuse_each("reading " + what + "by " + std::string(kind), [&] {
    bool done = false;
    const Status status = with_memory([&] {
      const Result<std::unique_ptr<Host>> host = Host::open(where, options, cancel);
      done = static_cast<bool>(host);
      if (!host) expect(host.error().code == ErrorCode::out_of_memory, host.error().sentence);
    });
    return done && status;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  check_calls(argv[1]);
  check_conversation(argv[2]);
  for (const SourceKind* kind : source_kinds()) check_source(kind->url ? argv[3] : argv[1], kind->name);
  check_source(argv[4], "pread", "a GGUF ");
  return failures == 0 ? 0 : 1;
}
