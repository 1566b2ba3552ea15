// The texts of one prompt on standard output.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "native/run/answer.h"
#include "native/run/options.h"

namespace qsf::run {

/// Shows a text as it comes. Of several texts, which come at the same time, it shows one after the other, each after a
/// line with its number and seed and before a line end, and keeps the parts of those that wait.
class ShownTexts {
 public:
  /// `converses`: the texts are answers, whose calls are numbered from `first_call` on. `begun` is called before each
  /// output.
  ShownTexts(const Options& options, bool converses, std::size_t first_call, std::function<void()> begun);

  /// Takes a part of text `i`. Errors: those of show().
  Status add(std::size_t i, const chat::Part& part);
  /// Ends text `i`. Errors: those of show().
  Status end(std::size_t i);
  /// Returns answer `i`, without the parts that wait.
  const Answer& answer(std::size_t i) const { return texts_[i].answer; }

 private:
  struct Waiting {
    AnswerPart kind;
    std::string text;
  };
  struct Text {
    Answer answer;
    std::vector<Waiting> waiting = {};
    bool has_head = false, has_ended = false;
  };

  Status head();
  Status put(const chat::Part& part);

  const Options& o_;
  bool converses_;
  std::function<void()> begun_;
  std::vector<Text> texts_;
  std::size_t at_ = 0;  // the text that is shown
};

}  // namespace qsf::run
