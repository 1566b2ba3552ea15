// A sort for code that pages load: its instances have a third of the code of std::ranges::sort.
#pragma once

#include <algorithm>
#include <functional>

namespace qsf {

/// Sorts a range by heap sort, O(n log n). Elements that compare equal have no certain order.
template <class Range, class Less = std::ranges::less, class Projection = std::identity>
void heap_sort(Range&& range, Less less = {}, Projection projection = {}) {
  std::ranges::make_heap(range, less, projection);
  std::ranges::sort_heap(range, less, projection);
}

}  // namespace qsf
