// qsf-convert converts a Hugging Face directory, GGUF or llama2.c file to .qsf, and inspects .qsf files.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/cli/inspect.h"
#include "converter/cli/progress.h"
#include "converter/cli/table.h"
#include "converter/cli/terminal.h"
#include "converter/conversion/conversion.h"
#include "converter/files/local_files.h"
#include "converter/files/output_file.h"
#include "converter/quantize/allocate.h"
#include "converter/quantize/calibrate.h"
#include "converter/quantize/imatrix.h"
#include "converter/quantize/losses.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/tokenizers/tokenizers.h"
#include "converter/types/written_type.h"
#include "native/cli/command_line.h"
#include "native/cli/exit_status.h"
#include "native/made/input_model.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"
#include "system/cores.h"
#include "system/out_of_memory.h"
#include "system/program.h"
#include "threads/thread.h"
#include "threads/thread_pool.h"

namespace {

using namespace qsf;
using namespace qsf::convert;

constexpr int kFailed = 1;
constexpr const char* kNoTokenizer = "none";
constexpr const char* kMixed = "mixed";  // a separate type for every matrix
constexpr double kMixedBits = 4.5;

struct Arguments {
  std::string input, output, inspect, tokenizer, recipe;
  std::string format, compression = "none", ternary = "auto", calibration, losses;
  std::vector<std::string> tensor_types;
  std::uint64_t own_tokens = 8192;
  bool writes_own = false;  // whether --own-tokens was given
  std::uint32_t threads = 0;
  double target_bpw = 0, target_bytes = 0;
  std::string target_size;
  bool quiet = false, search = false;
};

/// Returns whether types are chosen to reach a size.
bool chooses_types(const Arguments& arguments) { return arguments.target_bpw != 0 || arguments.target_bytes != 0; }

struct Compressing {
  Compression compression;
  std::uint32_t least_saved = 0;  // percent of a segment
};
/// Reading a twelfth less at 1 GB/s saves the time that decompression takes at ten times that speed. Smaller savings
/// lose time.
constexpr std::uint32_t kLeastSaved = 8;
const std::map<std::string, Compressing> kCompressions{
    {"none", {Compression::none}},
    {"lz4", {Compression::lz4}},
    {"lz4hc", {Compression::lz4hc}},
    {"zstd", {Compression::zstd}},
    {"auto", {can_decompress(Compression::zstd) ? Compression::zstd : Compression::lz4, kLeastSaved}}};

[[gnu::constructor(sys::kBeforeAll)]] void before_all() {
  sys::end_without_memory(kFailed, "qsf-convert: out_of_memory: the system refused memory that converting needs\n");
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  for (const Mixture& mixture : mixtures()) names.emplace_back(mixture.name);
  names.emplace_back(kMixed);
  return names;
}

/// Accepts names of types in any case and replaces them by their usual spelling.
CLI::Validator type_check() {
  const CLI::IsMember known(type_names(), CLI::ignore_case);
  const auto check = [known](std::string& name) {
    const std::string hint = find_mixture(name) == nullptr ? mixture_hint(name) : std::string();
    return hint.empty() ? known(name) : hint;
  };
  return CLI::Validator(check, known.get_description());
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
  text +=
      "It is a path, an http(s) URL of a file or, with a slash at its end, of a directory, or hf:OWNER/NAME[/FILE]"
      "[@REVISION] of the Hugging Face Hub.\n";
  text +=
      "Without --quant-type, models with float weights become 8bit, and GGUF and .qsf files keep every tensor's "
      "type.\n";
  return text;
}

constexpr ManualSection kSeeAlso{"See also", "qsf-run(1), qsf-parity(1), and the installed documentation."};

std::string fixed(double number, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return text.data();
}

/// Prints one line, "qsf-convert: CODE: sentence".
int fail(ErrorCode code, std::string_view sentence) {
  std::fprintf(stderr, "qsf-convert: %s: %s\n", std::string(error_name(code)).c_str(),
               printable(sentence_without_secrets(sentence)).c_str());
  return kFailed;
}

int fail(const Error& error) { return fail(error.code, error.sentence); }

int usage(std::string_view sentence) {
  fail(ErrorCode::bad_argument, std::string(sentence) + " (see --help)");
  return kMistaken;
}

/// Returns the exit code of a run, or reports lost output. Is silent if nobody reads the output any more: whoever ended
/// the reader knows it.
int finish(int code) {
  bool unread = false;
  const Status written = finish_stdout(unread);
  if (unread) return kUnread;
  return written ? code : fail(written.error());
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "qsf-convert: warning: %s\n", printable(sentence_without_secrets(warning)).c_str());
  }
}

/// The progress of a conversion, and the signals that end it. A stopped conversion leaves no file.
struct Run {
  const Arguments& arguments;
  StopSignals signals = {};
  Progress progress{arguments.quiet};

