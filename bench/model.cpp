#include "bench/model.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "native/cli/command_line.h"
#include "native/run/measure.h"
#include "native/run/plan_json.h"
#include "qsf/base/try.h"
#include "system/memory.h"

namespace qsf::bench {
namespace {

using namespace qsf::run;

struct Options {
  std::string model, isa, source, kv;
  std::string budget;
  std::uint32_t prompt_tokens = 128, generate = 64, runs = 5;
  bool sample = false;
  HostOptions host;
};

/// Returns a budget with which any plan keeps everything: the weights, and for a long context a quarter of them and 1
/// GiB.
std::uint64_t ample_budget(const std::string& model) {
  struct stat info{};
  const std::uint64_t size = ::stat(model.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  return size + size / 4 + (std::uint64_t{1} << 30);
}

Json seconds_of(const Profile& profile, double total) {
  Json out{{"total", total}};
  double computing = 0;
  for (std::size_t i = 0; i < kWorkNames.size(); ++i) {
    out[std::string(kWorkNames[i])] = profile.work[i];
    computing += profile.work[i];
  }
  out["waiting"] = profile.waiting;
  out["host"] = std::max(total - computing - profile.waiting, 0.0);
  out["beside"] = {{"reading", profile.reading}, {"unpacking", profile.unpacking}};
  return out;
}

/// The rates of all runs, and the division of the median run's time.
struct Series {
  std::vector<double> rates;
  std::vector<Json> seconds;
  std::vector<std::uint64_t> read;
  std::vector<Json> experts;

  void add(const Round& round, double rate, const Profile& profile, double total) {
    rates.push_back(rate);
    seconds.push_back(seconds_of(profile, total));
    read.push_back(round.bytes_read);
    experts.push_back(
        {{"chosen", round.experts_chosen}, {"found", round.experts_found}, {"bytes_read", round.expert_bytes}});
  }
  Json json(std::uint32_t tokens) const {
    const double middle = median(rates);
    const auto nearest = std::min_element(
        rates.begin(), rates.end(), [&](double a, double b) { return std::abs(a - middle) < std::abs(b - middle); });
    const auto at = static_cast<std::size_t>(nearest - rates.begin());
    Json out{{"tokens", tokens},
             {"tokens_per_second", rates},
             {"median", middle},
             {"seconds", seconds[at]},
             {"bytes_read", read[at]}};
    if (experts[at]["chosen"] != 0) out["experts"] = experts[at];
    return out;
  }
};

Status run_all(const Options& o, Host& host, Json& out) {
  const Stats plan = host.session().stats();
  if (plan.max_seq_len < std::max(o.prompt_tokens, o.generate + 1)) {
    return make_error(ErrorCode::context_full, "the context of {} tokens is too short for {} + {}: see --max-seq-len",
                      plan.max_seq_len, o.prompt_tokens, o.generate);
  }
  QSF_TRY(warm_up(host));
  const std::vector<std::uint32_t> ids = filler_tokens(o.prompt_tokens, plan.vocab_size);
  Prompt prefill, decode;
  prefill.ignore_eos = decode.ignore_eos = true;
  prefill.sampler.temperature = decode.sampler.temperature = 0;
  if (o.sample) {
    decode.sampler.temperature = 1;
    decode.sampler.seed = 1;
  }
  prefill.tokens = ids;
  prefill.max_tokens = 0;
  decode.tokens = std::span(ids).first(1);
  decode.max_tokens = o.generate + 1;  // the first token ends the prompt's time

  Series prefilled, decoded;
  for (std::uint32_t i = 0; i <= o.runs; ++i) {
    const Result<Round> p = measure(host, prefill);
    if (!p) return p.error();
    const Result<Round> d = measure(host, decode);
    if (!d) return d.error();
    if (i == 0) continue;  // the first run brings code and activations into the caches
    prefilled.add(*p, p->prompt_rate(), p->made.prompt_profile, p->made.prompt_seconds);
    decoded.add(*d, d->generation_rate(), d->made.generation_profile, d->made.generation_seconds);
  }
  out = {{"program", "qsf-bench " QSF_VERSION},
         {"model", {{"file", o.model}, {"bytes", plan.model_bytes}, {"hash", host.session().model_hash()}}},
         {"isa", plan.isa},
         {"threads", host.threads()},
         {"source", host.source().kind().name},
         {"plan", plan_of(host.session())},
         {"prefill", prefilled.json(o.prompt_tokens)},
         {"decode", decoded.json(o.generate)},
         {"open_seconds", host.open_seconds()},
         {"peak_resident_bytes", peak_resident_bytes()}};
  return {};
}

int fail(const Error& error) {
  std::fprintf(stderr, "qsf-bench: %s: %s\n", error_name(error.code).data(), error.sentence);
  return 1;
}

}  // namespace

int bench_model(int argc, char** argv) {
  Options o;
  o.host.threads = 1;
  o.host.profile = o.host.expect = true;
  if (const char* isa = std::getenv("QSF_ISA")) o.isa = isa;
  CLI::App app("Measures prefill and decode of a model, alternating, and prints JSON.", "qsf-bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--model", o.model, "A .qsf file")->required();
  app.add_option("--prompt-tokens", o.prompt_tokens, "Tokens of the prefill")->check(CLI::PositiveNumber);
  app.add_option("--max-seq-len", o.host.open.max_seq_len, "Tokens of context; 0: the plan's choice");
  app.add_option("--generate", o.generate, "Tokens decoded, from an empty context")->check(CLI::PositiveNumber);
  app.add_flag("--sample", o.sample, "Choose tokens among the likeliest, always the same ones, not the likeliest");
  app.add_option("--runs", o.runs, "Runs of each, after one that is not counted")->check(CLI::PositiveNumber);
  app.add_option("--threads", o.host.threads, "Computing threads; 0: one per physical core");
  app.add_flag("--pin", o.host.pin, "Keep each computing thread on one processor");
  app.add_option("--isa", o.isa, "Instruction set; else the best, or the one that QSF_ISA names");
  app.add_option("--ram-budget", o.budget, "MiB, or with K, M or G; else enough to keep all weights")->check(size());
  app.add_option("--chunk", o.host.open.chunk, "Prompt tokens per pass over the weights; 0: the plan's choice");
  app.add_option("--kv", o.kv, "Type of the KV cache; else the plan's choice");
  app.add_option("--source", o.source, "How the file is read; else pread");
  CLI11_PARSE(app, argc, argv);

  const auto* kv = std::find(kKvNames.begin(), kKvNames.end(), o.kv);
  if (kv != kKvNames.end()) o.host.open.kv = static_cast<KvType>(kv - kKvNames.begin());
  if (kv == kKvNames.end() && !o.kv.empty()) {
    return fail(make_error(ErrorCode::bad_argument, "there is no KV type '{}'", o.kv));
  }
  o.host.open.isa = o.isa;
  o.host.source.kind = o.source;
  const std::optional<std::uint64_t> budget = read_size(o.budget, 1 << 20);
  o.host.budget = budget ? *budget : ample_budget(o.model);
  const std::atomic<bool> cancel{false};
  const Result<std::unique_ptr<Host>> host = Host::open(o.model, o.host, cancel);
  if (!host) return fail(host.error());
  Json out;
  if (const Status s = run_all(o, **host, out); !s) return fail(s.error());
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

}  // namespace qsf::bench
