#include "qsf/chat/answer_parts.h"

#include <algorithm>
#include <new>

#include "answers/reader.h"
#include "qsf/base/align.h"
#include "qsf/base/store.h"
#include "qsf/base/try.h"
#include "text/text_stream.h"

namespace qsf::chat {
namespace {

constexpr std::size_t kMostForParts = 1 << 20;  // bytes

Error too_little(std::size_t bytes) {
  return make_error(ErrorCode::out_of_memory, "the parts of an answer need more than {} bytes: see text_bytes", bytes);
}

}  // namespace

struct AnswerParts::State {
  const Session* session;
  answers::Marks marks;
  bool drops_space;
  answers::Tools tools;
  std::span<char> memory;  // for calls
  answers::Reader reader;
  TextStream stream;
  std::size_t pushed = 0, shown = 0;  // bytes of the stream since the last mark
};

TextMemory AnswerParts::divide(std::span<std::byte> texts, std::size_t answers) {
  const std::size_t parts = std::min(texts.size() / 4, answers * kMostForParts) / kAlignment * kAlignment;
  return {texts.subspan(parts), texts.first(parts)};
}

Result<AnswerParts> AnswerParts::open(const Session& session, const AnswerForm& form, const Conversation& conversation,
                                      std::span<std::byte> scratch, std::span<std::byte> memory) {
  Store store(memory), of_json(scratch);
  std::byte* const at = store.take(sizeof(State));
  if (at == nullptr) return too_little(memory.size());
  State* const state = new (at) State{&session, form.marks(), form.drops_space(), {}, {}, {}, {}};
  QSF_LET(tools, answers::Tools::read(conversation.values, conversation.more, store, of_json));
  state->tools = tools;
  const std::span<std::byte> rest = memory.subspan(store.used());
  if (rest.size() < answers::Reader::kLeastMemory) return too_little(memory.size());
  state->memory = {reinterpret_cast<char*>(rest.data()), rest.size()};
  return AnswerParts(state);
}

Status AnswerParts::begin(const RenderedText& rendered, std::span<const std::string_view> stops) {
  State& s = *state_;
  s.pushed = s.shown = 0;
  s.reader.begin(s.marks, s.tools, s.memory);
  const std::size_t end = rendered.plain.empty() ? 0 : rendered.plain.back().end;
  s.reader.prompt(rendered.text.substr(end), s.drops_space);
  return s.stream.begin(stops);
}

void AnswerParts::token(std::uint32_t id, const PartSink& sink) {
  State& s = *state_;
  const std::size_t mark = s.marks.find(id);
  if (mark == answers::kMarks || !s.reader.takes(mark)) {
    const std::string_view bytes = s.session->detokenize(id), text = s.stream.push(bytes);
    s.pushed += bytes.size();
    s.shown += text.size();
    return s.reader.text(text, sink);
  }
  // No character and no stop string continues after a mark.
  s.pushed = s.shown = 0;
  s.reader.text(s.stream.finish(), sink);
  if (!s.stream.stopped()) s.reader.mark(mark, sink);
}

void AnswerParts::end(const PartSink& sink) {
  state_->reader.text(state_->stream.finish(), sink);
  state_->reader.end(sink);
}

answers::Place AnswerParts::place() const { return state_->reader.place(); }

bool AnswerParts::lags() const { return state_->pushed != state_->shown; }

const answers::Marks& AnswerParts::marks() const { return state_->marks; }

}  // namespace qsf::chat