  bool goes_on() const { return signals.caught() == 0; }
  Error stopped() const {
    return make_error(ErrorCode::cancelled, "stopped by signal {}; {:.140} is as it was", signals.caught(),
                      arguments.output);
  }
  int failed(const Error& error) {
    progress.finish();
    if (goes_on()) return fail(error);
    fail(stopped());
    return sys::exit_code_of(signals.caught());
  }
};

Result<Summary> write_model(const LoadedModel& model, const Options& options, Run& run) {
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

/// Returns the contents of llama.cpp's importance matrix if --calibration names one.
Result<std::optional<Calibration>> imatrix_of(const LoadedModel& model, const Arguments& arguments) {
  LocalFiles files;
  QSF_LET(file, files.open(arguments.calibration));
  QSF_LET(head, read_head(file, kHeadBytes));
  if (!is_gguf(head)) return std::optional<Calibration>();
  if (arguments.writes_own) {
    return make_error(ErrorCode::bad_argument, "--own-tokens continues a text, and {:.140} is not a text",
                      arguments.calibration);
  }
  if (chooses_types(arguments)) {
    return make_error(ErrorCode::bad_argument, "types are chosen by their effect on a text, and {:.140} is not a text",
                      arguments.calibration);
  }
  std::vector<std::string> warnings;
  QSF_LET(calibration, read_imatrix(file, model, warnings));
  if (!arguments.quiet) print_warnings(warnings);
  return std::optional<Calibration>(std::move(calibration));
}

/// Takes the measured effect of each layer into the options, for the file.
void take_layers(std::span<const Calibrator::Layer> layers, const Arguments& arguments, Options& options) {
  Table table({"layer", "cosine", "loss without it"});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    options.importance.push_back(static_cast<float>(layers[i].loss));
    table.add({std::to_string(i), fixed(layers[i].cosine, 4), fixed(layers[i].loss, 5)});
  }
  if (!arguments.quiet) table.print(stdout);
}

/// Returns the losses of earlier conversions; empty if there is no file yet.
Result<std::optional<Losses>> kept_losses(const Arguments& arguments) {
  LocalFiles files;
  std::optional<Input> file;
  if (!arguments.losses.empty()) {
    QSF_LET(found, files.find(arguments.losses));
    file = std::move(found);
  }
  if (!file) return std::optional<Losses>();
  QSF_LET(losses, Losses::read(*file));
  return std::optional(std::move(losses));
}

/// Returns the bytes that remain for matrices whose types are chosen.
Result<std::uint64_t> bytes_to_share(const LoadedModel& model, const Arguments& arguments, const Options& options) {
  QSF_LET(others, other_bytes(model, options));
  double bytes = arguments.target_bytes;
  if (arguments.target_bpw != 0) {
    QSF_LET(all, weights_of(model, options));
    bytes = arguments.target_bpw * static_cast<double>(all) / 8;
  }
  constexpr double kMostBytes = 1e18;
  if (bytes < static_cast<double>(others)) {
    return make_error(ErrorCode::bad_argument,
                      "the tensors with a type of their own take {} bytes, and the target is {:.0f}", others, bytes);
  }
  return static_cast<std::uint64_t>(std::min(bytes, kMostBytes)) - others;
}

/// Checks before hours of work: outputs that cannot be written or created, sizes that cannot be reached, files of the
/// wrong type.
Status check_first(const LoadedModel& model, const Calibrator& calibrator, const Arguments& arguments,
                   const Options& options) {
  QSF_TRY(calibrator.check(arguments.calibration));
  QSF_TRY(Conversion::begin(model, options, arguments.output));  // created and removed
  if (!arguments.losses.empty()) {
    QSF_TRY(OutputFile::create(arguments.losses));
    QSF_TRY(kept_losses(arguments));
  }
  if (!chooses_types(arguments)) return {};
  QSF_LET(bytes, bytes_to_share(model, arguments, options));
  return check_bytes(model, options, bytes);
}

