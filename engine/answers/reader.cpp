#include "answers/reader.h"

#include <algorithm>
#include <utility>

#include "answers/calls.h"
#include "answers/source.h"
#include "answers/syntaxes.h"

namespace qsf::answers {
namespace {

constexpr std::size_t kHeaderRow = mark_of("<|channel|>") / 2;
constexpr std::size_t kLongestHeader = 512;  // bytes
/// The word after Gemma's opening mark of a thought.
constexpr std::size_t kWorded = mark_of("<|channel>");
constexpr std::string_view kWord = "thought";
/// A mark that is also the beginning of the call.
constexpr std::size_t kTag = mark_of("<function=");

/// Whether a mark begins with a byte.
constexpr std::array<bool, 256> kBeginsMark = [] {
  std::array<bool, 256> begins{};
  for (const Syntax& syntax : kSyntaxes) {
    for (const std::string_view mark : {syntax.open, syntax.close}) {
      if (!mark.empty()) begins[static_cast<unsigned char>(mark.front())] = true;
    }
  }
  return begins;
}();

bool opens(std::size_t mark) { return mark % 2 == 0; }
Use use_of(std::size_t mark) { return kSyntaxes[mark / 2].use; }

}  // namespace

void Reader::begin(const Marks& marks, const Tools& tools, std::span<char> memory) {
  *this = {};
  marks_ = marks;
  tools_ = &tools;
  body_ = memory.first(memory.size() / 2);
  out_ = Out(memory.subspan(body_.size()));
}

void Reader::prompt(std::string_view text, bool drops_space) {
  prompting_ = true;
  for (const char c : text) match(c);
  prompting_ = false;
  n_pending_ = 0;
  skipped_ = {};
  drops_space_ = drops_space;
  strays_ = mode_ == Mode::header;
  n_front_ = n_body_;
}

void Reader::text(std::string_view bytes, const PartSink& sink) {
  if (marks_.rows == 0 && !tools_->any()) {
    if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
    if (!bytes.empty()) sink.put(sink.context, {AnswerPart::text, bytes});
    return;
  }
  sink_ = &sink;
  for (const char c : bytes) match(c);
  flush();
}

void Reader::mark(std::size_t mark, const PartSink& sink) {
  sink_ = &sink;
  drain();
  if (takes(mark)) meet(mark);
  flush();
}

void Reader::end(const PartSink& sink) {
  sink_ = &sink;
  drain();
  if (mode_ == Mode::call && !take_calls(false)) give_up();
  if (mode_ == Mode::header && strays_) give_up();
  if (mode_ == Mode::text) put_blanks(AnswerPart::text);
  flush();
}

Place Reader::place() const {
  const bool in_call = mode_ == Mode::call;
  Place place;
  place.kind = mode_;
  place.row = row_ == kNoRow ? kMarks : row_;
  if (in_call || mode_ == Mode::header) place.body = in_call ? body() : std::string_view(body_.data(), n_body_);
  if (in_call) place.name = {body_.data(), n_front_};
  place.pending = {pending_.data(), n_pending_};
  place.bodies = n_bodies_;
  place.thought_has_begun = thought_has_begun_;
  return place;
}

bool Reader::is_close(std::size_t mark) const {
  return !opens(mark) && row_ != kNoRow && mark_text(mark) == kSyntaxes[row_].close;
}

bool Reader::takes(std::size_t mark) const {
  const Use use = use_of(mark);
  const bool sections = use == Use::section || (use == Use::header && opens(mark));
  switch (mode_) {
    case Mode::header:
      return use == Use::header;
    case Mode::thought:
      return row_ == kHeaderRow ? sections : is_close(mark);
    case Mode::call:
      return scan_.takes(mark) && (row_ == kHeaderRow ? sections : use == Use::inside || is_close(mark));
    case Mode::text:
    case Mode::between:
      break;
  }
  if (mode_ == Mode::between && is_close(mark)) return true;
  if (use == Use::call) return opens(mark) && tools_->any() && !prompting_;
  return use == Use::frame || sections || (use == Use::thought && opens(mark));
}

/// Whether a mark is found in the text here.
bool Reader::is_active(std::size_t mark) const {
  return marks_.has(mark / 2) && (prompting_ || marks_.tokens[mark] == Marks::kAsText) && takes(mark);
}

void Reader::match(char c) {
  if (n_pending_ == 0 && !kBeginsMark[static_cast<unsigned char>(c)]) {
    plain(c);  // which may return bytes
  } else {
    pending_[n_pending_++] = c;
  }
  while (n_pending_ > 0) {
    const std::string_view held(pending_.data(), n_pending_);
    bool may_be = false;
    for (std::size_t mark = 0; mark < kMarks; ++mark) {
      const std::string_view text = mark_text(mark);
      if (!text.starts_with(held) || !is_active(mark)) continue;
      if (text.size() == held.size()) {
        n_pending_ = 0;
        return meet(mark);
      }
      may_be = true;
    }
    if (may_be) return;
    plain(take_pending());
  }
}

/// Takes the first of the bytes that may begin a mark.
char Reader::take_pending() {
  const char first = pending_[0];
  --n_pending_;
  std::copy_n(pending_.begin() + 1, n_pending_, pending_.begin());
  return first;
}

/// Gives up the hope for a mark.
void Reader::drain() {
  while (n_pending_ > 0) plain(take_pending());
}

/// Returns a byte, so that it is read again in another mode.
void Reader::unread(char c) {
  std::copy_backward(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_),
                     pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_ + 1));
  pending_[0] = c;
  ++n_pending_;
}

