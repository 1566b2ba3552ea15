// The tables of an open file, which stay in memory for the whole session.
#pragma once

#include <span>

#include "qsf/file/layout.h"

namespace qsf {

/// A file's tables after their check, as views of memory that must outlive them.
struct FileTables {
  Header header;
  std::span<const LayerEntry> layers;
  std::span<const TensorEntry> tensors;
  std::span<const SegmentEntry> segments;
};

}  // namespace qsf
