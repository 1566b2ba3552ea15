#include "native/run/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "native/cli/input.h"
#include "native/sources/clock.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

/// A byte of text is at most one token: the byte, an id of 4 bytes, and for half of the tokens a float to compare.
constexpr std::uint64_t kBytesPerTextByte = 7;
constexpr std::chrono::milliseconds kBetweenLines{250};  // of the progress

/// The scores of one window.
struct WindowScore {
  Moments loss;                // of the counted tokens, in nats
  double base_loss = 0;        // their loss by the saved logits
  std::uint32_t same_top = 0;  // of the counted positions
};

/// The windows of a text on their way through the session's sequences.
class Windows {
 public:
  Windows(Host& host, std::span<const std::uint32_t> ids, const LogitsShape& shape, const LogitsReader* base,
          OutputFile* save, bool hash, bool tells)
      : host_(host),
        ids_(ids),
        shape_(shape),
        base_(base),
        save_(save),
        hash_(hash),
        tells_(tells),
        scores_(shape.windows) {
    running_.resize(std::min(host.session().stats().sequences, shape.windows));
    if (base_ != nullptr) {
      base_row_.resize(shape.vocab_size);
      divergences_.resize(std::size_t{shape.windows} * n_counted(shape.window));
    }
    if (hash_) hashes_.resize(shape.windows);
  }

  Status run();
  /// Errors: not_finite for a figure that is not finite.
  Result<Perplexity> result();

 private:
  struct Running {
    std::uint32_t window = 0, row = 0;  // row: the next counted one
  };

  Status start(std::uint32_t sequence);
  /// Returns the perplexity of the tokens that have been scored; not a number before the first.
  double so_far() const;
  /// Prints a line on standard error.
  void tell_window(std::uint32_t window) const;
  /// Shows the progress at a terminal.
  void show_progress();
  Status take_rows(Running& at, std::span<const float> rows);
  Status take_row(const Running& at, std::span<const float> row);

  Host& host_;
  std::span<const std::uint32_t> ids_;
  LogitsShape shape_;
  const LogitsReader* base_;
  OutputFile* save_;
  bool hash_, tells_;
  std::vector<WindowScore> scores_;  // by window, so that sums do not depend on which ends first
  std::vector<float> divergences_, base_row_;
  std::vector<std::string> hashes_;
  std::vector<Running> running_;  // by sequence
  std::uint32_t n_started_ = 0;
  std::uint64_t n_counted_ = 0;  // rows
  StatusLine line_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;  // when the line is shown again
};

Status Windows::start(std::uint32_t sequence) {
  if (n_started_ == shape_.windows) return {};
  Session& session = host_.session();
  QSF_TRY(session.rewind(0, sequence));
  running_[sequence] = {n_started_, 0};
  Prompt prompt;
  // The last token is not fed: no counted token follows it.
  prompt.tokens = ids_.subspan(std::size_t{n_started_} * shape_.window, shape_.window - 1);
  prompt.max_tokens = 0;
  prompt.all_logits = true;
  prompt.logits_from = first_counted(shape_.window);
  prompt.hash_logits = hash_;
  ++n_started_;
  return session.start(prompt, sequence);
}

Status Windows::run() {
  Session& session = host_.session();
  if (save_ != nullptr) QSF_TRY(save_->write(logits_header(shape_)));
  for (std::uint32_t i = 0; i < running_.size(); ++i) QSF_TRY(start(i));
  while (true) {
    QSF_LET(step, host_.next());
    if (step == Step::ready) break;
    const std::uint32_t sequence = session.sequence();
    if (step == Step::logits) QSF_TRY(take_rows(running_[sequence], session.logits()));
    if (step != Step::done) continue;
    if (hash_) hashes_[running_[sequence].window] = session.logits_hash(sequence);
    if (tells_) tell_window(running_[sequence].window);
    QSF_TRY(start(sequence));
  }
  line_.clear();
  return {};
}

double Windows::so_far() const {
  Moments loss;
  for (const WindowScore& score : scores_) loss.add(score.loss);
  return std::exp(loss.mean());
}

