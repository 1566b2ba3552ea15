// qsf-run: text in, text out, inside a memory budget. docs/cli.md describes it.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "native/run_generate.h"
#include "native/run_options.h"
#include "native/run_report.h"

namespace qsf::run {
namespace {

constexpr int kInterrupted = 130;  // what shells give for Ctrl-C

std::atomic<bool> cancel{false};

int fail(const Error& error) {
  const std::string_view name = error_name(error.code);
  std::fprintf(stderr, "qsf-run: %.*s: %s\n", static_cast<int>(name.size()), name.data(), error.sentence);
  return error.code == ErrorCode::cancelled ? kInterrupted : 1;
}

void show(std::string_view piece) {
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  std::fflush(stdout);
}

Prompt prompt_of(const Options& o, std::span<const std::string_view> stops) {
  Prompt prompt;
  prompt.tokens = o.tokens;
  if (o.prompt) prompt.text = *o.prompt;
  prompt.max_tokens = o.max_tokens;
  prompt.all_logits = !o.logits_file.empty();
  prompt.hash_logits = !o.receipt_file.empty();
  prompt.ignore_eos = o.ignore_eos;
  prompt.sampler = o.sampler;
  prompt.stops = stops;
  return prompt;
}

int run_once(const Options& o, Host& host, const Prompt& prompt) {
  std::FILE* logits = nullptr;
  Sinks sinks{show, nullptr};
  const auto logits_error = [&] {
    return make_error(ErrorCode::io_error, "cannot write {}: {}", o.logits_file, std::strerror(errno));
  };
  if (!o.logits_file.empty()) {
    logits = std::fopen(o.logits_file.c_str(), "wb");
    if (logits == nullptr) return fail(logits_error());
    sinks.all_logits = [&](std::span<const float> rows) -> Status {
      if (std::fwrite(rows.data(), sizeof(float), rows.size(), logits) != rows.size()) return logits_error();
      return {};
    };
  }
  const Result<Generation> made = generate(host, prompt, sinks);
  if (logits != nullptr && std::fclose(logits) != 0 && made) return fail(logits_error());
  if (!made) return fail(made.error());
  if (::isatty(STDOUT_FILENO) != 0) show("\n");
  if (o.verbose) print_speed(stderr, *made, host);
  if (!o.receipt_file.empty()) {
    if (const Status written = write_receipt(o.receipt_file, o, host, *made); !written) return fail(written.error());
  }
  return made->ended == "cancelled" ? kInterrupted : 0;
}

/// A line of standard input without its end; false at the end of input or when interrupted.
bool read_line(std::string& line) {
  line.clear();
  if (::isatty(STDIN_FILENO) != 0) std::fputs("> ", stderr);
  char c = 0;
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, &c, 1);
    if (n <= 0) return n == 0 && !line.empty();
    if (c == '\n') return true;
    line += c;
  }
}

int run_interactive(const Options& o, Host& host, Prompt prompt) {
  std::string line;
  while (read_line(line)) {
    if (line.empty()) continue;
    prompt.text = line;
    Result<Generation> made = generate(host, prompt, {show, nullptr});
    if (!made && made.error().code == ErrorCode::context_full && !host.session().tokens().empty()) {
      std::fputs("qsf-run: the context is full; the text begins anew\n", stderr);
      if (const Status s = host.session().rewind(0); !s) return fail(s.error());
      made = generate(host, prompt, {show, nullptr});
    }
    if (!made) return fail(made.error());
    show("\n");
    if (o.verbose) print_speed(stderr, *made, host);
    cancel = false;
  }
  return 0;
}

int main(int argc, char** argv) {
  Options o;
  if (const std::optional<int> code = parse(argc, argv, o)) return *code;
  const Result<std::unique_ptr<Host>> opened = Host::open(o.model, o.host, cancel);
  if (!opened) return fail(opened.error());
  Host& host = **opened;
  if (o.verbose) print_setting(stderr, o, host);
  if (o.memory_map) print_memory_map(o.generates() ? stderr : stdout, host.session());
  if (!o.generates()) return 0;

  struct sigaction action{};
  action.sa_handler = [](int) { cancel = true; };  // no SA_RESTART: a waiting read() ends too
  ::sigaction(SIGINT, &action, nullptr);
  const std::vector<std::string_view> stops(o.stops.begin(), o.stops.end());
  const Prompt prompt = prompt_of(o, stops);
  if (o.bench) {
    const Status measured = bench(stdout, o, host);
    return measured ? 0 : fail(measured.error());
  }
  return o.interactive ? run_interactive(o, host, prompt) : run_once(o, host, prompt);
}

}  // namespace
}  // namespace qsf::run

int main(int argc, char** argv) { return qsf::run::main(argc, argv); }
