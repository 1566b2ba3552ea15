// qsf-convert: a model from a Hugging Face directory, GGUF or llama2.c file to .qsf, and a look into .qsf files.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "converter/convert.h"
#include "converter/inputs.h"
#include "converter/inspect.h"
#include "converter/progress.h"
#include "converter/table.h"
#include "converter/terminal.h"
#include "converter/tokenizers.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace {

using namespace qsf;
using namespace qsf::convert;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSignalled = 128;  // and the signal's number, as shells give it
constexpr const char* kNoTokenizer = "none";

struct Arguments {
  std::string input, output, inspect, tokenizer, recipe;
  std::string format, compression = "none", ternary = "auto";
  bool quiet = false;
};

struct Compressing {
  Compression compression;
  std::uint32_t least_saved = 0;  // percent of a segment
};
/// What reading a twelfth less saves at a GB/s, decompressing takes at ten times that: below it, nothing is won.
constexpr std::uint32_t kLeastSaved = 8;
const std::map<std::string, Compressing> kCompressions{
    {"none", {Compression::none}},
    {"lz4", {Compression::lz4}},
    {"lz4hc", {Compression::lz4hc}},
    {"zstd", {Compression::zstd}},
    {"auto", {can_decompress(Compression::zstd) ? Compression::zstd : Compression::lz4, kLeastSaved}}};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

const std::map<std::string, TernaryLayout> kTernaryLayouts{{"auto", TernaryLayout::automatic},
                                                           {"microsoft", TernaryLayout::microsoft},
                                                           {"qk256", TernaryLayout::qk256},
                                                           {"split32", TernaryLayout::split32},
                                                           {"inline32", TernaryLayout::inline32}};

template <class T>
std::vector<std::string> names_of(const std::map<std::string, T>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

std::string footer() {
  std::string text = "IN is one of:\n";
  for (const InputKind& kind : kInputKinds) text += std::string("  ") + kind.description + "\n";
  text += "Without --quant-type, models with float weights become 8bit, and GGUF keeps every tensor's type.\n";
  return text;
}

int fail(const Error& error) {
  const std::string_view name = error_name(error.code);
  std::fprintf(stderr, "qsf-convert: %.*s: %s\n", static_cast<int>(name.size()), name.data(), error.sentence);
  return kFailed;
}

int usage(std::string_view sentence) {
  std::fprintf(stderr, "qsf-convert: %s\nRun qsf-convert --help for how it is used.\n", printable(sentence).c_str());
  return kUsage;
}

/// The code of a run that printed everything, if nothing of it was lost.
int finish(int code) {
  const Status written = finish_stdout();
  return written ? code : fail(written.error());
}

/// All steps, unless a signal comes: then `stopped_by` has its number and nothing is left behind.
Result<Summary> write_model(const ModelSource& model, const Options& options, const Arguments& arguments,
                            int& stopped_by) {
  const StopSignals signals;
  QSF_LET(conversion, Conversion::begin(model, options, arguments.output));
  Progress progress(arguments.quiet);
  for (;;) {
    const Result<Conversion::Step> step = conversion.step();
    if (step && *step == Conversion::Step::done) break;
    stopped_by = signals.caught();
    if (step && stopped_by == 0) {
      progress.update(conversion.progress().done, conversion.progress().total);
      continue;
    }
    progress.finish();
    if (stopped_by == 0) return step.error();
    return make_error(ErrorCode::cancelled, "stopped by signal {}; {:.140} is as it was", stopped_by, arguments.output);
  }
  progress.finish();
  return conversion.summary();
}

int convert_model(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  Result<ModelSource> model =
      open_model(arguments.input, arguments.tokenizer.empty(), arguments.recipe, kTernaryLayouts.at(arguments.ternary));
  if (!model) return fail(model.error());
  if (!arguments.tokenizer.empty() && arguments.tokenizer != kNoTokenizer) {
    if (const Status read = read_tokenizer_file(arguments.tokenizer, *model); !read) return fail(read.error());
  }
  if (!arguments.quiet) {
    for (const std::string& warning : model->warnings) {
      std::fprintf(stderr, "qsf-convert: warning: %s\n", printable(warning).c_str());
    }
  }
  Options options;
  if (!arguments.format.empty()) options.matrices = find_format(std::string_view(arguments.format))->id;
  const Compressing& compressing = kCompressions.at(arguments.compression);
  options.compression = compressing.compression;
  options.least_saved = compressing.least_saved;
  int stopped_by = 0;
  const Result<Summary> summary = write_model(*model, options, arguments, stopped_by);
  if (!summary) {
    const int code = fail(summary.error());
    return stopped_by != 0 ? kSignalled + stopped_by : code;
  }
  if (arguments.quiet) return 0;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %s, %s weights of %.2f bits, %.1f s\n", printable(arguments.output).c_str(),
              human_bytes(static_cast<double>(summary->file_bytes)).c_str(), grouped(summary->weights).c_str(),
              static_cast<double>(summary->weight_bits) / static_cast<double>(summary->weights), took.count());
  return finish(0);
}

int inspect_file(const std::string& path) {
  LocalFiles files;
  const Result<Input> file = files.open(path);
  if (!file) return fail(file.error());
  const Status status = inspect(*file, stdout);
  const int code = finish(0);
  return status ? code : fail(status.error());
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  Arguments arguments;
  CLI::App app("qsf-convert IN OUT.qsf converts a language model; qsf-convert --inspect FILE looks into a .qsf file.",
               "qsf-convert");
  app.footer(footer());
  app.set_version_flag("--version", "qsf-convert " QSF_VERSION);
  app.add_option("IN", arguments.input, "The model to convert")->type_name("");
  app.add_option("OUT", arguments.output, "The .qsf file to write")->type_name("");
  app.add_option("--quant-type", arguments.format, "The format of all matrices")->check(CLI::IsMember(format_names()));
  app.add_option("--compress", arguments.compression, "Compression of the segments")
      ->check(CLI::IsMember(names_of(kCompressions)))
      ->capture_default_str();
  app.add_option("--tokenizer", arguments.tokenizer,
                 "A tokenizer.json, tokenizer.model, GGUF or llama2.c tokenizer.bin to use instead of the model's own; "
                 "\"none\" for none")
      ->type_name("FILE");
  app.add_option("--recipe", arguments.recipe,
                 "A JSON file that says what the model's layers and tensors are, for architectures that are not known")
      ->type_name("FILE");
  app.add_option("--i2s", arguments.ternary, "How a GGUF's I2_S tensors lie")
      ->check(CLI::IsMember(names_of(kTernaryLayouts)))
      ->capture_default_str();
  app.add_option("--inspect", arguments.inspect, "Print what a .qsf file holds and check every checksum")
      ->type_name("FILE");
  app.add_flag("--quiet", arguments.quiet, "Print errors only");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return usage(error.what());
    app.exit(error, std::cout);
    std::cout.flush();
    return finish(0);
  }
  if (!arguments.inspect.empty()) {
    if (!arguments.input.empty()) return usage("--inspect takes one file and nothing else");
    return inspect_file(arguments.inspect);
  }
  if (arguments.input.empty()) return usage("IN and OUT.qsf, or --inspect FILE, are needed");
  if (arguments.output.empty()) return usage("OUT.qsf is missing");
  return convert_model(arguments);
}
