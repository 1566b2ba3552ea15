// qsf-convert: a model from a Hugging Face directory, GGUF or llama2.c file to .qsf, and a look into .qsf files.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converter/allocate.h"
#include "converter/calibrate.h"
#include "converter/convert.h"
#include "converter/gguf.h"
#include "converter/imatrix.h"
#include "converter/inputs.h"
#include "converter/inspect.h"
#include "converter/local_files.h"
#include "converter/losses.h"
#include "converter/progress.h"
#include "converter/table.h"
#include "converter/terminal.h"
#include "converter/tokenizers.h"
#include "converter/written_type.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"
#include "system/cores.h"
#include "system/program.h"
#include "threads/thread_pool.h"

namespace {

using namespace qsf;
using namespace qsf::convert;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSignalled = 128;  // and the signal's number, as shells give it
constexpr const char* kNoTokenizer = "none";
constexpr const char* kMixed = "mixed";  // a type for every matrix
constexpr double kMixedBits = 4.5;

struct Arguments {
  std::string input, output, inspect, tokenizer, recipe;
  std::string format, compression = "none", ternary = "auto", calibration, losses;
  std::vector<std::string> tensor_types;
  std::uint64_t own_tokens = 8192;
  std::uint32_t threads = 0;
  double target_bpw = 0, target_mb = 0;
  bool quiet = false, search = false;
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

std::vector<std::string> type_names() {
  std::vector<std::string> names = written_names();
  names.emplace_back(kMixed);
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

std::string fixed(double number, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return text.data();
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

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "qsf-convert: warning: %s\n", printable(warning).c_str());
  }
}

/// What a conversion reports to, and what ends it: a signal, after which nothing is left behind.
struct Run {
  const Arguments& arguments;
  StopSignals signals = {};
  Progress progress{arguments.quiet};

  bool goes_on() const { return signals.caught() == 0; }
  Error stopped() const {
    return make_error(ErrorCode::cancelled, "stopped by signal {}; {:.140} is as it was", signals.caught(),
                      arguments.output);
  }
  /// The exit code of what went wrong.
  int failed(const Error& error) {
    progress.finish();
    if (goes_on()) return fail(error);
    fail(stopped());
    return kSignalled + signals.caught();
  }
};

/// All steps.
Result<Summary> write_model(const ModelSource& model, const Options& options, Run& run) {
  QSF_LET(conversion, Conversion::begin(model, options, run.arguments.output));
  if (!run.arguments.quiet) print_warnings(conversion.warnings());
  for (;;) {
    QSF_LET(step, conversion.step());
    if (step == Conversion::Step::done) break;
    if (!run.goes_on()) return run.stopped();
    run.progress.update("writing", conversion.progress().done, conversion.progress().total, true);
  }
  run.progress.finish();
  return conversion.summary();
}

/// Where --calibration names llama.cpp's importance matrix: what it says.
Result<std::optional<Calibration>> imatrix_of(const ModelSource& model, const Arguments& arguments) {
  LocalFiles files;
  QSF_LET(file, files.open(arguments.calibration));
  QSF_LET(head, read_head(file, kHeadBytes));
  if (!is_gguf(head)) return std::optional<Calibration>();
  if (arguments.target_bpw != 0 || arguments.target_mb != 0) {
    return make_error(ErrorCode::bad_argument, "types are chosen by what they do to a text, and {:.140} is none",
                      arguments.calibration);
  }
  QSF_LET(calibration, read_imatrix(file, model));
  return std::optional<Calibration>(std::move(calibration));
}

/// What each layer does to the model; goes into the file.
void take_layers(std::span<const Calibrator::Layer> layers, const Arguments& arguments, Options& options) {
  Table table({"layer", "cosine", "loss without it"});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    options.importance.push_back(static_cast<float>(layers[i].loss));
    table.add({std::to_string(i), fixed(layers[i].cosine, 4), fixed(layers[i].loss, 5)});
  }
  if (!arguments.quiet) table.print(stdout);
}

/// What an earlier conversion has measured, where it is to be kept.
Result<Losses> kept_losses(const Calibrator& calibrator, const Arguments& arguments) {
  LocalFiles files;
  std::optional<Input> file;
  if (!arguments.losses.empty()) {
    QSF_LET(found, files.find(arguments.losses));
    file = std::move(found);
  }
  return file ? Losses::read(*file, calibrator.measured_on()) : Losses(calibrator.measured_on());
}

