#include "qsf/chat/answer_form.h"

#include <algorithm>

#include "chat/block.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

/// Marks of templates with headers, which state who speaks and where: gpt-oss's. There, what ends an answer in an
/// earlier turn ends a thought too.
constexpr std::string_view kHeaderStart = "<|start|>", kFinalMark = "<|channel|>final<|message|>",
                           kHeaderEnd = "<|return|>";
/// An answer that is found again in a rendered conversation.
constexpr std::string_view kProbe = "QSFPROBE";
constexpr std::string_view kProbed =
    R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"QSFPROBE"}],)"
    R"("add_generation_prompt":false})";

Result<std::span<const std::uint32_t>> ids_of(Session& session, std::string_view text, bool special, Block& memory) {
  const std::span<std::uint32_t> ids = memory.take<std::uint32_t>(text.size() + 8);
  if (ids.empty()) return make_error(ErrorCode::out_of_memory, "there is no memory for {} tokens", text.size() + 8);
  QSF_LET(n, session.tokenize(text, special, ids));
  return std::span<const std::uint32_t>(ids.first(n));
}

}  // namespace

Speech speech_after(std::span<const std::uint32_t> ids, std::uint32_t start,
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

Result<AnswerForm> AnswerForm::read(Session& session, const Conversation& conversation, std::span<std::byte> memory) {
  Block whole(memory);
  QSF_TRY(ids_of(session, "x", true, whole));  // whether there is a tokenizer
  AnswerForm form;
  Conversation probe = conversation;
  probe.values = kProbed;
  const Result<RenderedText> probed = render(session, probe, memory);
  if (probed) {
    QSF_TRY(form.read_end(session, probed->text, probed->rest));
  } else if (probed.error().code != ErrorCode::template_refusal && probed.error().code != ErrorCode::bad_template) {
    return probed.error();
  }
  const std::string_view text = template_of(session, conversation);
  if (text.find(kFinalMark) != text.npos) QSF_TRY(form.read_headers(session, memory));
  return form;
}

/// Reads the texts of the template before and after the probe's answer.
Status AnswerForm::read_end(Session& session, std::string_view text, std::span<std::byte> memory) {
  const std::size_t at = text.rfind(kProbe);
  if (at == text.npos) return {};
  space_ = at > 0 && text[at - 1] == ' ';
  std::string_view end = text.substr(at + kProbe.size());
  const std::size_t first = end.find_first_not_of(" \n");
  if (first == end.npos) return {};
  end = end.substr(first, end.find_last_not_of(" \n") + 1 - first);
  Block rest(memory);
  QSF_LET(ids, ids_of(session, end, true, rest));
  QSF_LET(plain, ids_of(session, end, false, rest));
  if (ids.size() == 1 || (!ids.empty() && (plain.empty() || ids.front() != plain.front()))) {
    end_[n_ends_++] = ids.front();
    return {};
  }
  // The first bytes of a longer text stop there too.
  std::size_t size = std::min(end.size(), kMaxStop);
  while (size < end.size() && (static_cast<unsigned char>(end[size]) & 0xC0) == 0x80) --size;
  stop_size_ = end.copy(stop_.data(), size);
  return {};
}

Status AnswerForm::read_headers(Session& session, std::span<std::byte> memory) {
  Block rest(memory);
  QSF_LET(mark, ids_of(session, kFinalMark, true, rest));
  QSF_LET(begin, ids_of(session, kHeaderStart, true, rest));
  QSF_LET(end, ids_of(session, kHeaderEnd, true, rest));
  if (end.size() == 1) {
    end_.front() = end.front();
    n_ends_ = 1;
  }
  n_mark_ = std::min(mark.size(), kMaxMark);
  std::ranges::copy(mark.last(n_mark_), final_mark_.begin());
  if (!begin.empty()) start_ = begin.front();
  return {};
}

std::string_view AnswerForm::remembered(const Session& session, std::span<const std::uint32_t> ids,
                                        std::string_view text) const {
  const auto mark = std::ranges::find_end(ids, final_mark());
  if (n_mark_ != 0 && !mark.empty()) {
    const auto said = ids.subspan(static_cast<std::size_t>(mark.end() - ids.begin()));
    std::size_t bytes = 0;
    for (const std::uint32_t id : said) bytes += session.detokenize(id).size();
    std::string_view tail = text.substr(text.size() - std::min(bytes, text.size()));
    const std::string_view whole = tail;
    bool same = tail.size() == bytes;
    for (const std::uint32_t id : said) {
      const std::string_view piece = session.detokenize(id);
      same = same && tail.starts_with(piece);
      tail.remove_prefix(std::min(piece.size(), tail.size()));
    }
    if (same) text = whole;
  }
  // The template writes the space in front of an answer, so the one with which the first word begins is removed.
  if (space_ && text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

}  // namespace qsf::chat
