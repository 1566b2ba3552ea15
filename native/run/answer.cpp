#include "native/run/answer.h"

#include <cstdio>
#include <utility>

#include "native/cli/terminal.h"
#include "native/host/chat_template.h"
#include "native/run/output.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

/// Returns the id of a call: nine letters and digits, because some templates refuse others.
std::string id_of(std::size_t number) {
  char id[16];
  std::snprintf(id, sizeof(id), "call%05zu", number % 100'000);
  return id;
}

/// Returns {"name": ..., "arguments": ...}.
std::string json_of(const ToolCall& call) {
  std::string out = "{\"name\":";
  append_json(out, call.name);
  return out += ",\"arguments\":" + call.arguments + "}";
}

}  // namespace

Status Answer::add(const chat::Part& part) {
  if (part.kind == AnswerPart::thought) {
    thought_ += part.text;
    if (o_.shows_thoughts) think(part.text);
    thinks_ = true;
    return {};
  }
  if (std::exchange(thinks_, false) && o_.shows_thoughts) think("\n\n");
  switch (part.kind) {
    case AnswerPart::call:
      calls_.push_back({id_of(next_call_++), std::string(part.text), {}});
      return {};
    case AnswerPart::arguments:
      calls_.back().arguments = part.text;
      QSF_TRY(end_line());
      return show(json_of(calls_.back()) + '\n');
    case AnswerPart::text:
    case AnswerPart::thought:
      break;
  }
  content_ += part.text;
  in_line_ = true;
  return show(part.text);
}

Status Answer::end() { return in_line_ || calls_.empty() ? show("\n") : Status(); }

Status Answer::end_line() { return std::exchange(in_line_, false) ? show("\n") : Status(); }

std::string Answer::more() const {
  std::string out;
  if (!thought_.empty()) append_json(out += "\"reasoning_content\":", thought_);
  for (const ToolCall& call : calls_) {
    const bool first = &call == calls_.data();
    if (first && !out.empty()) out += ',';
    out += first ? "\"tool_calls\":[" : ",";
    out += "{\"id\":\"" + call.id + "\",\"type\":\"function\",\"function\":" + json_of(call) + "}";
  }
  return calls_.empty() ? out : out + "]";
}

}  // namespace qsf::run
