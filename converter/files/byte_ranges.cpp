#include "converter/files/byte_ranges.h"

#include <algorithm>

#include "qsf/base/heap_sort.h"

namespace qsf::convert {

Status check_no_overlap(std::span<ByteRange> ranges, std::string_view file) {
  heap_sort(ranges, [](const ByteRange& a, const ByteRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const ByteRange& a = ranges[i - 1];
    const ByteRange& b = ranges[i];
    if (b.begin < a.end) {
      return make_error(ErrorCode::bad_input, "{}: the bytes of {:.60} and {:.60} overlap", file, a.name, b.name);
    }
  }
  return {};
}

}  // namespace qsf::convert
