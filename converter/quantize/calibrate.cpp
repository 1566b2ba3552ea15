#include "converter/quantize/calibrate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "converter/files/local_files.h"
#include "converter/readers/inputs.h"
#include "native/host/host.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "system/file.h"
#include "system/unfinished.h"

namespace qsf::convert {
namespace {

constexpr std::uint32_t kWindow = 512;
constexpr std::uint64_t kMostText = 1 << 20;  // bytes that are read
constexpr std::uint64_t kLeastBudget = 64 << 20;
constexpr std::uint32_t kChunk = 64;
constexpr std::string_view kMapped = "mmap";
constexpr const char* kLogits = ".logits";  // after the name of the calibrated model
constexpr std::size_t kProbe = 1022;        // tokens that losses are measured on

/// Returns options that do not change the model's weights.
Options exact(const LoadedModel& model) {
  Options options;
  if (!model.carry_formats) options.matrices = FormatId::f32;
  return options;
}

Error stopped() { return make_error(ErrorCode::cancelled, "the calibration was stopped"); }

struct Part {
  const Watch& watch;
  std::string_view what;
  std::uint64_t total, done = 0;
  Status tell(std::uint64_t more) const { return watch(what, done + more, total) ? Status() : Status(stopped()); }
};

/// Runs steps until a generation or a prompt has ended.
Status finish(Host& host, const Part& part) {
  while (true) {
    QSF_TRY(part.tell(host.session().tokens().size()));
    QSF_LET(step, host.next());
    if (step == Step::done || step == Step::ready) return {};
  }
}

/// Returns the beginning of a text that a calibration reads, up to the end of a character.
Result<std::string> text_of(const std::string& name) {
  LocalFiles files;
  QSF_LET(file, files.open(name));
  if (file.size == 0) return make_error(ErrorCode::bad_argument, "{:.140} has no text to calibrate with", name);
  std::string text(static_cast<std::size_t>(std::min(file.size, kMostText)), '\0');
  QSF_TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  const std::size_t valid = utf8::valid_prefix(text);
  if (valid == text.size()) return text;
  const bool cut = utf8::decode(text, valid).form == utf8::Form::incomplete && file.size > text.size();
  if (!cut) {
    return make_error(
        ErrorCode::bad_text,
        "{:.140} is neither a text in UTF-8 (byte {} is 0x{:02x}) nor a GGUF file of llama-imatrix, which "
        "writes its older files as GGUF with --in-file",
        name, valid, static_cast<std::uint8_t>(text[valid]));
  }
  text.resize(valid);
  return text;
}

Result<std::vector<std::uint32_t>> ids_of(Session& session, std::string_view text) {
  std::vector<std::uint32_t> ids(text.size());
  QSF_LET(n, session.tokenize(text, false, ids));
  ids.resize(n);
  return ids;
}

Status read_windows(Host& host, std::span<const std::uint32_t> ids, const Watch& watch) {
  Part part{watch, "reading the text", ids.size()};
  Session& session = host.session();
  const std::optional<std::uint32_t> begin = session.begin_token();
  std::vector<std::uint32_t> window;
  const std::uint32_t most = std::min(kWindow, session.stats().max_seq_len);
  while (!ids.empty()) {
    window.clear();
    if (begin) window.push_back(*begin);
    const std::size_t n = std::min<std::size_t>(ids.size(), most - window.size());
    window.insert(window.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
    ids = ids.subspan(n);
    QSF_TRY(session.rewind(0));
    Prompt prompt;
    prompt.tokens = window;
    prompt.max_tokens = 0;
    prompt.all_logits = true;  // so that every position enters the head
    QSF_TRY(session.start(prompt));
    QSF_TRY(finish(host, part));
    part.done += n;
  }
  return {};
}

/// Writes texts with the model from `first` on, sampled with its own probabilities. A given text says little about
/// columns that it does not use; the model's own texts resemble its training data.
Status write_texts(Host& host, std::uint32_t first, std::uint64_t tokens, const Watch& watch,
                   std::vector<std::uint32_t>& all) {
  Part part{watch, "writing texts of its own", tokens};
  Session& session = host.session();
  const std::uint32_t length = std::min(kWindow, session.stats().max_seq_len) - 1;
  for (std::uint64_t seed = 0; seed * length < tokens; ++seed) {
    QSF_TRY(session.rewind(0));
    Prompt prompt;
    prompt.tokens = {&first, 1};
    prompt.max_tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, tokens - seed * length));
    prompt.ignore_eos = true;
    prompt.sampler = {.temperature = 1, .top_k = 0, .top_p = 1};
    prompt.sampler.seed = seed;
    QSF_TRY(session.start(prompt));
    QSF_TRY(finish(host, part));
    const std::span<const std::uint32_t> written = session.tokens();
    part.done = std::min<std::uint64_t>(part.done + written.size(), tokens);
    all.insert(all.end(), written.begin(), written.end());
  }
  return {};
}

/// Sums of products, one vector for each input.
struct Sums {
  std::vector<std::shared_ptr<std::vector<float>>> all;

