#include "qsf/answers/marks.h"

#include "answers/syntaxes.h"

namespace qsf::answers {

std::string_view mark_text(std::size_t mark) {
  const Syntax& syntax = kSyntaxes[mark / 2];
  return mark % 2 == 0 ? syntax.open : syntax.close;
}

void Marks::add_rows(std::string_view chat_template) {
  const auto occurs = [&](std::string_view text) {
    return !text.empty() && chat_template.find(text) != chat_template.npos;
  };
  for (std::size_t i = 0; i < kSyntaxes.size(); ++i) {
    const Syntax& s = kSyntaxes[i];
    const bool either = s.use == Use::thought || s.use == Use::inside;
    const bool shown = !s.sign.empty() ? occurs(s.sign) : occurs(s.open) || (either && occurs(s.close));
    const bool is_token = s.sign.empty() && (tokens[2 * i] != kAsText || (either && tokens[2 * i + 1] != kAsText));
    if (shown || is_token) rows |= std::uint64_t{1} << i;
  }
}

std::size_t Marks::find(std::uint32_t token) const {
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (token != kAsText && tokens[i] == token && has(i / 2)) return i;
  }
  return kMarks;
}

}  // namespace qsf::answers
