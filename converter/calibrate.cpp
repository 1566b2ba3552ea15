#include "converter/calibrate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "converter/local_files.h"
#include "native/host.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint32_t kWindow = 512;
constexpr std::uint64_t kMostText = 1 << 20;  // bytes that are read
constexpr std::uint64_t kLeastBudget = 64 << 20;
constexpr std::uint32_t kChunk = 64;
constexpr std::size_t kProbe = 1022;            // tokens on which losses are measured
constexpr std::size_t kMostLogits = 256 << 20;  // bytes

/// Removes a file when it goes.
struct Temporary {
  std::string path;
  ~Temporary() { ::unlink(path.c_str()); }
};

/// Steps until a generation or a prompt has ended.
Status finish(Host& host) {
  while (true) {
    QSF_LET(step, host.next());
    if (step == Step::done || step == Step::ready) return {};
  }
}

Result<std::vector<std::uint32_t>> ids_of(Session& session, std::string_view text) {
  std::vector<std::uint32_t> ids(text.size());
  QSF_LET(n, session.tokenize(text, false, ids));
  ids.resize(n);
  return ids;
}

Status read_windows(Host& host, std::span<const std::uint32_t> ids) {
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
    QSF_TRY(finish(host));
  }
  return {};
}

/// Texts that the model writes from `first` on, as likely as it holds them: a text alone says little of columns that it
/// does not use, and a model's own are of what it was trained on.
Status write_texts(Host& host, std::uint32_t first, std::uint64_t tokens, std::vector<std::uint32_t>& all) {
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
    QSF_TRY(finish(host));
    const std::span<const std::uint32_t> written = session.tokens();
    all.insert(all.end(), written.begin(), written.end());
  }
  return {};
}

Status write_model(const ModelSource& model, const Options& options, const std::string& path) {
  QSF_LET(conversion, Conversion::begin(model, options, path));
  while (true) {
    QSF_LET(step, conversion.step());
    if (step == Conversion::Step::done) return {};
  }
}

Result<std::unique_ptr<Host>> open_host(const ModelSource& model, const std::string& path, bool observe,
                                        const std::atomic<bool>& cancel) {
  LocalFiles files;
  QSF_LET(file, files.open(path));
  HostOptions options;
  options.open.observe = observe;
  options.open.all_logits = true;
  options.open.chunk = kChunk;
  options.open.max_seq_len = std::min(kWindow, model.config.max_seq_len);
  // Sums take up to eight bytes for each of 1024 columns that a column is multiplied with.
  options.budget = kLeastBudget + file.size * (observe ? 8 : 2) + std::uint64_t{model.config.vocab_size} * kChunk * 8;
  return Host::open(path, options, cancel);
}

double log_sum_exp(std::span<const float> row) {
  const float most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(double{x} - double{most});
  return double{most} + std::log(sum);
}

/// Kullback-Leibler of `row` from `base`.
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

Status Calibrator::read(const std::string& text_file, std::uint64_t own_tokens) {
  LocalFiles files;
  QSF_LET(file, files.open(text_file));
  if (::access(path_.c_str(), F_OK) == 0) {
    return make_error(ErrorCode::bad_argument, "{:.140} is where the model would be written for a while, and it exists",
                      path_);
  }
  std::string text(static_cast<std::size_t>(std::min(file.size, kMostText)), '\0');
  QSF_TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  const Temporary temporary{path_};
  Options options;
  if (!model_.carry_formats) options.matrices = FormatId::f32;
  QSF_TRY(write_model(model_, options, path_));
  const std::atomic<bool> cancel{false};
  QSF_LET(host, open_host(model_, path_, true, cancel));
  QSF_LET(ids, ids_of(host->session(), text));
  if (ids.empty()) return make_error(ErrorCode::bad_argument, "{:.140} has no text to calibrate with", text_file);
  QSF_TRY(read_windows(*host, ids));
  const std::uint32_t first = model_.config.bos != kNoToken ? model_.config.bos : ids.front();
  QSF_TRY(write_texts(*host, first, own_tokens, probe_));
  if (probe_.empty()) probe_ = ids;
  for (const Observed& seen : host->session().observed()) {
    Moments moments{seen.cols, observed_width(seen.cols), static_cast<double>(seen.n), {}};
    moments.sums.assign(seen.sums.begin(), seen.sums.end());
    calibration_.emplace(std::pair(seen.section, seen.role), std::move(moments));
  }
  const std::size_t room = kMostLogits / (sizeof(float) * model_.config.vocab_size);
  probe_.resize(std::min({probe_.size(), kProbe, std::max<std::size_t>(room, 64)}));
  return {};
}

Status Calibrator::compare(double* divergence) {
  const std::atomic<bool> cancel{false};
  QSF_LET(host, open_host(model_, path_, false, cancel));
  Session& session = host->session();
  const std::size_t vocab = model_.config.vocab_size;
  const std::uint32_t window = std::min(kWindow, session.stats().max_seq_len);
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
      QSF_LET(next, host->next());
      step = next;
      if (step != Step::logits) continue;
      for (std::span<const float> rows = session.logits(); !rows.empty(); rows = rows.subspan(vocab), ++row) {
        if (divergence == nullptr) {
          logits_.insert(logits_.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(vocab));
        } else {
          sum += divergence_of(std::span(logits_).subspan(row * vocab, vocab), rows.first(vocab));
        }
      }
    }
  }
  if (divergence != nullptr) *divergence = row == 0 ? 0 : sum / static_cast<double>(row);
  return {};
}

Result<double> Calibrator::loss(std::pair<std::uint32_t, Role> tensor, FormatId type) {
  const Temporary temporary{path_};
  Options options;
  if (!model_.carry_formats) options.matrices = FormatId::f32;
  if (logits_.empty()) {
    QSF_TRY(write_model(model_, options, path_));
    QSF_TRY(compare(nullptr));
  }
  options.types = {{tensor, type}};
  options.search = true;
  options.calibration = &calibration_;
  options.workers = workers_;
  QSF_TRY(write_model(model_, options, path_));
  double divergence = 0;
  QSF_TRY(compare(&divergence));
  return divergence;
}

}  // namespace qsf::convert
