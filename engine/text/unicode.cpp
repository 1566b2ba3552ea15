#include "text/unicode.h"

#include "text/packed_table.h"

namespace qsf::unicode {
namespace {

constexpr std::uint8_t kPacked[] = {
#include "text/unicode_categories.inc"
};
/// Start and category of each range.
const auto kRanges = unpack_columns<std::uint32_t, 2, count_packed(kPacked) / 2>(PackedNumbers(kPacked));

}  // namespace

Category category_of(char32_t code) {
  if (code < 0x80) return ascii_category(code);
  return static_cast<Category>(in_range(kRanges, code));
}

}  // namespace qsf::unicode
