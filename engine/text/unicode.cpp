#include "text/unicode.h"

#include <algorithm>
#include <array>

#include "text/packed_table.h"

namespace qsf::unicode {
namespace {

constexpr std::uint8_t kPacked[] = {
#include "text/unicode_categories.inc"
};
/// Where each range begins, and its category.
const auto kRanges = unpack_columns<std::uint32_t, 2, count_packed(kPacked) / 2>(PackedNumbers(kPacked));

}  // namespace

Category category_of(char32_t code) {
  if (code < 0x80) return ascii_category(code);
  const auto after = std::ranges::upper_bound(kRanges, std::uint32_t{code}, {}, [](const auto& row) { return row[0]; });
  return static_cast<Category>(after[-1][1]);
}

}  // namespace qsf::unicode
