// A place in the text of a grammar that is being read.
#pragma once

#include <cstddef>
#include <string_view>

namespace qsf::grammar {

struct TextCursor {
  std::string_view text_;
  std::size_t at_ = 0;

  bool over() const { return at_ == text_.size(); }
  /// Returns the next byte, or 0 at the end.
  char peek() const { return over() ? '\0' : text_[at_]; }
  /// Passes `what` if it comes next.
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
};

}  // namespace qsf::grammar