/// A type for every matrix, by the size that is asked for.
Status choose(const ModelSource& model, Calibrator& calibrator, Run& run, Options& options) {
  const Arguments& arguments = run.arguments;
  QSF_LET(losses, kept_losses(calibrator, arguments));
  const MeasureLoss measure = [&](std::pair<std::uint32_t, Role> tensor, FormatId type, std::uint64_t done,
                                  std::uint64_t total) -> Result<double> {
    run.progress.update("measuring matrices", done, total);
    if (const std::optional<double> kept = losses.find(tensor, type)) return *kept;
    QSF_LET(loss, calibrator.loss(tensor, type));
    losses.add(tensor, type, loss);
    return loss;
  };
  QSF_LET(others, other_bytes(model, options));
  double bytes = arguments.target_mb * 1e6;
  if (arguments.target_bpw != 0) {
    QSF_LET(all, weights_of(model, options));
    bytes = arguments.target_bpw * static_cast<double>(all) / 8;
  }
  if (bytes < static_cast<double>(others)) {
    return make_error(ErrorCode::bad_argument, "what has its type already takes {} bytes", others);
  }
  Result<std::vector<TensorChoice>> choices = type_choices(model, options, calibrator.calibration(), measure);
  run.progress.finish();
  // What was measured stays when the rest was stopped.
  if (!arguments.losses.empty()) QSF_TRY(losses.write(arguments.losses));
  QSF_LET(tensors, std::move(choices));
  QSF_TRY(choose_types(tensors, static_cast<std::uint64_t>(bytes) - others));
  Table table({"section", "tensor", "type", "loss"});
  for (const TensorChoice& tensor : tensors) {
    const TypeChoice& type = tensor.types[tensor.chosen];
    options.types[{tensor.section, tensor.role}] = type.format;
    table.add({std::to_string(tensor.section), std::string(rule_of(tensor.role).name), written_type(type.format).name(),
               fixed(type.loss, 5)});
  }
  if (!arguments.quiet) table.print(stdout);
  return {};
}

int convert_model(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  Result<ModelSource> model =
      open_model(arguments.input, arguments.tokenizer.empty(), arguments.recipe, kTernaryLayouts.at(arguments.ternary));
  if (!model) return fail(model.error());
  if (!arguments.tokenizer.empty() && arguments.tokenizer != kNoTokenizer) {
    if (const Status read = read_tokenizer_file(arguments.tokenizer, *model); !read) return fail(read.error());
  }
  if (!arguments.quiet) print_warnings(model->warnings);
  Options options;
  if (!arguments.format.empty()) options.matrices = written_id(arguments.format);
  options.gguf = names_gguf(arguments.output);
  if (const Status fixed = fix_types(*model, arguments.tensor_types, options); !fixed) return fail(fixed.error());
  const Compressing& compressing = kCompressions.at(arguments.compression);
  options.compression = compressing.compression;
  options.least_saved = compressing.least_saved;
  options.search = arguments.search || !arguments.calibration.empty();
  ThreadPool pool(arguments.threads != 0 ? arguments.threads : usable_cores());
  options.workers = pool.workers();
  Run run{arguments};
  const Watch watch = [&](std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (!what.empty()) run.progress.update(what, done, total);
    return run.goes_on();
  };
  Calibrator calibrator(*model, arguments.output, watch, options.workers);
  std::optional<Calibration> imatrix;
  if (!arguments.calibration.empty()) {
    Result<std::optional<Calibration>> read = imatrix_of(*model, arguments);
    if (!read) return run.failed(read.error());
    imatrix = std::move(*read);
    if (!imatrix) {
      const Status status = calibrator.read(arguments.calibration, arguments.own_tokens);
      if (!status) return run.failed(status.error());
      run.progress.finish();
      take_layers(calibrator.layers(), arguments, options);
    }
    options.calibration = imatrix ? &*imatrix : &calibrator.calibration();
  }
  if (arguments.target_bpw != 0 || arguments.target_mb != 0) {
    if (const Status chosen = choose(*model, calibrator, run, options); !chosen) return run.failed(chosen.error());
  }
  const Result<Summary> summary = write_model(*model, options, run);
  if (!summary) return run.failed(summary.error());
  if (arguments.quiet) return 0;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %s, %s weights of %.2f bits, %.1f s\n", printable(arguments.output).c_str(),
              human_bytes(static_cast<double>(summary->file_bytes)).c_str(), grouped(summary->weights).c_str(),
              static_cast<double>(summary->weight_bits) / static_cast<double>(summary->weights), took.count());
  if (options.calibration != nullptr && !imatrix) {
    std::fflush(stdout);
    const Result<double> loss = calibrator.loss(options, arguments.output);
    if (!loss) return run.failed(loss.error());
    std::printf("expected loss: %.4f nats per token, %.2f %% of the perplexity\n", *loss, 100 * std::expm1(*loss));
  }
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