  ObservedRoom room() {
    const auto take = [](void* owner, std::uint64_t n) {
      return static_cast<Sums*>(owner)->all.emplace_back(std::make_shared<std::vector<float>>(n))->data();
    };
    return {take, this};
  }
  std::shared_ptr<const std::vector<float>> of(const Observed& seen) const {
    return *std::ranges::find(all, seen.sums.data(), [](const auto& sums) { return sums->data(); });
  }
};

/// Returns the bytes of keys and values for all positions.
std::uint64_t kv_bytes(const ModelConfig& config) {
  return std::uint64_t{config.n_layers} * kWindow * config.n_kv_heads * config.head_dim * 2 * sizeof(float);
}

/// Opens the model at `path`. `sums` receives the sums of products; null for none.
Result<std::unique_ptr<Host>> open_host(const LoadedModel& model, const std::string& path, Observe observe, Sums* sums,
                                        const std::atomic<bool>& cancel) {
  LocalFiles files;
  QSF_LET(file, files.open(path));
  HostOptions options;
  options.open.observe = observe;
  options.open.all_logits = true;
  options.open.chunk = kChunk;
  options.open.max_seq_len = std::min(kWindow, model.config.max_seq_len);
  if (sums != nullptr) options.open.observed_room = sums->room();
  options.budget = kLeastBudget + kv_bytes(model.config) + std::uint64_t{model.config.vocab_size} * kChunk * 8;
  // The weights of a mapped file stay in the system's file cache, as long as it has room.
  const auto maps = [](const SourceKind* kind) { return kind->name == kMapped; };
  if (std::ranges::any_of(source_kinds(), maps)) {
    options.source.kind = kMapped;
  } else {
    options.budget += 2 * file.size;
  }
  return Host::open(path, options, cancel);
}

/// Returns a digest of the model and the texts that moments and losses are measured on.
std::string digest_of(std::string_view model_hash, std::string_view text, std::uint64_t own_tokens) {
  const std::string own = std::to_string(own_tokens);
  Sha256 sum;
  for (const std::string_view part : {model_hash, text, std::string_view(own)}) {
    sum.update(std::as_bytes(std::span(part)));
  }
  return hex(sum.digest()).data();
}

double log_sum_exp(std::span<const float> row) {
  const float most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(double{x} - double{most});
  return double{most} + std::log(sum);
}

/// Returns the Kullback-Leibler divergence of `row` from `base`.
double divergence_of(std::span<const float> base, std::span<const float> row) {
  const double base_sum = log_sum_exp(base), sum = log_sum_exp(row);
  double out = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double log_p = double{base[i]} - base_sum;
    out += std::exp(log_p) * (log_p - (double{row[i]} - sum));
  }
  return out;
}

}  // namespace

Status Calibrator::write(const LoadedModel& model, const Options& options) {
  QSF_LET(conversion, Conversion::begin(model, options, path_));
  while (true) {
    QSF_LET(step, conversion.step());
    if (step == Conversion::Step::done) return {};
    if (!watch_({}, 0, 0)) return stopped();
  }
}

Status Calibrator::check(const std::string& text_file) const {
  QSF_TRY(text_of(text_file));
  if (!model_.tokenizer) {
    return make_error(ErrorCode::bad_argument, "a model without a tokenizer cannot read {:.140}", text_file);
  }
  for (const std::string& path : {path_, path_ + kLogits}) {
    if (sys::FileInfo there; !sys::look(path, there)) continue;
    return make_error(
        ErrorCode::bad_argument,
        "{:.140} exists, and the conversion would write the model there for a while: a conversion that was "
        "killed leaves it, and it may be deleted",
        path);
  }
  return {};
}

