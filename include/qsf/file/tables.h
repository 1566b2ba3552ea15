// What of a file stays known once it is open.
#pragma once

#include <span>

#include "qsf/file/layout.h"

namespace qsf {

/// A file's tables, checked; views of memory that must outlive this.
struct FileTables {
  Header header;
  std::span<const LayerEntry> layers;
  std::span<const TensorEntry> tensors;
  std::span<const SegmentEntry> segments;
};

}  // namespace qsf
