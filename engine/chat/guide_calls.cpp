// The stages of an answer that a guide holds: its thoughts, its text and its calls.
#include <algorithm>
#include <array>
#include <new>

#include "answers/source.h"
#include "answers/syntaxes.h"
#include "chat/block.h"
#include "chat/call_schema.h"
#include "qsf/base/try.h"
#include "qsf/chat/guide.h"

namespace qsf::chat {
namespace {

using answers::mark_of;
using answers::Place;
using answers::PlaceKind;
using grammar::Grammar;

constexpr std::size_t kHeaderRow = mark_of("<|channel|>") / 2;
/// Texts of templates with headers. Their models think before they call or answer.
constexpr std::string_view kThinks = "<|channel|>analysis<|message|>", kAnswers = "<|channel|>final<|message|>",
                           kAgain = "<|start|>assistant", kTo = "to=";

constexpr bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == text.npos; }

/// Returns the size of the longest end of a text with which `whole` begins, less than all of it.
std::size_t begun(std::string_view text, std::string_view whole) {
  std::size_t n = std::min(text.size(), whole.size() - 1);
  while (n > 0 && !whole.starts_with(text.substr(text.size() - n))) --n;
  return n;
}

/// Returns a tool's name without the prefix that gpt-oss writes.
std::string_view bare_name(std::string_view name) {
  constexpr std::string_view kPrefix = "functions.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

}  // namespace

struct Guide::Calls {
  CallForm form;
  std::span<const ToolText> tools;
  std::string_view schema;  // of a call, if the form is JSON
  bool required = false;
  std::span<std::byte> rest;  // for grammars
};

bool Guide::required() const { return calls_ != nullptr && calls_->required; }

Status Guide::set_calls(const Conversation& conversation, const CallRules& rules, std::span<std::byte> scratch) {
  return with_remedy(try_calls(conversation, rules, scratch));
}

Status Guide::try_calls(const Conversation& conversation, const CallRules& rules, std::span<std::byte> scratch) {
  held_ = Held::nothing;
  Block block(memory_);
  const std::span<std::byte> place = block.take<std::byte>(sizeof(Calls) + alignof(Calls));
  if (place.empty()) return make_error(ErrorCode::out_of_memory, "calls need more bytes for texts: see text_bytes");
  std::byte* const at = place.data() + (0 - reinterpret_cast<std::uintptr_t>(place.data())) % alignof(Calls);
  QSF_LET(form, CallForm::read(*session_, conversation, scratch));
  if (form.kind == CallKind::none) {
    return make_error(
        ErrorCode::unsupported,
        "the chat template writes no calls of tools, or tools after the messages, so that no call can be held");
  }
  QSF_LET(texts, tool_texts(conversation, form, rules.only, block.rest(), scratch));
  for (const ToolText& tool : texts.tools) {
    if (form.kind != CallKind::json && tool.name.size() > name_.size()) {
      return make_error(ErrorCode::bad_argument, "the tool {:.60} has a name of {} bytes; {} are possible", tool.name,
                        tool.name.size(), name_.size());
    }
  }
  calls_ = new (at) Calls{form, texts.tools, texts.calls, rules.required, texts.rest};
  // Mistakes in a schema are reported now.
  if (form.kind == CallKind::json) QSF_TRY(begin_call());
  for (std::size_t i = 0; form.kind == CallKind::named && i < texts.tools.size(); ++i) {
    QSF_TRY(begin_arguments(texts.tools[i].name));
  }
  held_ = Held::calls;
  return {};
}

Result<std::uint32_t> Guide::ids_of(std::string_view text, bool special, std::span<std::uint32_t> ids) {
  QSF_LET(n, session_->tokenize(text, special, ids));
  // Some tokenizers write a space before each text.
  const std::string_view first = n > 0 ? session_->detokenize(ids[0]) : std::string_view();
  if (text.starts_with(' ') || !first.starts_with(' ')) return n;
  if (first == " ") {
    std::shift_left(ids.begin(), ids.begin() + n, 1);
    return n - 1;
  }
  const std::uint32_t size = session_->stats().vocab_size;
  for (std::uint32_t id = 0; id < size; ++id) {
    if (session_->detokenize(id) != first.substr(1) || session_->is_end(id)) continue;
    ids[0] = id;
    break;
  }
  return n;
}

/// Allows only the tokens of a text, then those of a stage.
Status Guide::force(std::string_view text, Stage next) {
  QSF_LET(n, ids_of(text, true, forced_));
  n_forced_ = n;
  at_forced_ = 0;
  next_ = next;
  stage_ = Stage::forced;
  if (n != 0) return {};
  stage_ = next;
  return go_on();
}

/// Begins a stage that is entered now.
Status Guide::go_on() {
  switch (stage_) {
    case Stage::name:
      return begin_name(calls_->form.between.view(), false);
    case Stage::arguments:
      bodies_ = place().bodies;
      if (calls_->form.kind == CallKind::json) return begin_call();
      return begin_arguments({name_.data(), n_name_});
    case Stage::any:
    case Stage::text:
    case Stage::forced:
      break;
  }
  bodies_ = place().bodies;
  if (held_ == Held::calls && calls_->form.kind == CallKind::other && n_name_ != 0) called_ = true;
  return {};
}

Status Guide::begin_call() {
  QSF_LET(made, Grammar::json_schema(calls_->schema, calls_->rest, grammar::Integers::without_point));
  grammar_ = made;
  is_json_ = after_blank_ = true;
  stage_ = Stage::arguments;
  return {};
}

Status Guide::begin_arguments(std::string_view tool) {
  const auto found = std::ranges::find(calls_->tools, tool, &ToolText::name);
  if (found == calls_->tools.end()) return make_error(ErrorCode::internal, "there is no tool {:.60}", tool);
  QSF_LET(made, Grammar::json_schema(found->parameters, calls_->rest, grammar::Integers::without_point));
  grammar_ = made;
  is_json_ = after_blank_ = true;
  stage_ = Stage::arguments;
  return {};
}

/// Begins a tool's name, after which a text follows, or the rest of a header.
Status Guide::begin_name(std::string_view after_name, bool in_header) {
  Block block(calls_->rest);
  const std::size_t n = calls_->tools.size();
  const std::span<std::string_view> names = block.take<std::string_view>(2 * n);
  std::size_t bytes = 0;
  for (const ToolText& tool : calls_->tools) bytes += tool.name.size() + 10;
  const std::span<char> prefixed = block.take<char>(bytes);
  if (names.size() != 2 * n || prefixed.size() != bytes) {
    return make_error(ErrorCode::out_of_memory, "the names of tools need more bytes for texts: see text_bytes");
  }
  std::size_t n_names = 0;
  char* to = prefixed.data();
  for (const ToolText& tool : calls_->tools) {
    names[n_names++] = tool.name;
    if (!in_header) continue;
    char* const begin = to;
    to = std::ranges::copy(tool.name, std::ranges::copy(std::string_view("functions."), to).out).out;
    names[n_names++] = {begin, to};
  }
  block.take<std::uint64_t>(0);
  QSF_LET(made, Grammar::choices(names.first(n_names), block.rest()));
  grammar_ = made;
  is_json_ = false;
  stage_ = Stage::name;
  n_name_ = n_exits_ = n_forced_ = 0;
  if (in_header) {
    next_ = Stage::any;
    std::array<std::uint32_t, 8> space{};
    QSF_LET(n_space, session_->tokenize(" ", false, space));
    if (n_space == 1) exits_[n_exits_++] = space[0];
    for (const std::size_t mark : {mark_of("<|channel|>"), mark_of("<|constrain|>"), mark_of("<|message|>")}) {
      const std::uint32_t id = parts_->marks().tokens[mark];
      if (id != answers::Marks::kAsText) exits_[n_exits_++] = id;
    }
    return {};
  }
  QSF_LET(ids, ids_of(after_name, true, forced_));
  next_ = calls_->form.kind == CallKind::named ? Stage::arguments : Stage::any;
  n_forced_ = ids;
  if (ids != 0) exits_[n_exits_++] = forced_[0];
  return {};
}

/// Finds the stage after a change of the place, if no stage of its own goes on.
Status Guide::settle() {
  if (parts_ == nullptr) {
    if (held_ == Held::text && stage_ == Stage::any) return settle_text(Place());
    return {};
  }
  if (stage_ != Stage::any) return {};
  const Place at = place();
  if (at.kind == PlaceKind::thought) return settle_thought(at);
  n_thought_ = 0;
  if (held_ == Held::text) return settle_text(at);
  if (held_ == Held::calls) return settle_calls(at);
  return {};
}

Status Guide::settle_thought(const Place& at) {
  if (n_thought_++ < most_thought_) return {};
  const std::string_view close = at.row == kHeaderRow ? "<|end|>" : answers::kSyntaxes[at.row].close;
  return force(close, Stage::any);
}

Status Guide::settle_text(const Place& at) {
  if (at.kind == PlaceKind::header) {
    if (!at.thought_has_begun) return force(most_thought_ != 0 ? kThinks : kAnswers, Stage::any);
    // After a thought the model names itself again.
    return force(
        at.body.find(kAgain.substr(9)) == at.body.npos ? "<|start|>assistant<|channel|>final<|message|>" : kAnswers,
        Stage::any);
  }
  stage_ = Stage::text;
  grammar_.reset();
  is_json_ = text_is_json_;
  after_blank_ = true;
  leads_ = at.thought_has_begun;
  offer_thought(at);
  return {};
}

/// Allows a thought in place of the next tokens, if its mark is a token and the answer had none.
void Guide::offer_thought(const Place& at) {
  if (parts_ == nullptr || at.thought_has_begun || most_thought_ == 0) return;
  const answers::Marks& marks = parts_->marks();
  for (std::size_t row = 0; row < answers::kSyntaxes.size() && !opening_; ++row) {
    const std::uint32_t token = marks.tokens[2 * row];
    const bool opens = answers::kSyntaxes[row].use == answers::Use::thought && marks.has(row);
    if (opens && token != answers::Marks::kAsText) opening_ = token;
  }
}

Status Guide::settle_calls(const Place& at) {
  const CallForm& form = calls_->form;
  if (at.kind == PlaceKind::call) {
    if (at.row == answers::kMarks) return begin_bare_body(at);
    if (at.bodies == bodies_) return {};
    return begin_body(at);
  }
  bare_ = false;
  if (at.kind == PlaceKind::between && at.row != answers::kMarks && at.row != kHeaderRow) {
    const std::string_view close = answers::kSyntaxes[at.row].close, tail = form.tail.view();
    if (!close.empty()) return force(tail.ends_with(close) ? tail : close, Stage::any);
  }
  if (at.kind == PlaceKind::header) {
    const bool waits = calls_->required && !called_;
    if (waits && !at.thought_has_begun && most_thought_ != 0) return force(kThinks, Stage::any);
    const std::size_t to = at.body.rfind(kTo);
    if (to != at.body.npos && to + kTo.size() == at.body.size()) return begin_name({}, true);
    if (waits && to == at.body.npos) {
      ShortText text;
      if (at.thought_has_begun) (void)text.set(kAgain);
      (void)text.add(form.lead.view());
      return force(text.view(), Stage::name);
    }
    return {};
  }
  if (!calls_->required || called_ || at.kind != PlaceKind::text) return {};
  offer_thought(at);
  return force(form.lead.view(), form.kind == CallKind::json ? Stage::arguments : Stage::name);
}

/// Begins to hold a call whose opening mark was read.
Status Guide::begin_body(const Place& at) {
  bodies_ = at.bodies;
  const CallForm& form = calls_->form;
  if (at.row == kHeaderRow) return begin_arguments(bare_name(at.name));
  if (form.kind == CallKind::json) {
    QSF_TRY(begin_call());
    (void)grammar_.accept(at.body);
    return {};
  }
  // The template writes a text between this mark and the name.
  const std::string_view lead = form.lead.view(), open = answers::kSyntaxes[at.row].open;
  const std::size_t found = lead.rfind(open);
  std::string_view rest = found == lead.npos ? std::string_view() : lead.substr(found + open.size());
  std::string_view read = at.body;
  if (answers::mark_text(mark_of("<function=")) == open && read.starts_with(open)) read.remove_prefix(open.size());
  if (rest.starts_with(read)) rest.remove_prefix(read.size());
  return force(rest, Stage::name);
}

/// Follows a value that is a call if it has a tool's name, and holds it from that name on.
Status Guide::begin_bare_body(const Place& at) {
  const CallForm& form = calls_->form;
  bare_ = false;
  if (form.kind != CallKind::json || parts_->lags()) return {};
  const std::string_view body = at.body.substr(std::min(at.body.find_first_of("{["), at.body.size()));
  if (at.bodies == bodies_) {
    grammar_.reset();
  } else {
    QSF_TRY(begin_call());
  }
  bodies_ = at.bodies;
  stage_ = Stage::any;
  QSF_LET(follows, grammar_.accept(body));
  bare_ = follows;
  if (!follows) return {};
  const std::size_t key = body.find(form.name_key.view());
  const bool named =
      key != body.npos && std::ranges::any_of(calls_->tools, [&](const ToolText& tool) {
        for (std::size_t i = body.find(tool.name, key); i != body.npos; i = body.find(tool.name, i + 1)) {
          const std::size_t end = i + tool.name.size();
          if (body[i - 1] == '"' && end < body.size() && body[end] == '"') return true;
        }
        return false;
      });
  if (!named) return {};
  bare_ = false;
  stage_ = Stage::arguments;
  after_blank_ = false;
  return {};
}

/// Forbids tokens that end a mark, of which `text` may have the beginning, and go on with more than white space.
void Guide::forbid_beyond(std::string_view text, std::string_view mark) {
  const std::size_t n = mark.empty() ? 0 : begun(text, mark);
  if (n == 0) return;
  const std::string_view rest = mark.substr(n);
  const std::uint32_t size = session_->stats().vocab_size;
  for (std::uint32_t id = 0; id < size; ++id) {
    const std::string_view bytes = session_->detokenize(id);
    if (bytes.starts_with(rest) && !is_blank(bytes.substr(rest.size()))) forbid(id);
  }
}

/// Forbids tokens after a call that begin another one in another way than the grammar of calls.
void Guide::forbid_other_calls() {
  const std::uint32_t size = session_->stats().vocab_size;
  for (std::uint32_t id = 0; id < size; ++id) {
    const std::string_view bytes = session_->detokenize(id);
    const std::size_t begin = std::min(bytes.find_first_not_of(" \t\r\n,;`"), bytes.size());
    if (begin == bytes.size() || (bytes[begin] != '{' && bytes[begin] != '[')) continue;
    grammar_.reset();
    const Result<bool> follows = grammar_.accept(bytes.substr(begin));
    if (calls_->form.kind != CallKind::json || !follows || !*follows) forbid(id);
  }
}

/// Forbids tokens that begin a stage in their middle.
void Guide::guard(const Place& at) {
  if (parts_ == nullptr || held_ == Held::nothing) return;
  const answers::Marks& marks = parts_->marks();
  for (std::size_t row = 0; !at.pending.empty() && row < answers::kSyntaxes.size(); ++row) {
    const answers::Syntax& syntax = answers::kSyntaxes[row];
    const bool ends_thought = at.kind == PlaceKind::thought && row == at.row;
    if (!marks.has(row) || !(ends_thought || (syntax.use == answers::Use::call && held_ == Held::calls))) continue;
    forbid_beyond(at.pending, ends_thought ? syntax.close : syntax.open);
  }
  if (held_ != Held::calls) return;
  if (at.kind == PlaceKind::header) forbid_beyond(at.body, kTo);
  if (at.kind == PlaceKind::between) forbid_other_calls();
  if (!bare_) return;
  // A token may end a tool's name only as the grammar allows.
  const std::uint32_t size = session_->stats().vocab_size;
  for (const ToolText& tool : calls_->tools) {
    ShortText quoted;
    if (!quoted.set("\"") || !quoted.add(tool.name) || !quoted.add("\"")) continue;
    const std::size_t n = begun(at.body, quoted.view());
    if (n == 0) continue;
    const std::string_view rest = quoted.view().substr(n);
    for (std::uint32_t id = 0; id < size; ++id) {
      const std::string_view bytes = session_->detokenize(id);
      if (!bytes.starts_with(rest) || bytes.size() == rest.size()) continue;
      const Result<bool> follows = grammar_.accept(bytes);
      if (!follows || !*follows) forbid(id);
      if (follows && *follows) {  // go back
        grammar_.reset();
        (void)grammar_.accept(at.body.substr(std::min(at.body.find_first_of("{["), at.body.size())));
      }
    }
  }
}

}  // namespace qsf::chat
