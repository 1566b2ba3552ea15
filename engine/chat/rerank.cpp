#include "qsf/chat/rerank.h"

#include <algorithm>
#include <array>

#include "chat/block.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

/// The text of a pair, of which two ranges are not the template's own.
struct PairText {
  std::span<char> room;
  std::size_t size = 0;
  std::array<TextRange, 2> plain{};
  std::size_t n_plain = 0;

  void add(std::string_view text) {
    std::ranges::copy(text, room.begin() + static_cast<std::ptrdiff_t>(size));
    size += text.size();
  }
  void add_plain(std::string_view text) {
    plain[n_plain++] = {size, size + text.size()};
    add(text);
  }
  std::string_view text() const { return {room.data(), size}; }
  std::span<const TextRange> ranges() const { return {plain.data(), n_plain}; }
};

}  // namespace

Status rerank(Session& session, std::string_view query, std::string_view document, std::span<std::byte> memory,
              std::uint32_t sequence) {
  constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
  const std::string_view form = session.metadata(kRerankTemplate);
  const std::size_t query_at = form.find(kQuery), document_at = form.find(kDocument);
  if (!session.scores()) return make_error(ErrorCode::unsupported, "this model is no reranker: it scores no pairs");
  if (query_at == form.npos || document_at == form.npos || document_at < query_at + kQuery.size()) {
    return make_error(ErrorCode::unsupported, "the file does not state the form of a pair of texts");
  }
  if (query.empty() || document.empty()) {
    return make_error(ErrorCode::bad_argument, "the {} is empty", query.empty() ? "query" : "document");
  }
  const Stats s = session.stats();
  const std::size_t bytes = form.size() + query.size() + document.size();
  Block block(memory);
  PairText pair{block.take<char>(bytes)};
  const std::span<std::uint32_t> ids = block.take<std::uint32_t>(std::min<std::size_t>(s.max_seq_len, bytes + 8));
  const auto full = [&] {
    return make_error(ErrorCode::context_full,
                      "a pair of {} bytes does not fit in a context of {} tokens: {} would help", bytes, s.max_seq_len,
                      s.more_context);
  };
  if (pair.room.empty() || ids.empty()) return full();
  const auto tokenize = [&](std::uint32_t from) -> Result<std::uint32_t> {
    const Result<std::uint32_t> n = session.tokenize(pair.text(), true, ids.subspan(from), pair.ranges());
    return n || n.error().code != ErrorCode::context_full ? n : full();
  };
  pair.add(form.substr(0, query_at));
  pair.add_plain(query);
  pair.add(form.substr(query_at + kQuery.size(), document_at - query_at - kQuery.size()));
  QSF_LET(first, tokenize(0));
  // After a special token the document is a text of its own. Otherwise its first word may join the template's text.
  std::uint32_t before = first;
  if (first == 0 || !session.is_added(ids[first - 1])) {
    before = 0;
  } else {
    pair.size = pair.n_plain = 0;
  }
  pair.add_plain(document);
  pair.add(form.substr(document_at + kDocument.size()));
  QSF_LET(second, tokenize(before));
  EmbedPrompt prompt;
  prompt.tokens = ids.first(before + second);
  prompt.second_from = before != 0 ? before : second;
  return session.embed(prompt, sequence);
}

}  // namespace qsf::chat
