#include "native/run/rerank.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "native/cli/input.h"
#include "native/cli/terminal.h"
#include "native/host/rerank.h"
#include "native/run/documents.h"
#include "native/run/generate.h"
#include "native/run/output.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

/// Returns the shortest number that reads back as the same float.
std::string text_of(float score) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), score).ptr};
}

/// Scores the documents, and leaves those that have a score. Returns the number of the others.
Result<std::uint64_t> score_all(const Options& o, Host& host, Documents& documents) {
  std::vector<Document>& all = documents.all();
  std::uint64_t left_out = 0;
  std::size_t n = 0;
  std::string text;
  for (Document document : all) {
    QSF_LET(kind, documents.read(document, text));
    if (kind == LineKind::line && text.empty()) continue;
    const Result<float> score =
        kind == LineKind::line ? rerank(host, o.mode_value, text) : too_long_line(host.session());
    if (score) {
      document.score = *score;
      all[n++] = document;
      continue;
    }
    const Error why = score.error();
    if (!is_of_a_line(why.code)) return why;
    tell(make_error(why.code, "line {} is left out: {}", document.line, why.sentence));
    ++left_out;
  }
  all.resize(n);
  return left_out;
}

Status show_all(const Documents& documents, std::span<const Document> sorted) {
  std::string text;
  for (const Document& each : sorted) {
    QSF_LET(kind, documents.read(each, text));
    if (kind != LineKind::line) return make_error(ErrorCode::io_error, "the documents changed while they were scored");
    QSF_TRY(show(text_of(each.score) + "\t" + std::to_string(each.line) + "\t" + text + "\n"));
  }
  return {};
}

/// Checks what every document would be refused for.
Status check_query(const Options& o, Session& session) {
  std::vector<std::uint32_t> ids(session.stats().max_seq_len);
  const Result<std::uint32_t> n = session.tokenize(o.mode_value, false, ids);
  if (n) return {};
  const Error why = with_advice(session, n.error());
  return make_error(why.code, "the query: {}", why.sentence);
}

}  // namespace

Result<std::uint64_t> rerank_lines(const Options& o, Host& host) {
  if (!host.session().scores()) {
    return make_error(ErrorCode::unsupported, "this model is no reranker: it scores no pairs of texts");
  }
  QSF_TRY(check_query(o, host.session()));
  QSF_LET(documents, Documents::find(o.prompt_file, longest_text(host.session())));
  QSF_LET(left_out, score_all(o, host, documents));
  std::ranges::sort(documents.all(), [](const Document& a, const Document& b) {
    return a.score != b.score ? a.score > b.score : a.line < b.line;
  });
  QSF_TRY(show_all(documents, documents.all()));
  return left_out;
}

}  // namespace qsf::run