/// Chooses a type for every matrix to reach the requested size.
Status choose(const LoadedModel& model, Calibrator& calibrator, Run& run, Options& options) {
  const Arguments& arguments = run.arguments;
  QSF_LET(kept, kept_losses(arguments));
  Losses losses = kept ? std::move(*kept) : Losses(calibrator.measured_on());
  QSF_TRY(losses.check(calibrator.measured_on(), arguments.losses));
  const MeasureLoss measure = [&](std::pair<std::uint32_t, Role> tensor, FormatId type, std::uint64_t done,
                                  std::uint64_t total) -> Result<double> {
    run.progress.update("measuring matrices", done, total);
    if (const std::optional<double> kept = losses.find(tensor, type)) return *kept;
    QSF_LET(loss, calibrator.loss(tensor, type));
    losses.add(tensor, type, loss);
    return loss;
  };
  QSF_LET(bytes, bytes_to_share(model, arguments, options));
  Result<std::vector<TensorChoice>> choices = type_choices(model, options, calibrator.calibration(), measure);
  run.progress.finish();
  // Measured losses are written even if the rest was stopped.
  if (!arguments.losses.empty()) QSF_TRY(losses.write(arguments.losses));
  QSF_LET(tensors, std::move(choices));
  QSF_TRY(choose_types(tensors, bytes));
  Table table({"stage", "tensor", "type", "loss"});
  for (const TensorChoice& tensor : tensors) {
    const TypeChoice& type = tensor.types[tensor.chosen];
    options.types[{tensor.stage, tensor.role}] = type.format;
    table.add({std::to_string(tensor.stage), std::string(rule_of(tensor.role).name),
               std::string(format_of(type.format).name), fixed(type.loss, 5)});
  }
  if (!arguments.quiet) table.print(stdout);
  return {};
}

