// qsf-run: text in, text out, inside a memory budget. docs/reference/cli.md describes it.
#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>

#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/run/digest.h"
#include "native/run/jobs.h"
#include "native/run/kernels.h"
#include "native/run/modes.h"
#include "native/run/options.h"
#include "native/run/output.h"
#include "native/run/outputs.h"
#include "native/run/perplexity.h"
#include "native/run/report.h"
#include "native/sources/address.h"
#include "system/out_of_memory.h"
#include "system/program.h"
#include "threads/thread.h"

namespace qsf::run {
namespace {

[[gnu::constructor(sys::kBeforeAll)]] void before_all() {
  sys::end_without_memory(
      1, "qsf-run: out_of_memory: the system refused memory that is needed in addition to the budget\n");
}

/// Notes that the server can guess parts of the text.
void note_watched_experts(const Session& session) {
  const Stats s = session.stats();
  std::uint32_t segment = 0;
  while (segment < session.segments().size() && !session.is_by_text(segment)) ++segment;
  if (segment == session.segments().size()) return;
  note(make_error(ErrorCode::unsupported,
                  "which experts are read depends on the text, and the server sees them: it may guess parts of the "
                  "text. With --ram-budget {} it sees none of them",
                  (s.resident_budget + (1u << 20) - 1) >> 20)
           .sentence);
}

int run_opened(Job& job) {
  const Options& o = job.options;
  const Stats s = job.host.session().stats();
  if (o.verbose) print_setting(stderr, o, job.host);
  if (o.memory_map) print_memory_map(o.computes() ? stderr : stdout, job.host);
  if (is_address(o.model) && o.computes()) note_watched_experts(job.host.session());
  const bool refused = job.measured && !job.measured->context_asked && s.max_seq_len > s.model_seq_len;  // by its job
  if (!s.warning.empty() && !refused) note(s.warning);
  return row_of(o.mode).run(job);
}

int run(int argc, char** argv) {
  Options o;
  if (const std::optional<int> code = parse(argc, argv, o)) return *code;
  const ModeRow& mode = row_of(o.mode);
  if (mode.run == nullptr) return mode.run_alone(o);
  if (const Status apart = check_output(inputs_of(o)); !apart) return fail(apart.error());
  if (o.model.empty()) return mode.run_alone(o);
  std::optional<Measured> measured;
  if (o.mode == Mode::perplexity) {
    Result<Measured> read = read_measured(o);
    if (!read) return fail(read.error());
    measured.emplace(std::move(*read));
  }
  std::atomic<std::uint64_t> received{0};
  o.host.source.received = &received;
  std::optional<Progress> progress;
  if (is_address(o.model)) progress.emplace(o.model, received, o.verbose);
  if (!o.sha256.empty()) {
    const Status same = check_digest(o.model, o.sha256, o.host.source, cancelled());
    if (!same && progress) progress->end();
    if (!same) return fail(same.error());
  }
  const std::string kernel_file = o.isa.empty() && o.computes() ? kernel_file_of(o.kernel_file) : "";
  KernelSpeeds kernels = read_kernel_speeds(kernel_file);
  if (!kernel_file.empty()) o.host.kernels = &kernels;
  const Result<std::unique_ptr<Host>> opened = Host::open(o.model, o.host, cancelled());
  const bool talks = o.mode == Mode::chat || o.mode == Mode::interactive;
  const bool shows_at_once = o.memory_map || o.verbose || talks || o.mode == Mode::bench;
  if (progress && (!opened || shows_at_once)) progress->end();
  if (!opened) return fail(opened.error());
  if (Thread::refused() != 0) {
    note(make_error(ErrorCode::none,
                    "the system refused threads, by a limit of processes or of memory: it computes with {}",
                    (*opened)->threads())
             .sentence);
  }
  if ((*opened)->measured_kernels()) {
    const Status kept = write_kernel_speeds(kernel_file, kernels);
    if (!kept && o.verbose) note(kept.error().sentence);
  }
  for (const std::string& sentence : (*opened)->notes()) note(sentence);
  catch_signals();
  Job job{o, **opened, std::move(measured), progress ? &*progress : nullptr};
  return run_opened(job);
}

int main(int argc, char** argv) {
  sys::hold_standard_files();
  const int code = run(argc, argv);
  const Status finished = finish_output();
  return finished || code != 0 ? code : fail(finished.error());
}

}  // namespace
}  // namespace qsf::run

int main(int argc, char** argv) { return qsf::sys::run_program(argc, argv, qsf::run::main); }
