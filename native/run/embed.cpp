#include "native/run/embed.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>

#include "native/cli/input.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/run/generate.h"
#include "native/run/output.h"
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

/// Returns a line of JSON with the shortest numbers that read back as the same floats.
std::string json_of(std::span<const float> row) {
  std::string line = "[";
  for (const float value : row) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    if (line.size() > 1) line += ',';
    line.append(digits.data(), end);
  }
  return line + "]\n";
}

/// Returns the number of lines that were left out.
Result<std::uint64_t> embed_lines(const Options& o, Host& host, EmbedPrompt prompt, const Rows& rows) {
  const int from = o.prompt_file.empty() ? sys::kInput : sys::open_input(o.prompt_file);
  if (from < 0) return make_error(ErrorCode::io_error, "cannot read {}: {}", o.prompt_file, std::strerror(errno));
  Lines lines(longest_text(host.session()), from);
  std::string line;
  Status status;
  std::uint64_t left_out = 0;
  const auto next = [&] {
    if (lines.waits() && sys::is_terminal(from)) show_input_mark(">");
    return lines.next(line);
  };
  for (LineKind kind = next(); status && kind != LineKind::end; kind = next()) {
    prompt.text = line;
    status = kind == LineKind::line ? embed(host, prompt, rows) : too_long_line(host.session());
    if (status || !is_of_a_line(status.error().code)) continue;
    const Error why = status.error();
    tell(make_error(why.code, "line {} is left out: {}", lines.count(), why.sentence));
    ++left_out;
    status = o.logits_file.empty() ? show("null\n") : Status();
  }
  if (!o.prompt_file.empty()) sys::close_file(from);
  if (!status) return status.error();
  if (cancelled()) return make_error(ErrorCode::cancelled, "stopped while reading texts");
  if (lines.error() != 0) {
    return make_error(ErrorCode::io_error, "cannot read {}: {}", o.prompt_file, std::strerror(lines.error()));
  }
  return left_out;
}

}  // namespace

Result<std::uint64_t> embed_all(const Options& o, Host& host, std::span<const std::string> inputs) {
  std::uint64_t left_out = 0;
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
    QSF_LET(n, embed_lines(o, host, prompt, rows));
    left_out = n;
  }
  if (o.prompt) {
    prompt.text = *o.prompt;
    QSF_TRY(embed(host, prompt, rows));
  }
  for (const std::string& text : o.texts) {
    prompt.text = text;
    QSF_TRY(embed(host, prompt, rows));
  }
  if (file) QSF_TRY(file->commit());
  return left_out;
}

}  // namespace qsf::run
