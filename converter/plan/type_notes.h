// Warnings on the types that matrices get.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

/// Counts unexpected types: matrices that are rounded a second time, and rows that are not whole blocks.
class TypeNotes {
 public:
  /// Adds a matrix of the source. `wanted` is the requested type and `target` the type that it gets.
  void add(const LoadedTensor& from, FormatId wanted, FormatId target, std::uint64_t rows, std::uint64_t cols);
  /// Returns a sentence for each.
  std::vector<std::string> warnings() const;

 private:
  struct Note {
    std::size_t n = 0;
    std::string first;  // an example
  };
  Note rounded_again_, padded_, narrowed_;
  double bytes_ = 0, padded_bytes_ = 0;
};

}  // namespace qsf::convert
