// The beginning, the form and the end of a call while its bytes arrive. A call begins with one of these:
//
//   {, [              JSON, or a list of Python's calls        ends with its last bracket
//   name(             one of Python's calls                    ends with its last bracket
//   name {, name: {   a name with marks and fences, then JSON  ends with its last bracket
//   <function=        Qwen3-Coder's tags                       ends with the closing mark
//   name <arg_key>    GLM's pairs                              ends with the closing mark
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "answers/tools.h"
#include "qsf/answers/marks.h"

namespace qsf::answers {

class BodyScan {
 public:
  enum class Verdict : std::uint8_t {
    more,
    whole,  // the bytes end a call or a list of calls
    wrong,  // the bytes are no call
  };

  /// Begins a call. One that is `bare` has no opening mark, so it must be a value, and its first name must be that of a
  /// tool or of a part of a call.
  void begin(bool bare) {
    *this = {};
    bare_ = bare;
  }
  /// Takes a byte or a mark, which is the last of `body`.
  Verdict byte(std::string_view body, const Tools& tools);
  Verdict mark(std::string_view body, std::size_t mark);

  /// After a byte that is wrong: returns the first byte of the body that may begin a mark, one of the last few.
  std::size_t wrong_from(std::string_view body) const;
  /// Whether a mark here is one, and not a part of a text.
  bool takes(std::size_t mark) const;

 private:
  enum class Phase : std::uint8_t { begin, fence, name, after_name, tags, value };

  Verdict start(char c, std::string_view body);
  Verdict value(char c);
  Verdict first_name(std::string_view body, const Tools& tools);

  Phase phase_ = Phase::begin, after_fence_ = Phase::begin;
  bool bare_ = false, sure_ = false;       // sure_: a bare call has a name of a tool or of a part of a call
  bool escaped_ = false, marked_ = false;  // marked_: in a text between marks
  char quote_ = '\0';                      // of the text
  std::uint32_t depth_ = 0;                // open brackets
  std::size_t tag_ = 0;                    // the first byte of a tag, or npos after a mark
};

}  // namespace qsf::answers