void Reader::plain(char c) {
  switch (mode_) {
    case Mode::text:
      if (!prompting_) plain_text(c);
      return;
    case Mode::thought:
      if (!prompting_) plain_thought(c);
      return;
    case Mode::call:
      return plain_body(c);
    case Mode::between:
      return plain_between(c);
    case Mode::header:
      if (add(c) && n_body_ < kLongestHeader) return;
      return give_up();
  }
}

void Reader::plain_text(char c) {
  if (std::exchange(drops_space_, false) && c == ' ') return;
  if (is_blank(c)) {
    if (!leads_) hold_blank(AnswerPart::text, c);
    return;
  }
  if (fresh_ && tools_->any() && (c == '{' || c == '[' || c == '`')) {
    fenced_ = false;
    begin_body(kNoRow);
    return plain_body(c);
  }
  put_text(c);
}

void Reader::plain_thought(char c) {
  if (!skipped_.empty()) {
    const std::string_view word = std::exchange(skipped_, {});
    if (c == word.front()) {
      skipped_ = word.substr(1);
      return;
    }
    for (const char other : kWord.substr(0, kWord.size() - word.size())) plain_thought(other);
  }
  if (is_blank(c)) {
    if (!leads_) hold_blank(AnswerPart::thought, c);
    return;
  }
  leads_ = false;
  has_thought_ = true;
  put_blanks(AnswerPart::thought);
  put(AnswerPart::thought, c);
}

void Reader::plain_body(char c) {
  if (!add(c)) {
    give_up();
    return unread(c);
  }
  switch (scan_.byte(body(), *tools_)) {
    case BodyScan::Verdict::more:
      return;
    case BodyScan::Verdict::whole:
      if (take_calls(false)) {
        mode_ = Mode::between;
      } else {
        give_up();
      }
      return;
    case BodyScan::Verdict::wrong:
      break;
  }
  const std::size_t from = scan_.wrong_from(body());
  std::array<char, 16> again{};  // a text that may begin a mark
  const std::size_t n = body().substr(from).copy(again.data(), again.size());
  n_body_ = n_front_ + from;
  give_up();
  for (std::size_t i = n; i > 0; --i) unread(again[i - 1]);
}

void Reader::plain_between(char c) {
  if (is_blank(c) || c == ',' || c == ';' || (c == '`' && fenced_)) return;
  const bool more = c == '{' || c == '[' || (is_letter(c) && row_ != kNoRow && !kSyntaxes[row_].close.empty());
  if (more && row_ != kHeaderRow) {
    begin_body(row_);
    return plain_body(c);
  }
  mode_ = Mode::text;
  plain_text(c);
}

void Reader::meet(std::size_t mark) {
  switch (mode_) {
    case Mode::header:
      if (mark == mark_of("<|message|>")) return end_header();
      if (mark == mark_of("<|start|>")) {
        if (strays_ && !trimmed(body()).empty()) give_up();
        return begin_header(mark);
      }
      strays_ = false;
      (void)add_mark(mark);
      return;
    case Mode::call:
      if (use_of(mark) == Use::inside) {
        const bool added = add_mark(mark);
        if (added && scan_.mark(body(), mark) != BodyScan::Verdict::wrong) return;
        give_up();
        if (!added) put_text(mark_text(mark));
        return;
      }
      if (!take_calls(is_close(mark))) {
        give_up();
        if (is_close(mark)) put_text(mark_text(mark));
      }
      mode_ = Mode::text;
      break;
    case Mode::thought:
      n_blanks_ = 0;
      mode_ = Mode::text;
      leads_ = fresh_ = true;
      break;
    case Mode::text:
    case Mode::between:
      mode_ = Mode::text;
      break;
  }
  if (!is_close(mark)) meet_in_text(mark);
}

void Reader::meet_in_text(std::size_t mark) {
  switch (use_of(mark)) {
    case Use::thought:
      n_blanks_ = 0;
      begin_thought(mark / 2);
      skipped_ = mark == kWorded ? kWord : std::string_view();
      return;
    case Use::frame:
      n_blanks_ = 0;
      leads_ = true;
      return;
    case Use::call:
      fenced_ = false;
      begin_body(mark / 2);
      if (mark != kTag) return;
      for (const char c : mark_text(kTag)) plain_body(c);
      return;
    case Use::header:
      return begin_header(mark);
    case Use::section:
      n_blanks_ = 0;
      mode_ = Mode::header;
      strays_ = true;
      n_body_ = n_front_ = 0;
      return;
    case Use::inside:
      return;
  }
}

void Reader::begin_thought(std::size_t row) {
  mode_ = Mode::thought;
  thought_has_begun_ = true;
  row_ = row;
  leads_ = true;
  separate(has_thought_);
}

