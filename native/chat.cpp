#include "native/chat.h"

#include <algorithm>
#include <ctime>

#include "qsf/base/try.h"
#include "system/program.h"

namespace qsf {
namespace {

std::string today(std::string_view format) {
  if (format.empty()) return {};
  const std::tm day = sys::local_time(std::time(nullptr));
  char text[64];
  const std::size_t n = std::strftime(text, sizeof text, std::string(format).c_str(), &day);
  return {text, n};
}

std::string known_families() {
  std::string names;
  std::string_view last;
  for (const ChatFamily& family : chat_families()) {
    const std::string_view name = family.name.substr(0, family.name.find_first_of("-.0123456789"));
    if (name != last) names += (names.empty() ? "" : ", ") + std::string(name);
    last = name;
  }
  return names;
}

}  // namespace

struct Chat::Text {
  std::string text;
  std::vector<TextRange> plain;
};

Result<Chat> Chat::open(Session& session) {
  const std::string_view text = session.metadata(kMetaChatTemplate);
  if (text.empty()) {
    return make_error(ErrorCode::unsupported,
                      "the file has no chat template: its source had none, or it was converted before they were kept");
  }
  const ChatFamily* family = find_chat_family(text);
  if (family == nullptr) {
    return make_error(ErrorCode::unsupported, "the model's chat template is not recognised; known are those of {:.150}",
                      known_families());
  }
  Chat chat(*family, session);
  QSF_LET(end, chat.ids_of(session, chat.end_));
  if (end.size() == 1) chat.end_tokens_ = std::move(end);
  if (!family->final_mark.empty()) {
    QSF_LET(mark, chat.ids_of(session, family->final_mark));
    QSF_LET(begin, chat.ids_of(session, family->answer));
    chat.final_mark_ = std::move(mark);
    if (!begin.empty()) chat.start_ = begin.front();
  }
  return chat;
}

Chat::Chat(const ChatFamily& family, Session& session)
    : family_(&family),
      bos_(session.metadata("chat.bos_token")),
      eos_(session.metadata("chat.eos_token")),
      date_(today(family.date_format)) {
  put_chat_text(family.end, {bos_, eos_, date_},
                {&end_, [](void* to, std::string_view text, bool) { *static_cast<std::string*>(to) += text; }});
}

Result<std::vector<std::uint32_t>> Chat::ids_of(Session& session, std::string_view text) const {
  std::vector<std::uint32_t> ids(text.size() + 8);
  QSF_LET(n, session.tokenize(text, true, ids));
  ids.resize(n);
  return ids;
}

Result<Chat::Text> Chat::text_of(std::span<const ChatMessage> messages) const {
  Text out;
  QSF_TRY(render_chat(*family_, {bos_, eos_, date_}, messages, {&out, [](void* to, std::string_view piece, bool own) {
                                                                  auto& [text, plain] = *static_cast<Text*>(to);
                                                                  const std::size_t begin = text.size();
                                                                  text += piece;
                                                                  if (!own) plain.push_back({begin, text.size()});
                                                                }}));
  return out;
}

Result<std::string> Chat::render(std::span<const ChatMessage> messages) const {
  QSF_LET(rendered, text_of(messages));
  return std::move(rendered.text);
}

Result<std::vector<std::uint32_t>> Chat::tokenize(Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(rendered, text_of(messages));
  const std::uint32_t room = session.stats().max_seq_len;
  const auto full = [&] {
    return make_error(ErrorCode::context_full, "the conversation has more tokens than the context of {} has room for",
                      room);
  };
  std::vector<std::uint32_t> ids(room);
  const Result<std::uint32_t> n = session.tokenize(rendered.text, true, ids, rendered.plain);
  if (!n) return n.error().code == ErrorCode::context_full ? full() : n.error();
  ids.resize(*n);
  const std::optional<std::uint32_t> begin = session.begin_token();
  if (begin && (ids.empty() || ids.front() != *begin)) ids.insert(ids.begin(), *begin);
  if (ids.empty()) return make_error(ErrorCode::bad_argument, "the conversation has no tokens");
  if (ids.size() >= room) return full();
  return ids;
}

Speech speech_behind(std::span<const std::uint32_t> ids, std::uint32_t start,
                     std::span<const std::uint32_t> final_mark) {
  if (final_mark.empty()) return Speech::answer;
  Speech now = Speech::header;
  bool has_channel = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == start || ids[i] == final_mark.front()) {
      now = Speech::header;
      has_channel = ids[i] == final_mark.front();
    } else if (ids[i] == final_mark.back()) {
      const std::span<const std::uint32_t> before = ids.first(i + 1);
      const bool is_final =
          before.size() >= final_mark.size() && std::ranges::equal(before.last(final_mark.size()), final_mark);
      now = is_final || !has_channel ? Speech::answer : Speech::thought;
    }
  }
  return now;
}

Speech Chat::speech(std::span<const std::uint32_t> ids) const { return speech_behind(ids, start_, final_mark_); }

std::string_view Chat::remembered(Session& session, std::span<const std::uint32_t> ids, std::string_view text) const {
  if (!final_mark_.empty()) {
    const auto mark = std::find_end(ids.begin(), ids.end(), final_mark_.begin(), final_mark_.end());
    if (mark != ids.end()) {
      std::string said;
      for (const std::uint32_t id : ids.subspan(static_cast<std::size_t>(mark - ids.begin()) + final_mark_.size())) {
        said += session.detokenize(id);
      }
      if (text.ends_with(said)) text = text.substr(text.size() - said.size());
    }
  }
  // The space that the template writes in front of an answer is the one that a word begins with.
  if (family_->assistant.before.ends_with(' ') && text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

Result<std::span<const std::uint32_t>> feed_on(Session& session, std::span<const std::uint32_t> ids) {
  const std::span<const std::uint32_t> known = session.tokens();
  const auto [differs, here] = std::ranges::mismatch(known, ids);
  const auto common = std::min<std::size_t>(static_cast<std::size_t>(here - ids.begin()), ids.size() - 1);
  QSF_TRY(session.rewind(static_cast<std::uint32_t>(common)));
  return ids.subspan(common);
}

}  // namespace qsf
