#include "text/clusters.h"

#include <algorithm>
#include <iterator>

#include "text/unicode.h"

namespace qsf {

/// Returns the class of Grapheme_Cluster_Break. The general category decides it, except in the ranges below: Hangul's
/// and all others without a class that is needed here are `other`, Extend, ZWJ and SpacingMark are `mark`.
Clusters::Kind Clusters::kind_of(char32_t c) {
  using enum Kind;
  struct Range {
    char32_t first, last;
    Kind kind;
  };
  static constexpr Range kRanges[] = {
      {0x0D, 0x0D, carriage_return}, {0x00, 0x1F, control},      {0x7F, 0x9F, control},
      {0x600, 0x605, prefix},        {0x6DD, 0x6DD, prefix},     {0x70F, 0x70F, prefix},
      {0x890, 0x891, prefix},        {0x8E2, 0x8E2, prefix},     {0xD4E, 0xD4E, prefix},
      {0xE33, 0xE33, mark},          {0xEB3, 0xEB3, mark},       {0x102B, 0x102C, other},
      {0x1038, 0x1038, other},       {0x1062, 0x1064, other},    {0x1067, 0x106D, other},
      {0x1083, 0x1083, other},       {0x1087, 0x108C, other},    {0x108F, 0x108F, other},
      {0x109A, 0x109C, other},       {0x1A61, 0x1A61, other},    {0x1A63, 0x1A64, other},
      {0x200C, 0x200D, mark},        {0x2028, 0x2029, control},  {0x2065, 0x2065, control},
      {0xAA7B, 0xAA7B, other},       {0xAA7D, 0xAA7D, other},    {0xE000, 0xF8FF, other},
      {0xFF9E, 0xFF9F, mark},        {0xFFF0, 0xFFF8, control},  {0x110BD, 0x110BD, prefix},
      {0x110CD, 0x110CD, prefix},    {0x111C2, 0x111C3, prefix}, {0x113D1, 0x113D1, prefix},
      {0x11720, 0x11721, other},     {0x1193F, 0x1193F, prefix}, {0x11941, 0x11941, prefix},
      {0x11A84, 0x11A89, prefix},    {0x11D46, 0x11D46, prefix}, {0x11F02, 0x11F02, prefix},
      {0x1F3FB, 0x1F3FF, mark},      {0xE0020, 0xE007F, mark},   {0xE0100, 0xE01EF, mark},
      {0xE0000, 0xE0FFF, control},   {0xF0000, 0x10FFFF, other},
  };
  const auto* const range =
      std::ranges::find_if(kRanges, [&](const Range& each) { return c >= each.first && c <= each.last; });
  if (range != std::end(kRanges)) return range->kind;
  switch (unicode::category_of(c)) {
    case unicode::Category::nonspacing:
    case unicode::Category::spacing:
    case unicode::Category::enclosing:
      return mark;
    case unicode::Category::other:
      return control;
    default:
      return other;
  }
}

bool Clusters::begins(char32_t c) {
  const Kind kind = kind_of(c), last = last_;
  last_ = kind;
  if (last == Kind::carriage_return && c == '\n') return false;
  const auto cuts = [](Kind each) {
    return each == Kind::none || each == Kind::control || each == Kind::carriage_return;
  };
  if (cuts(last) || cuts(kind)) return true;
  return kind != Kind::mark && last != Kind::prefix;
}

}  // namespace qsf