void Reader::begin_body(std::size_t row) {
  mode_ = Mode::call;
  ++n_bodies_;
  row_ = row;
  n_body_ = n_front_ = 0;
  scan_.begin(row == kNoRow);
}

void Reader::begin_header(std::size_t mark) {
  n_blanks_ = 0;
  mode_ = Mode::header;
  strays_ = false;
  n_body_ = n_front_ = 0;
  (void)add_mark(mark);
}

/// Reads a header such as <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json.
void Reader::end_header() {
  constexpr std::string_view kTo = "to=", kThought = "analysis";
  const std::string_view header(body_.data(), n_body_);
  const auto word = [&](std::size_t at) {
    const std::string_view rest = header.substr(std::min(at, header.size()));
    const auto* const end = std::ranges::find_if(rest, [](char c) { return is_blank(c) || c == kMarkByte; });
    return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  };
  Source source(header);
  const std::size_t channel = source.find_mark(mark_of("<|channel|>"));
  const std::string_view name = channel == header.npos ? std::string_view() : word(channel + 2);
  const std::size_t to = header.find(kTo);
  const std::string_view tool = to == header.npos ? std::string_view() : word(to + kTo.size());
  if (!tool.empty() && tools_->any() && !prompting_) {
    const std::size_t n = tool.size();
    std::copy(tool.begin(), tool.end(), body_.begin());  // forwards, and the name is not before the first byte
    begin_body(kHeaderRow);
    n_body_ = n_front_ = n;
    return;
  }
  if (name == kThought) return begin_thought(kHeaderRow);
  mode_ = Mode::text;
  leads_ = fresh_ = true;
  separate(has_text_);
}

/// Puts an empty line between parts of one kind that follow each other.
void Reader::separate(bool from_earlier) {
  constexpr std::string_view kLine = "\n\n";
  n_blanks_ = from_earlier ? kLine.copy(blanks_.data(), kLine.size()) : 0;
}

bool Reader::add(char c) {
  if (n_body_ == body_.size()) return false;
  body_[n_body_++] = c;
  return true;
}

bool Reader::add_mark(std::size_t mark) {
  if (body_.size() - n_body_ < 2) return false;
  return add(kMarkByte) && add(number_byte(mark));
}

/// Gives the calls of the body. Returns false if it is no call.
bool Reader::take_calls(bool closed) {
  const std::string_view name(body_.data(), n_front_);
  std::string_view text = trimmed(body());
  if (text.empty() && !name.empty()) text = "{}";
  flush();
  fenced_ = fenced_ || text.find("```") != text.npos;
  if (!text.empty() || !closed) {
    out_.shrink(0);
    if (!read_calls(text, {row_ == kNoRow, closed, name}, *tools_, out_, *sink_)) return false;
  }
  n_blanks_ = 0;
  leads_ = fresh_ = true;
  return true;
}

/// Gives the body or the header as text.
void Reader::give_up() {
  const bool is_call = mode_ == Mode::call;
  mode_ = Mode::text;
  if (is_call && row_ != kNoRow && row_ != kHeaderRow && row_ != kTag / 2) {
    put_text(kSyntaxes[row_].open);
  }
  if (prompting_) return;
  leads_ = false;
  spell(is_call ? body() : trimmed(body()), [this](char c) {
    if (is_blank(c)) return hold_blank(AnswerPart::text, c);
    put_text(c);
  });
}

void Reader::put_text(char c) {
  leads_ = fresh_ = false;
  has_text_ = true;
  put_blanks(AnswerPart::text);
  put(AnswerPart::text, c);
}

void Reader::put_text(std::string_view text) {
  for (const char c : text) put_text(c);
}

void Reader::hold_blank(AnswerPart kind, char c) {
  if (n_blanks_ == blanks_.size()) put_blanks(kind);
  blanks_[n_blanks_++] = c;
}

void Reader::put_blanks(AnswerPart kind) {
  for (std::size_t i = 0; i < n_blanks_; ++i) put(kind, blanks_[i]);
  n_blanks_ = 0;
}

void Reader::put(AnswerPart kind, char c) {
  if (n_run_ != 0 && run_kind_ != kind) flush();
  if (n_run_ == run_.size()) {  // the beginning of a character stays
    std::size_t end = n_run_;
    while (end > 1 && (static_cast<unsigned char>(run_[end - 1]) & 0xC0) == 0x80) --end;
    if (static_cast<unsigned char>(run_[end - 1]) >= 0xC0) --end;
    std::array<char, 4> rest{};
    const std::size_t n = std::min(n_run_ - end, rest.size());
    std::copy_n(run_.end() - static_cast<std::ptrdiff_t>(n), n, rest.begin());
    n_run_ -= n;
    flush();
    std::copy_n(rest.begin(), n, run_.begin());
    n_run_ = n;
  }
  run_kind_ = kind;
  run_[n_run_++] = c;
}

void Reader::flush() {
  if (n_run_ != 0) sink_->put(sink_->context, {run_kind_, {run_.data(), n_run_}});
  n_run_ = 0;
}

}  // namespace qsf::answers
