#include "text/unicode.h"

#include <algorithm>
#include <iterator>

namespace qsf::unicode {
namespace {

constexpr std::uint32_t kRanges[] = {
#include "text/unicode_categories.inc"
};

}  // namespace

Category category_of(char32_t code) {
  if (code < 0x80) return ascii_category(code);
  const auto after = std::upper_bound(std::begin(kRanges), std::end(kRanges), code << 4 | 15u);
  return static_cast<Category>(after[-1] & 15u);
}

}  // namespace qsf::unicode
