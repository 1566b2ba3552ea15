// The type byte of a layer index entry and of the header.
#pragma once

#include <cstdint>

#include "qsf/file/layout.h"

namespace qsf {

/// Computes the type byte from the formats of the matrices: their common
/// format, or mixed.
class CommonFormat {
 public:
  void add(FormatId format) {
    common_ = n_ == 0 || format == common_ ? format : FormatId::mixed;
    ++n_;
  }
  FormatId get() const { return n_ == 0 ? FormatId::mixed : common_; }

 private:
  FormatId common_ = FormatId::mixed;
  std::uint64_t n_ = 0;
};

}  // namespace qsf
