#include "native/run_embed.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "native/run_input.h"
#include "native/run_output.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

using Rows = std::function<Status(std::span<const float>)>;

Status embed(Host& host, const EmbedPrompt& prompt, const Rows& rows) {
  Session& session = host.session();
  QSF_TRY(session.embed(prompt));
  while (true) {
    const Result<Step> step = host.next();
    if (!step) {
      session.stop();
      return step.error();
    }
    if (*step == Step::embedding) QSF_TRY(rows(session.embedding()));
    if (*step == Step::done) return {};
  }
}

/// The shortest numbers that read back as the same floats; JSON has none that is not finite.
std::string json_of(std::span<const float> row) {
  std::string line = "[";
  for (const float value : row) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    if (line.size() > 1) line += ',';
    line += std::isfinite(value) ? std::string_view(digits.data(), end) : std::string_view("null");
  }
  return line + "]\n";
}

Status embed_lines(const Options& o, Host& host, EmbedPrompt prompt, const Rows& rows) {
  const int from = o.prompt_file.empty() ? sys::kInput : sys::open_input(o.prompt_file);
  if (from < 0) return make_error(ErrorCode::io_error, "cannot read {}: {}", o.prompt_file, std::strerror(errno));
  Lines lines(longest_text(host.session()), from);
  std::string line;
  Status status;
  for (Lines::Kind kind = lines.next(line); status && kind != Lines::Kind::end; kind = lines.next(line)) {
    if (kind == Lines::Kind::too_long) {
      status = make_error(ErrorCode::context_full, "the line is longer than the context of {} tokens can hold",
                          host.session().stats().max_seq_len);
      break;
    }
    prompt.text = line;
    status = embed(host, prompt, rows);
  }
  if (!o.prompt_file.empty()) sys::close_file(from);
  return status;
}

}  // namespace

Status embed_all(const Options& o, Host& host, std::span<const std::string> inputs) {
  std::optional<OutputFile> file;
  if (!o.logits_file.empty()) {
    QSF_LET(opened, OutputFile::create(o.logits_file, inputs));
    file.emplace(std::move(opened));
  }
  const std::size_t dim = host.session().stats().dim;
  const Rows rows = [&](std::span<const float> all) -> Status {
    if (file) return file->write(std::as_bytes(all));
    for (std::size_t i = 0; i < all.size(); i += dim) QSF_TRY(show(json_of(all.subspan(i, dim))));
    return {};
  };
  EmbedPrompt prompt;
  prompt.pooling = o.pooling;
  prompt.normalize = o.normalize;
  prompt.tokens = o.tokens;
  if (!o.tokens.empty()) {
    QSF_TRY(embed(host, prompt, rows));
  } else if (o.reads_prompt()) {
    QSF_TRY(embed_lines(o, host, prompt, rows));
  }
  if (o.prompt) {
    prompt.text = *o.prompt;
    QSF_TRY(embed(host, prompt, rows));
  }
  for (const std::string& text : o.texts) {
    prompt.text = text;
    QSF_TRY(embed(host, prompt, rows));
  }
  return file ? file->commit() : Status();
}

}  // namespace qsf::run