int run(int argc, char** argv) {
  sys::hold_standard_files();
  Arguments arguments;
  CLI::App app("qsf-convert IN OUT.qsf converts a language model; qsf-convert --inspect FILE looks into a .qsf file.",
               "qsf-convert");
  app.footer(footer());
  app.allow_windows_style_options(false);  // so that a path may begin with a slash everywhere
  app.set_version_flag("--version", "qsf-convert " QSF_VERSION);
  app.add_option("IN", arguments.input, "The model to convert")->type_name("");
  app.add_option("OUT", arguments.output, "The .qsf file to write; of a name that ends in .gguf, a GGUF file")
      ->type_name("");
  app.add_option("--quant-type", arguments.format,
                 "The format of all matrices; mixed: one for each, by --calibration and --target-bpw, 4.5 unless said")
      ->check(CLI::IsMember(type_names()));
  app.add_option(
         "--tensor-type", arguments.tensor_types,
         "The format of all matrices of one name, as --inspect tells it: token_embd=q6_k. May be given several times")
      ->type_name("ROLE=TYPE")
      ->allow_extra_args(false);
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
  app.add_flag("--search", arguments.search, "Seek scales and codes by their squared errors instead of rounding");
  app.add_option("--calibration", arguments.calibration,
                 "A text that the model reads first; then scales and codes are sought by what their errors do to it")
      ->type_name("FILE");
  app.add_option("--own-tokens", arguments.own_tokens, "Tokens that the model writes itself for --calibration")
      ->capture_default_str();
  app.add_option("--target-bpw", arguments.target_bpw, "Bits per weight over all tensors: a type is chosen for each")
      ->check(CLI::Range(1.0, 32.0));
  app.add_option("--losses", arguments.losses,
                 "A file that keeps what single matrices lose, for conversions of the same model to other sizes")
      ->type_name("FILE");
  app.add_option("--target-size", arguments.target_mb, "The same by the megabytes of all tensors")
      ->check(CLI::PositiveNumber)
      ->excludes("--target-bpw");
  app.add_option("--i2s", arguments.ternary, "How a GGUF's I2_S tensors lie")
      ->check(CLI::IsMember(names_of(kTernaryLayouts)))
      ->capture_default_str();
  app.add_option("--inspect", arguments.inspect, "Print what a .qsf file holds and check every checksum")
      ->type_name("FILE");
  app.add_option("--threads", arguments.threads, "Threads that quantize; 0: one per physical core")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
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
  if (arguments.format == kMixed) {
    arguments.format.clear();
    if (arguments.target_bpw == 0 && arguments.target_mb == 0) arguments.target_bpw = kMixedBits;
  }
  if ((arguments.target_bpw != 0 || arguments.target_mb != 0) && arguments.calibration.empty()) {
    return usage("--target-bpw, --target-size and mixed choose by what types cost: --calibration FILE is needed");
  }
  if (!arguments.losses.empty() && arguments.target_bpw == 0 && arguments.target_mb == 0) {
    return usage("--losses keeps what types are chosen by: --target-bpw, --target-size or mixed is needed");
  }
  if (!arguments.losses.empty() && arguments.losses == arguments.output) return usage("OUT and --losses are two files");
  if (names_gguf(arguments.output) && arguments.compression != "none") {
    return usage("GGUF files are not compressed: --compress is for .qsf files");
  }
  return convert_model(arguments);
}

}  // namespace

int main(int argc, char** argv) { return qsf::sys::run_program(argc, argv, run); }