Status Calibrator::read(const std::string& text_file, std::uint64_t own_tokens) {
  QSF_TRY(check(text_file));
  QSF_LET(text, text_of(text_file));
  const sys::Unfinished temporary(path_);
  QSF_TRY(write(model_, exact(model_)));
  const std::atomic<bool> cancel{false};
  Sums sums;
  QSF_LET(host, open_host(model_, path_, Observe::products, &sums, cancel));
  QSF_LET(ids, ids_of(host->session(), text));
  if (ids.empty()) return make_error(ErrorCode::bad_argument, "{:.140} has no text to calibrate with", text_file);
  measured_on_ = digest_of(host->session().model_hash(), text, own_tokens);
  QSF_TRY(read_windows(*host, ids, watch_));
  const std::uint32_t first = model_.config.bos != kNoToken ? model_.config.bos : ids.front();
  QSF_TRY(write_texts(*host, first, own_tokens, watch_, probe_));
  if (probe_.empty()) probe_ = ids;
  for (const Observed& seen : host->session().observed()) {
    calibration_.emplace(std::pair(seen.stage, seen.role),
                         Moments{seen.cols, observed_width(seen.cols), static_cast<double>(seen.n), sums.of(seen)});
  }
  for (const ObservedLayer& layer : host->session().observed_layers()) {
    layers_.push_back({layer.n == 0 ? 0 : layer.cosines / static_cast<double>(layer.n), 0});
  }
  probe_.resize(std::min(probe_.size(), kProbe));
  host.reset();
  return read_layers();
}

/// Measures the model without each layer. The exact model must be at path_.
Status Calibrator::read_layers() {
  const std::atomic<bool> cancel{false};
  QSF_LET(host, open_host(model_, path_, Observe::layers, nullptr, cancel));
  QSF_TRY(divergence(*host));  // the reference logits
  Part part{watch_, "leaving out layers", layers_.size()};
  for (std::uint32_t i = 0; i < layers_.size(); ++i, ++part.done) {
    QSF_TRY(part.tell(0));
    host->session().skip_layer(i);
    QSF_LET(loss, divergence(*host));
    layers_[i].loss = loss;
  }
  return {};
}

/// Returns the divergence of a model from the first model of this function.
Result<double> Calibrator::divergence(Host& host) {
  Session& session = host.session();
  const std::size_t vocab = model_.config.vocab_size;
  const std::uint32_t window = std::min(kWindow, session.stats().max_seq_len);
  const bool first = !logits_;
  if (first) {
    QSF_LET(kept, KeptRows::create(path_ + kLogits, vocab));
    logits_.emplace(std::move(kept));
  }
  std::vector<float> base(vocab);
  double sum = 0;
  std::size_t row = 0;
  for (std::span<const std::uint32_t> left = probe_; !left.empty();) {
    Prompt prompt;
    prompt.tokens = left.first(std::min<std::size_t>(left.size(), window - 1));
    left = left.subspan(prompt.tokens.size());
    prompt.max_tokens = 0;
    prompt.all_logits = true;
    QSF_TRY(session.rewind(0));
    QSF_TRY(session.start(prompt));
    for (Step step = Step::working; step != Step::done;) {
      if (!watch_({}, 0, 0)) return stopped();
      QSF_LET(next, host.next());
      step = next;
      if (step != Step::logits) continue;
      for (std::span<const float> rows = session.logits(); !rows.empty(); rows = rows.subspan(vocab), ++row) {
        if (first) {
          QSF_TRY(logits_->add(rows.first(vocab)));
        } else {
          QSF_TRY(logits_->read(row, base));
          sum += divergence_of(base, rows.first(vocab));
        }
      }
    }
  }
  return row == 0 ? 0 : sum / static_cast<double>(row);
}

Result<double> Calibrator::divergence(const std::string& path) {
  const std::atomic<bool> cancel{false};
  QSF_LET(host, open_host(model_, path, Observe::nothing, nullptr, cancel));
  return divergence(*host);
}

Result<double> Calibrator::loss(std::pair<std::uint32_t, Role> tensor, FormatId type) {
  const sys::Unfinished temporary(path_);
  Options options = exact(model_);
  options.types = {{tensor, type}};
  options.search = true;
  options.calibration = &calibration_;
  options.workers = workers_;
  QSF_TRY(write(model_, options));
  return divergence(path_);
}

Result<double> Calibrator::loss(const Options& options, const std::string& path) {
  if (!options.gguf) return divergence(path);
  const sys::Unfinished temporary(path_);
  QSF_LET(written, open_model(path));
  written.carry_formats = true;
  QSF_TRY(write(written, exact(written)));
  return divergence(path_);
}

}  // namespace qsf::convert
