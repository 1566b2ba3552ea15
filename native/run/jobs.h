// The functions of the modes of qsf-run that need an open model.
#pragma once

#include <optional>

#include "native/cli/terminal.h"
#include "native/host/host.h"
#include "native/run/options.h"
#include "native/run/perplexity.h"

namespace qsf::run {

struct Job {
  Options& options;
  Host& host;
  std::optional<Measured> measured;  // for --perplexity
  Progress* progress = nullptr;      // of reading a model from a server; ends before the first output
};

/// Each returns the program's exit code. Errors are reported on stderr.
int run_generate(Job& job);
int run_tokenize(Job& job);
int run_detokenize(Job& job);
int run_count(Job& job);
int run_chat(Job& job);
int run_interactive(Job& job);
int run_bench(Job& job);
int run_perplexity(Job& job);
int run_render(Job& job);
int run_embed(Job& job);
int run_rerank(Job& job);
/// The memory map is shown already.
int run_plan(Job& job);

}  // namespace qsf::run
