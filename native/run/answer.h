// The answer of a conversation on standard output, and as the message that the conversation remembers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "native/run/options.h"
#include "qsf/chat/answer_parts.h"

namespace qsf::run {

struct ToolCall {
  std::string id, name;
  std::string arguments;  // a JSON object
};

class Answer {
 public:
  /// Shows thoughts as the options say. Calls are numbered from `first_call` on.
  Answer(const Options& options, std::size_t first_call) : o_(options), next_call_(first_call) {}

  /// Shows a part: text on standard output, each call there as a line of JSON, and thoughts on standard error. Errors:
  /// those of show().
  Status add(const chat::Part& part);
  /// Ends the line of an answer, which may be empty. Errors: those of show().
  Status end();

  const std::string& content() const { return content_; }
  const std::vector<ToolCall>& calls() const { return calls_; }
  /// Returns the members of the message besides role and content: reasoning_content and tool_calls, in JSON; empty if
  /// there are none.
  std::string more() const;

 private:
  Status end_line();

  const Options& o_;
  std::size_t next_call_;
  std::string content_, thought_;
  std::vector<ToolCall> calls_;
  bool thinks_ = false;   // the last part was a thought
  bool in_line_ = false;  // standard output has a line without an end
};

}  // namespace qsf::run