void Windows::tell_window(std::uint32_t window) const {
  std::fprintf(stderr, "window     %u of %u; perplexity so far %.4f\n", window + 1, shape_.windows, so_far());
}

void Windows::show_progress() {
  const Clock::time_point now = Clock::now();
  if (tells_ || n_counted_ == 0 || now < next_) return;
  next_ = now + kBetweenLines;
  const std::uint64_t all = std::uint64_t{shape_.windows} * n_counted(shape_.window);
  const double share = static_cast<double>(n_counted_) / static_cast<double>(all);
  char text[128];
  std::snprintf(text, sizeof text, "window %llu of %u; perplexity so far %.4f; %.0f s left",
                static_cast<unsigned long long>(
                    std::min<std::uint64_t>(n_counted_ / n_counted(shape_.window) + 1, shape_.windows)),
                shape_.windows, so_far(), std::ceil(seconds_since(begin_) * (1 - share) / share));
  line_.show(text);
}

Status Windows::take_rows(Running& at, std::span<const float> rows) {
  if (save_ != nullptr) {
    const std::uint64_t row = std::uint64_t{at.window} * n_counted(shape_.window) + at.row;
    QSF_TRY(save_->write_at(kLogitsHeaderBytes + row * shape_.vocab_size * sizeof(float), std::as_bytes(rows)));
  }
  for (; !rows.empty(); rows = rows.subspan(shape_.vocab_size), ++at.row) {
    QSF_TRY(take_row(at, rows.first(shape_.vocab_size)));
    ++n_counted_;
  }
  show_progress();
  return {};
}

Status Windows::take_row(const Running& at, std::span<const float> row) {
  WindowScore& score = scores_[at.window];
  const std::size_t next = std::size_t{at.window} * shape_.window + first_counted(shape_.window) + at.row + 1;
  const std::uint32_t token = ids_[next];
  const double sum = log_sum_exp(row);
  score.loss.add(sum - double{row[token]});
  if (base_ == nullptr) return {};
  const std::size_t index = std::size_t{at.window} * n_counted(shape_.window) + at.row;
  QSF_TRY(base_->read(index, base_row_));
  const double base_sum = log_sum_exp(base_row_);
  score.base_loss += base_sum - double{base_row_[token]};
  const Compared compared = compare(base_row_, base_sum, row, sum);
  divergences_[index] = static_cast<float>(compared.divergence);
  score.same_top += compared.same_top ? 1 : 0;
  return {};
}

Result<Perplexity> Windows::result() {
  Moments loss;
  double base_loss = 0;
  std::uint64_t same_top = 0;
  for (const WindowScore& score : scores_) {
    loss.add(score.loss);
    base_loss += score.base_loss;
    same_top += score.same_top;
  }
  Perplexity out;
  out.value = std::exp(loss.mean());
  out.standard_error = out.value * loss.standard_error();
  if (!std::isfinite(out.value) || (loss.n > 1 && !std::isfinite(out.standard_error))) {
    return make_error(ErrorCode::not_finite, "a mean loss of {} nats gives a perplexity that is no finite number",
                      loss.mean());
  }
  out.counted = loss.n;
  out.window = shape_.window;
  out.windows = shape_.windows;
  out.ids_crc = shape_.ids_crc;
  if (hash_) {
    Sha256 all;
    for (const std::string& hash : hashes_) all.update(std::as_bytes(std::span(hash)));
    out.logits_hash = hex(all.digest()).data();
  }
  if (base_ == nullptr) return out;
  const auto n = static_cast<double>(loss.n);
  double divergence = 0;
  for (const float d : divergences_) divergence += double{d};
  out.divergence = {.mean = divergence / n,
                    .quantile_99 = quantile(divergences_, 0.99),
                    .same_top = static_cast<double>(same_top) / n,
                    .perplexity_ratio = std::exp((loss.sum - base_loss) / n)};
  if (!std::isfinite(out.divergence->mean) || !std::isfinite(out.divergence->quantile_99) ||
      !std::isfinite(out.divergence->perplexity_ratio)) {
    return make_error(ErrorCode::not_finite, "the divergence from the saved logits, {} nats, is no finite number",
                      out.divergence->mean);
  }
  return out;
}

