#include "native/run/rerank.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "native/cli/input.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/host/rerank.h"
#include "native/run/generate.h"
#include "native/run/output.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

struct Scored {
  float score;
  std::size_t line;
  std::string text;
};

/// Returns the shortest number that reads back as the same float.
std::string text_of(float score) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), score).ptr};
}

/// Scores the lines that are not empty. Returns the number of lines that were left out.
Result<std::uint64_t> score_lines(const Options& o, Host& host, int from, std::vector<Scored>& out) {
  Lines lines(longest_text(host.session()), from);
  std::string line;
  std::uint64_t left_out = 0;
  const auto next = [&] {
    if (lines.waits() && sys::is_terminal(from)) show_input_mark(">");
    return lines.next(line);
  };
  for (LineKind kind = next(); kind != LineKind::end; kind = next()) {
    if (kind == LineKind::line && line.empty()) continue;
    const Result<float> score =
        kind == LineKind::line
            ? rerank(host, o.mode_value, line)
            : make_error(ErrorCode::context_full, "it is longer than the context of {} tokens can hold",
                         host.session().stats().max_seq_len);
    if (score) {
      out.push_back({*score, lines.count(), line});
      continue;
    }
    const Error why = score.error();
    if (!is_of_a_line(why.code)) return why;
    tell(make_error(why.code, "line {} is left out: {}", lines.count(), why.sentence));
    ++left_out;
  }
  if (cancelled()) return make_error(ErrorCode::cancelled, "stopped while reading documents");
  if (lines.error() != 0) {
    return make_error(ErrorCode::io_error, "cannot read {}: {}", o.prompt_file, std::strerror(lines.error()));
  }
  return left_out;
}

/// Checks what every document would be refused for.
Status check_query(const Options& o, Session& session) {
  std::vector<std::uint32_t> ids(session.stats().max_seq_len);
  const Result<std::uint32_t> n = session.tokenize(o.mode_value, false, ids);
  if (n) return {};
  return make_error(n.error().code, "the query: {}", n.error().sentence);
}

}  // namespace

Result<std::uint64_t> rerank_lines(const Options& o, Host& host) {
  if (!host.session().scores()) {
    return make_error(ErrorCode::unsupported, "this model is no reranker: it scores no pairs of texts");
  }
  QSF_TRY(check_query(o, host.session()));
  const int from = o.prompt_file.empty() ? sys::kInput : sys::open_input(o.prompt_file);
  if (from < 0) return make_error(ErrorCode::io_error, "cannot read {}: {}", o.prompt_file, std::strerror(errno));
  std::vector<Scored> scored;
  const Result<std::uint64_t> left_out = score_lines(o, host, from, scored);
  if (!o.prompt_file.empty()) sys::close_file(from);
  if (!left_out) return left_out.error();
  std::ranges::sort(scored, [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.line < b.line;
  });
  for (const Scored& each : scored) {
    QSF_TRY(show(text_of(each.score) + "\t" + std::to_string(each.line) + "\t" + each.text + "\n"));
  }
  return left_out;
}

}  // namespace qsf::run
