#include "qsf/chat/conversation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "chat/block.h"
#include "qsf/base/json.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

Error too_little(std::size_t bytes) {
  return make_error(ErrorCode::out_of_memory, "the conversation needs more than the {} bytes for texts: see text_bytes",
                    bytes);
}

/// Writes a JSON object as far as there is room.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::span<char> out) : out_(out) { put('{'); }

  void add(std::string_view name, std::string_view text) {
    if (size_ > 1) put(',');
    put_text(name);
    put(':');
    put_text(text);
  }
  /// Returns the object, or nothing if it does not fit.
  std::optional<std::string_view> end() {
    put('}');
    if (size_ > out_.size()) return {};
    return std::string_view(out_.data(), size_);
  }

 private:
  void put(char c) {
    if (size_ < out_.size()) out_[size_] = c;
    ++size_;
  }
  void put_text(std::string_view text) {
    json::write_text(text, [this](char c) { put(c); });
  }

  std::span<char> out_;
  std::size_t size_ = 0;
};

struct Parts {
  char* text;
  TextRange* plain;
  std::size_t bytes = 0, n = 0;
};

}  // namespace

Result<RenderedText> render(std::string_view chat_template, const templates::Variables& variables,
                            std::span<std::byte> memory) {
  QSF_LET(parsed, templates::Template::parse(chat_template, memory));
  // Rendered twice, first to count. The second rendering takes the same memory, so the output has the rest.
  Parts parts{};
  QSF_TRY(parsed.render(variables, {&parts, [](void* to, std::string_view piece, bool own) {
                                      static_cast<Parts*>(to)->bytes += piece.size();
                                      static_cast<Parts*>(to)->n += own ? 0 : 1;
                                    }}));
  Block rest(memory.subspan(parsed.used_bytes()));
  const std::span<TextRange> plain = rest.take<TextRange>(parts.n);
  const std::span<char> text = rest.take<char>(parts.bytes);
  if (plain.size() != parts.n || text.size() != parts.bytes) return too_little(memory.size());
  parts = {.text = text.data(), .plain = plain.data()};
  QSF_TRY(parsed.render(variables, {&parts, [](void* to, std::string_view piece, bool own) {
                                      Parts& at = *static_cast<Parts*>(to);
                                      const std::size_t begin = at.bytes;
                                      std::memcpy(at.text + begin, piece.data(), piece.size());
                                      at.bytes += piece.size();
                                      if (!own) at.plain[at.n++] = {begin, at.bytes};
                                    }}));
  return RenderedText{{text.data(), text.size()}, plain, rest.rest()};
}

Result<std::string_view> special_tokens(const Session& session, std::span<std::byte> memory) {
  ObjectWriter out({reinterpret_cast<char*>(memory.data()), memory.size()});
  for (const std::string_view name : kSpecialTokens) {
    const std::string_view token = session.special_token(name);
    if (!token.empty()) out.add(name, token);
  }
  const std::optional<std::string_view> written = out.end();
  if (!written) return too_little(memory.size());
  return *written;
}

std::string_view template_of(const Session& session, const Conversation& conversation) {
  return conversation.chat_template.empty() ? session.metadata(kMetaChatTemplate) : conversation.chat_template;
}

Result<RenderedText> render(const Session& session, const Conversation& conversation, std::span<std::byte> memory) {
  const std::string_view text = template_of(session, conversation);
  if (text.empty()) {
    return make_error(ErrorCode::unsupported,
                      "the file has no chat template: its source had none, or it was converted before they were kept");
  }
  QSF_LET(special, special_tokens(session, memory));
  return render(text, {conversation.values, special, conversation.now, conversation.more},
                memory.subspan(special.size()));
}

Result<Tokens> tokenize(Session& session, const Conversation& conversation, std::span<std::byte> memory) {
  QSF_LET(rendered, render(session, conversation, memory));
  const Stats s = session.stats();
  const auto full = [&](const char* why) {
    return make_error(ErrorCode::context_full, "the conversation does not fit in the context of {}: {}; {} would help",
                      s.max_seq_len, why, s.more_context);
  };
  const std::size_t most = std::min<std::size_t>(s.max_seq_len, rendered.text.size() + 8);
  const std::span<std::uint32_t> ids = Block(rendered.rest).take<std::uint32_t>(most);
  if (ids.empty()) return too_little(memory.size());
  const Result<std::uint32_t> n = session.tokenize(rendered.text, true, ids, rendered.plain, true);
  if (!n) return n.error().code == ErrorCode::context_full ? full(n.error().sentence) : n.error();
  const std::span<const std::uint32_t> out = ids.first(*n);
  if (out.empty()) return make_error(ErrorCode::bad_argument, "the conversation has no tokens");
  if (out.size() >= s.max_seq_len) {
    return full(
        make_error(ErrorCode::context_full, "it has {} tokens, and an answer needs room too", out.size()).sentence);
  }
  return Tokens{out, rendered};
}

}  // namespace qsf::chat