/// Returns the ids of the text, with the model's begin token in front if it expects one.
Result<std::vector<std::uint32_t>> ids_of(Session& session, std::string_view text) {
  std::vector<std::uint32_t> ids(text.size() + 1);
  const Result<std::uint32_t> n = session.tokenize(text, false, ids, {}, true);
  if (!n && n.error().code == ErrorCode::context_full) {
    return make_error(ErrorCode::unsupported, "the text has more tokens than bytes");
  }
  if (!n) return n.error();
  ids.resize(*n);
  return ids;
}

/// Returns bad_argument unless the saved logits are of the same tokens.
Status check_base(const std::string& name, const LogitsShape& base, const LogitsShape& own) {
  if (base.vocab_size != own.vocab_size) {
    return make_error(ErrorCode::bad_argument, "{} has logits of a vocabulary of {}; the model's has {}", name,
                      base.vocab_size, own.vocab_size);
  }
  if (base.windows == own.windows && base.ids_crc == own.ids_crc) return {};
  return make_error(ErrorCode::bad_argument, "{} was saved from another text or with another tokenizer", name);
}

}  // namespace

Result<Measured> read_measured(Options& o) {
  Measured out;
  QSF_LET(text, read_text(o.mode_value, static_cast<std::size_t>(o.host.budget / kBytesPerTextByte), "the budget"));
  out.text = std::move(text);
  if (out.text.empty()) return make_error(ErrorCode::bad_argument, "{} has no text to measure with", o.mode_value);
  o.host.budget -= out.text.size() * kBytesPerTextByte;
  if (!o.kl_file.empty()) {
    QSF_LET(base, LogitsReader::open(o.kl_file));
    const LogitsShape& shape = base.shape();
    if (shape.window != o.window) {
      return make_error(ErrorCode::bad_argument, "{} was saved with windows of {} tokens, not {} (see --window)",
                        o.kl_file, shape.window, o.window);
    }
    if (o.windows == 0) o.windows = shape.windows;
    if (shape.windows != o.windows) {
      return make_error(ErrorCode::bad_argument, "{} has the logits of {} windows, not of {} (see --windows)",
                        o.kl_file, shape.windows, o.windows);
    }
    out.base.emplace(std::move(base));
  }
  out.context_asked = o.host.open.max_seq_len != 0;
  if (!out.context_asked) o.host.open.max_seq_len = o.window;
  return out;
}

Result<Perplexity> measure_perplexity(const Options& o, Host& host, Measured& measured, OutputFile* save) {
  const Clock::time_point begin = Clock::now();
  Session& session = host.session();
  const Stats stats = session.stats();
  if (!measured.context_asked && o.window > stats.model_seq_len) {
    return make_error(ErrorCode::bad_argument,
                      "a window of {} tokens is longer than the context of {} that the model was made for (see "
                      "--max-seq-len)",
                      o.window, stats.model_seq_len);
  }
  QSF_LET(ids, ids_of(session, measured.text));
  measured.text = {};
  const std::size_t whole = ids.size() / o.window;
  if (whole == 0) {
    return make_error(ErrorCode::bad_argument, "the text has {} tokens, less than a window of {}", ids.size(),
                      o.window);
  }
  LogitsShape shape{.window = o.window, .vocab_size = stats.vocab_size};
  shape.windows = static_cast<std::uint32_t>(o.windows == 0 ? whole : std::min<std::size_t>(whole, o.windows));
  if (const std::optional<std::uint32_t> first = session.begin_token()) {
    for (std::uint32_t i = 0; i < shape.windows; ++i) ids[std::size_t{i} * shape.window] = *first;
  }
  const std::span<const std::uint32_t> used = std::span(ids).first(std::size_t{shape.windows} * shape.window);
  shape.ids_crc = crc32(std::as_bytes(used));
  if (measured.base) QSF_TRY(check_base(o.kl_file, measured.base->shape(), shape));
  Windows windows(host, used, shape, measured.base ? &*measured.base : nullptr, save, !o.receipt_file.empty(),
                  o.verbose);
  QSF_TRY(windows.run());
  QSF_LET(out, windows.result());
  out.seconds = seconds_since(begin);
  return out;
}

}  // namespace qsf::run
