#include "qsf/chat/answer_form.h"

#include <algorithm>

#include "chat/block.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

/// The token that ends an answer in templates with headers. There, the token that ends an answer in an earlier turn
/// ends a thought too.
constexpr std::string_view kHeaders = "<|channel|>final<|message|>", kHeaderEnd = "<|return|>";
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

/// Returns the token of a mark if it was added to the vocabulary; else Marks::kAsText.
Result<std::uint32_t> token_of(Session& session, std::string_view mark, std::span<std::byte> memory) {
  Block block(memory);
  const Result<std::span<const std::uint32_t>> ids = ids_of(session, mark, true, block);
  if (!ids && ids.error().code == ErrorCode::out_of_memory) return ids.error();
  const bool is_token = ids && ids->size() == 1 && session.is_added(ids->front());  // no ids: it cannot be spelled
  return is_token ? ids->front() : answers::Marks::kAsText;
}

}  // namespace

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
  QSF_TRY(form.read_marks(session, template_of(session, conversation), memory));
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

Status AnswerForm::read_marks(Session& session, std::string_view chat_template, std::span<std::byte> memory) {
  for (std::size_t i = 0; i < answers::kMarks; ++i) {
    const std::string_view text = answers::mark_text(i);
    if (text.empty()) continue;
    QSF_LET(token, token_of(session, text, memory));
    marks_.tokens[i] = token;
  }
  marks_.add_rows(chat_template);
  if (chat_template.find(kHeaders) == chat_template.npos) return {};
  QSF_LET(end, token_of(session, kHeaderEnd, memory));
  if (end == answers::Marks::kAsText) return {};
  end_.front() = end;
  n_ends_ = 1;
  return {};
}

}  // namespace qsf::chat