int convert_model(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  Result<InputModel> input = open_input(
      arguments.input, {arguments.tokenizer.empty(), arguments.recipe, kTernaryLayouts.at(arguments.ternary)});
  if (!input) return fail(input.error());
  LoadedModel* const model = &input->model;
  if (!arguments.tokenizer.empty() && arguments.tokenizer != kNoTokenizer) {
    if (const Status read = read_tokenizer_file(arguments.tokenizer, *model); !read) return fail(read.error());
  }
  if (!arguments.quiet) {
    for (const std::string& note : input->notes) {
      std::fprintf(stderr, "qsf-convert: %s\n", printable(sentence_without_secrets(note)).c_str());
    }
    print_warnings(model->warnings);
  }
  Options options;
  options.gguf = names_gguf(arguments.output);
  if (const Mixture* const mixture = find_mixture(arguments.format)) {
    if (const Status mixed = mix_types(*model, *mixture, options); !mixed) return fail(mixed.error());
  } else if (!arguments.format.empty()) {
    options.matrices = written_id(arguments.format);
  }
  if (const Status fixed = fix_types(*model, arguments.tensor_types, options); !fixed) return fail(fixed.error());
  const Compressing& compressing = kCompressions.at(arguments.compression);
  options.compression = compressing.compression;
  options.least_saved = compressing.least_saved;
  options.search = arguments.search || !arguments.calibration.empty();
  ThreadPool pool(arguments.threads != 0 ? arguments.threads : usable_cores());
  options.workers = pool.workers();
  if (Thread::refused() != 0 && !arguments.quiet) {
    print_warnings({"the system refused threads, by a limit of processes or of memory: it quantizes with " +
                    std::to_string(pool.count())});
  }
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
      if (const Status possible = check_first(*model, calibrator, arguments, options); !possible) {
        return run.failed(possible.error());
      }
      const Status status = calibrator.read(arguments.calibration, arguments.own_tokens);
      if (!status) return run.failed(status.error());
      run.progress.finish();
      take_layers(calibrator.layers(), arguments, options);
    }
    options.calibration = imatrix ? &*imatrix : &calibrator.calibration();
  }
  if (chooses_types(arguments)) {
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

/// With `quiet`, checks without printing.
int inspect_file(const std::string& path, bool quiet) {
  LocalFiles files;
  const Result<Input> file = files.open(path);
  if (!file) return fail(file.error());
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> nowhere(quiet ? sys::open_nowhere() : nullptr, &std::fclose);
  const Status status = inspect(*file, nowhere ? nowhere.get() : stdout);
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
  Choices choices;
  const auto begin = [&app](const char* group) { app.option_defaults()->group(group); };
  begin("What to convert");
  app.add_option("IN", arguments.input, "The model to convert")->type_name("");
  app.add_option("OUT", arguments.output, "The .qsf file to write; of a name that ends in .gguf, a GGUF file")
      ->type_name("");
  app.add_option("--tokenizer", arguments.tokenizer,
                 "A tokenizer.json, tokenizer.model, GGUF or llama2.c tokenizer.bin to use instead of the model's own; "
                 "\"none\" for none")
      ->type_name("FILE");
  app.add_option("--recipe", arguments.recipe,
                 "A JSON file that describes the model's layers and tensors, for architectures that are not known")
      ->type_name("FILE");
  choices[app.add_option("--i2s", arguments.ternary, "The layout of a GGUF's I2_S tensors")
              ->check(CLI::IsMember(names_of(kTernaryLayouts)))
              ->type_name("LAYOUT")
              ->capture_default_str()] = names_of(kTernaryLayouts);
  begin("Types and compression");
  choices[app.add_option("--quant-type", arguments.format,
                         "The format of all matrices, or a mixture of llama.cpp; mixed: one for each, by --calibration "
                         "and --target-bpw, 4.5 by default")
              ->check(type_check())
              ->type_name("TYPE")] = type_names();
  app.add_option(
         "--tensor-type", arguments.tensor_types,
         "The format of all matrices of one name, as --inspect shows it: token_embd=q6_k. May be given several times")
      ->type_name("ROLE=TYPE")
      ->allow_extra_args(false);
  choices[app.add_option("--compress", arguments.compression, "Compression of the segments")
              ->check(CLI::IsMember(names_of(kCompressions)))
              ->type_name("HOW")
              ->capture_default_str()] = names_of(kCompressions);
  begin("Rounding by a text");
  app.add_flag("--search", arguments.search, "Seek scales and codes by their squared errors instead of rounding");
  app.add_option(
         "--calibration", arguments.calibration,
         "A text that the model reads first; then scales and codes are chosen by the effect of their errors on it")
      ->type_name("FILE");
  const CLI::Option* const own_tokens =
      app.add_option("--own-tokens", arguments.own_tokens, "Tokens that the model writes itself for --calibration")
          ->check(natural<std::uint64_t>())
          ->needs("--calibration")
          ->capture_default_str();
  app.add_option("--target-bpw", arguments.target_bpw, "Bits per weight over all tensors: a type is chosen for each")
      ->check(real())
      ->check(CLI::Range(1.0, 32.0));
  app.add_option("--losses", arguments.losses,
                 "A file that keeps the losses of single matrices, for conversions of the same model to other sizes")
      ->type_name("FILE");
  app.add_option("--target-size", arguments.target_size, "The same by the size of all tensors: MB, or with K, M or G")
      ->type_name("SIZE")
      ->check(size())
      ->excludes("--target-bpw");
  begin("Program");
  app.add_option("--inspect", arguments.inspect, "Print the contents of a .qsf file and check every checksum")
      ->type_name("FILE");
  app.add_option("--threads", arguments.threads, "Threads that quantize; 0: one per physical core")
      ->check(natural<std::uint32_t>())
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_flag("--quiet", arguments.quiet, "Print errors only");
  const std::string inputs = footer();
  const std::string status = exit_status("an error", "; nothing is left behind");
  const std::array manual{ManualSection{"Inputs", inputs}, ManualSection{"Exit status", status}, kSeeAlso};
  const Parsed parsed = parse(app, argc, argv, {.choices = choices, .manual = manual});
  if (parsed.what == Parsed::What::told) return finish(0);
  if (parsed.what == Parsed::What::mistake) return usage(parsed.sentence);
  if (!arguments.target_size.empty()) {
    constexpr double kMegabyte = 1e6;
    arguments.target_bytes = static_cast<double>(read_size(arguments.target_size, kMegabyte).value_or(0));
  }
  if (!arguments.inspect.empty()) {
    const auto given = [](const CLI::Option* option) { return option->count() > 0; };
    if (app.get_options(given).size() > (arguments.quiet ? 2 : 1)) {
      return usage("--inspect takes one file and nothing else, except --quiet");
    }
    return inspect_file(arguments.inspect, arguments.quiet);
  }
  arguments.writes_own = own_tokens->count() > 0;
  if (arguments.input.empty()) return usage("IN and OUT.qsf, or --inspect FILE, are needed");
  if (arguments.output.empty()) return usage("OUT.qsf is missing");
  if (chooses_types(arguments) && !arguments.format.empty() && arguments.format != kMixed) {
    return usage("--target-bpw and --target-size choose a type for each matrix: --quant-type is mixed, or not given");
  }
  if (is_address(arguments.output)) return usage("OUT is a path, and " + arguments.output + " is an address");
  if (arguments.output == "-") return usage("OUT is no file: standard output cannot take bytes in any order");
  if (arguments.format == kMixed) {
    arguments.format.clear();
    if (arguments.target_bpw == 0 && arguments.target_bytes == 0) arguments.target_bpw = kMixedBits;
  }
  if (chooses_types(arguments) && arguments.calibration.empty()) {
    return usage("--target-bpw, --target-size and mixed choose types by their losses: --calibration FILE is needed");
  }
  if (!arguments.losses.empty() && !chooses_types(arguments)) {
    return usage("--losses keeps the losses that types are chosen by: --target-bpw, --target-size or mixed is needed");
  }
  if (!arguments.losses.empty() && arguments.losses == arguments.output) return usage("OUT and --losses are two files");
  if (names_gguf(arguments.output) && arguments.compression != "none") {
    return usage("GGUF files are not compressed: --compress is for .qsf files");
  }
  return convert_model(arguments);
}

}  // namespace

int main(int argc, char** argv) { return qsf::sys::run_program(argc, argv, run); }
