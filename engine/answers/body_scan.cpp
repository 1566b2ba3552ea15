#include "answers/body_scan.h"

#include <algorithm>
#include <array>

#include "answers/literal.h"
#include "answers/source.h"
#include "answers/syntaxes.h"

namespace qsf::answers {
namespace {

using Verdict = BodyScan::Verdict;

constexpr std::size_t kLongestName = 256;  // bytes, with fences and marks
constexpr std::string_view kTag = "<function=";
/// The names that a call in JSON may begin with.
constexpr std::array<std::string_view, 6> kNames{"name", "type", "function", "arguments", "parameters", "tool_name"};
constexpr std::array kQuotes{mark_of("<|\"|>"), mark_of("<escape>")};

bool may_begin(std::string_view text, std::string_view whole) {
  return text.size() < whole.size() ? whole.starts_with(text) : text.starts_with(whole);
}

}  // namespace

Verdict BodyScan::byte(std::string_view body, const Tools& tools) {
  const char c = body.back();
  if (c == kMarkByte) return Verdict::wrong;  // no text has it
  switch (phase_) {
    case Phase::begin:
    case Phase::name:
    case Phase::after_name:
      if (body.size() > kLongestName) return Verdict::wrong;
      return start(c, body);
    case Phase::fence:
      if (c == '`' || is_letter(c)) return body.size() > kLongestName ? Verdict::wrong : Verdict::more;
      if (!is_blank(c)) return Verdict::wrong;
      phase_ = after_fence_;
      return Verdict::more;
    case Phase::tags:
      if (tag_ == body.npos || may_begin(body.substr(tag_), kTag)) return Verdict::more;
      return Verdict::wrong;
    case Phase::value:
      break;
  }
  const Verdict verdict = value(c);
  return verdict == Verdict::more && bare_ && !sure_ ? first_name(body, tools) : verdict;
}

Verdict BodyScan::start(char c, std::string_view body) {
  if (is_blank(c)) {
    if (phase_ == Phase::name) phase_ = Phase::after_name;
    return Verdict::more;
  }
  if (c == '`' && phase_ != Phase::name) {
    after_fence_ = phase_;
    phase_ = Phase::fence;
    return Verdict::more;
  }
  const bool named = phase_ != Phase::begin;
  if (c == '{' || (c == '[' && !named) || (c == '(' && named)) {
    phase_ = Phase::value;
    depth_ = 1;
    return Verdict::more;
  }
  if (bare_) return Verdict::wrong;
  if (c == '<') {
    phase_ = Phase::tags;
    tag_ = body.size() - 1;
    return Verdict::more;
  }
  if (phase_ == Phase::after_name || !is_of_name(c)) return Verdict::wrong;
  phase_ = Phase::name;
  return Verdict::more;
}

Verdict BodyScan::value(char c) {
  if (marked_) return Verdict::more;
  if (quote_ != '\0') {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == quote_) {
      quote_ = '\0';
    }
    return Verdict::more;
  }
  constexpr std::string_view kOpen = "{[(", kClose = "}])";
  if (c == '"' || c == '\'') quote_ = c;
  if (kOpen.find(c) != kOpen.npos && ++depth_ > kMaxDepth) return Verdict::wrong;
  return kClose.find(c) != kClose.npos && --depth_ == 0 ? Verdict::whole : Verdict::more;
}

/// Looks at the beginning of a bare value as far as it is there.
Verdict BodyScan::first_name(std::string_view body, const Tools& tools) {
  const std::size_t begin = body.find_first_of("{[");
  body.remove_prefix(begin + 1);
  body = body.substr(std::min(body.find_first_not_of(" \n\t\r{"), body.size()));
  if (body.empty()) return Verdict::more;
  if (body.front() == '"' || body.front() == '\'') {
    body.remove_prefix(1);
    const std::size_t end = body.find_first_of("\"'");
    const std::string_view name = body.substr(0, end);
    if (end == body.npos) {
      return std::ranges::any_of(kNames, [&](std::string_view known) { return known.starts_with(name); })
                 ? Verdict::more
                 : Verdict::wrong;
    }
    sure_ = std::ranges::find(kNames, name) != kNames.end();
    return sure_ ? Verdict::more : Verdict::wrong;
  }
  const std::size_t end = body.find('(');
  const std::string_view name = body.substr(0, end);
  sure_ = end != body.npos && tools.has(name);
  const bool may_be = name.size() <= kLongestName && std::ranges::all_of(name, is_of_name);
  return sure_ || (end == body.npos && may_be) ? Verdict::more : Verdict::wrong;
}

Verdict BodyScan::mark(std::string_view body, std::size_t m) {
  switch (phase_) {
    case Phase::name:
    case Phase::after_name:
      if (m == mark_of("<arg_key>")) {
        phase_ = Phase::tags;
        tag_ = body.npos;
        return Verdict::more;
      }
      phase_ = Phase::begin;
      return kSyntaxes[m / 2].use == Use::inside ? Verdict::more : Verdict::wrong;
    case Phase::tags:
      return Verdict::more;
    case Phase::value:
      if (quote_ != '\0') return Verdict::more;
      if (std::ranges::find(kQuotes, m) == kQuotes.end()) return marked_ ? Verdict::more : Verdict::wrong;
      marked_ = !marked_;
      return Verdict::more;
    case Phase::begin:
    case Phase::fence:
      break;
  }
  return Verdict::wrong;
}

std::size_t BodyScan::wrong_from(std::string_view body) const {
  const bool in_tag = phase_ == Phase::tags && tag_ < body.size() && body.size() - tag_ <= kTag.size();
  return in_tag ? tag_ : body.size() - 1;
}

bool BodyScan::takes(std::size_t m) const {
  return quote_ == '\0' && (!marked_ || std::ranges::find(kQuotes, m) != kQuotes.end());
}

}  // namespace qsf::answers
