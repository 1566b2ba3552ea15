// The keys and texts of a file's metadata.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

/// Returns a list such as "1, 2, 3".
template <class T>
std::string list_of(std::span<const T> numbers) {
  std::string text;
  for (const T n : numbers) {
    if (!text.empty()) text.append(", ");
    text += std::to_string(n);
  }
  return text;
}

/// Returns the entries of META. `usual` is the kind of layer that they state.
std::vector<MetaEntry> metadata_of(const LoadedModel& model, const LayerKind& usual);

}  // namespace qsf::convert
